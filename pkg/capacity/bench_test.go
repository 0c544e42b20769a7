package capacity_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-dev/berth/pkg/capacity"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/test/processor"
)

func BenchmarkCapacity(b *testing.B) {
	for name, site := range map[string]*worlds.Site{"cubes": worlds.Cubes(140)("p"), "torus": worlds.Torus("p"), "racks": worlds.Times(140, worlds.Rack)} {
		inv := site.Inventory()
		l := ledger.New(inv)
		rng := rand.New(rand.NewPCG(1, 1))
		for i := range 40 {
			p := inv.Pools()[rng.IntN(len(inv.Pools()))]
			if d := p.Devices[rng.IntN(len(p.Devices))]; l.Free(d) && len(d.Hosts) <= 64 {
				l.Take(ledger.Holding{Owner: fmt.Sprint("x/", i), Pool: p.ID, Device: d.Name})
			}
		}
		for _, c := range inv.Classes() {
			if s := c.Members[0].Span; s != 2 && s != 16 && s != 32 && s != 128 {
				continue
			}
			for _, state := range []string{"new", "kept"} {
				b.Run(name+"/"+c.Name+"/"+state, func(b *testing.B) {
					var calc capacity.Calculator
					got := calc.Of(inv, l, c.Name)
					processor.Turns(b, func(int) {
						if state == "new" {
							calc = capacity.Calculator{}
						}
						got = calc.Of(inv, l, c.Name)
					})
					b.ReportMetric(float64(got.Together), "hosts")
					proved := 0.0
					if got.Proved {
						proved = 1
					}
					b.ReportMetric(proved, "proved")
				})
			}
		}
	}
}

// partlyTaken takes random free devices of up to largest hosts until share of all hosts is held.
func partlyTaken(inv *inventory.Inventory, rng *rand.Rand, largest int, share float64) (*ledger.Ledger, []ledger.Holding) {
	l := ledger.New(inv)
	var held []ledger.Holding
	for hosts := 0; float64(hosts) < share*float64(len(inv.Hosts())); {
		p := inv.Pools()[rng.IntN(len(inv.Pools()))]
		d := p.Devices[rng.IntN(len(p.Devices))]
		if len(d.Hosts) > largest || !l.Free(d) {
			continue
		}
		h := ledger.Holding{Owner: fmt.Sprint("x/", len(held)), Pool: p.ID, Device: d.Name}
		l.Take(h)
		held = append(held, h)
		hosts += len(d.Hosts)
	}
	return l, held
}

// BenchmarkFold is what a CapacityFold asks after each change: the shares of several classes together on 1,000 hosts, a
// third of them held, after a gang came or went. first is with nothing kept, as after a restart.
func BenchmarkFold(b *testing.B) {
	for _, site := range []struct {
		name    string
		site    *worlds.Site
		largest int
		classes []string
	}{
		{"racks", worlds.Times(56, worlds.Rack), 16, []string{"gpu-4", "gpu-8", "gpu-16", "gpu-32", "gpu-64", "gpu-72"}},
		{"cubes", worlds.Cubes(63)("p"), 32, []string{"v5p-1", "v5p-4", "v5p-16", "v5p-64", "v5p-256"}},
		{"windows", worlds.Windows("p", worlds.Extent{X: 4, Y: 5, Z: 3}, worlds.V5pWindows), 64, []string{"v5p-16", "v5p-32", "v5p-64"}},
	} {
		inv := site.site.Inventory()
		rng := rand.New(rand.NewPCG(1, 1))
		l, held := partlyTaken(inv, rng, site.largest, 1.0/3)
		report := func(b *testing.B, unproved int) {
			b.ReportMetric(float64(len(inv.Hosts())), "hosts")
			b.ReportMetric(100*float64(unproved)/float64(b.N), "%unproved")
		}
		b.Run(site.name+"/first", func(b *testing.B) {
			unproved := 0
			processor.Turns(b, func(int) {
				var calc capacity.Calculator
				if got := calc.Of(inv, l, site.classes...); !got.Proved || !got.WholeProved {
					unproved++
				}
			})
			report(b, unproved)
		})
		b.Run(site.name+"/change", func(b *testing.B) {
			var calc capacity.Calculator
			l, held := l.Clone(), append([]ledger.Holding(nil), held...)
			calc.Of(inv, l, site.classes...)
			unproved := 0
			processor.Turns(b, func(n int) {
				// One goes, and comes back elsewhere if there is a place.
				i := rng.IntN(len(held))
				old := held[i]
				l.Give(old)
				p := inv.Pool(old.Pool)
				span := len(p.Device(old.Device).Hosts)
				for range 50 {
					if d := p.Devices[rng.IntN(len(p.Devices))]; len(d.Hosts) == span && l.Free(d) {
						held[i].Device = d.Name
						break
					}
				}
				l.Take(held[i])
				if got := calc.Of(inv, l, site.classes...); !got.Proved || !got.WholeProved {
					unproved++
				}
				if n%100 == 0 {
					calc.Sweep()
				}
			})
			report(b, unproved)
		})
	}
}
