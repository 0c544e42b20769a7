package placement_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/test/processor"
)

// halfTaken places gangs of one device of random classes of up to largest hosts until half of all hosts are taken, and runs
// a pod on each.
func halfTaken(inv *inventory.Inventory, largest int) *ledger.Ledger {
	l := ledger.New(inv)
	rng := rand.New(rand.NewPCG(1, 1))
	placer := placement.NewScored(0)
	taken := 0
	for i := 0; taken < len(inv.Hosts())/2; i++ {
		c := inv.Classes()[rng.IntN(len(inv.Classes()))]
		if c.Members[0].Span > largest {
			continue
		}
		d := placer.Place(asking(c.Name, c.Members[0].Span, 1), placement.World{Inventory: inv, Ledger: l})
		if !d.Fits() {
			continue
		}
		// At a random one of the best places, as after many comings and goings.
		device := d.PodSets[0].Claims[0].Instances[0].Devices[0]
		pool, name := device.Pool, device.Name
		if n := rng.IntN(1 + len(d.RunnersUp)); n > 0 {
			pool, name = d.RunnersUp[n-1].Pool, d.RunnersUp[n-1].Name
		}
		l.Take(ledger.Holding{Owner: fmt.Sprint("x/", i), Reservation: fmt.Sprint(i), Pool: pool, Device: name})
		for _, h := range inv.Device(pool, name).Hosts {
			l.Use(h, "x/pod-"+h, map[string]int64{"cpu": 4000})
			taken++
		}
	}
	return l
}

// decisions are worlds that differ in what is taken of their first pool, so that whoever decides in them by turns finds a
// pool that was touched each time.
func decisions(inv *inventory.Inventory, l *ledger.Ledger) [2]placement.World {
	other := l.Clone()
	for _, d := range inv.Pools()[0].Devices {
		if len(d.Hosts) == 1 && other.Free(d) {
			other.Take(ledger.Holding{Owner: "x/one-more", Pool: d.Pool, Device: d.Name})
			break
		}
	}
	return [2]placement.World{{Inventory: inv, Ledger: l}, {Inventory: inv, Ledger: other}}
}

func place(b *testing.B, placer placement.Placer, g gang.Gang, worlds [2]placement.World, fits bool) {
	b.Helper()
	for _, w := range worlds {
		if d := placer.Place(g, w); d.Fits() != fits {
			b.Fatalf("fits %v: %v", d.Fits(), d.Refusal)
		}
	}
	processor.Turns(b, func(i int) { placer.Place(g, worlds[i%2]) })
}

// BenchmarkPlace is one decision after something else was taken of the pool, all candidates scored.
func BenchmarkPlace(b *testing.B) {
	for _, family := range []struct {
		name    string
		site    *worlds.Site
		largest int
		asks    map[string]gang.Gang
	}{
		{"kep8x8", worlds.KEP8x8("p"), 2, map[string]gang.Gang{"tpu-4x4": asking("tpu-4x4", 4, 1), "tpu-2x2": asking("tpu-2x2", 1, 1)}},
		{"cubes", worlds.Cubes(140)("p"), 32, map[string]gang.Gang{
			"v5p-1": asking("v5p-1", 1, 1), "v5p-4": asking("v5p-4", 4, 1), "v5p-16": asking("v5p-16", 16, 1), "v5p-16-k8": asking("v5p-16", 16, 8),
		}},
		{"torus", worlds.Torus("p"), 64, map[string]gang.Gang{
			"v5p-1": asking("v5p-1", 1, 1), "v5p-16": asking("v5p-16", 16, 1), "v5p-32": asking("v5p-32", 32, 1), "v5p-64": asking("v5p-64", 64, 1),
			"v5p-16-k8": asking("v5p-16", 16, 8),
		}},
	} {
		inv := family.site.Inventory()
		w := decisions(inv, halfTaken(inv, family.largest))
		for name, g := range family.asks {
			b.Run(family.name+"/"+name, func(b *testing.B) { place(b, placement.NewScored(0), g, w, true) })
		}
		if family.name != "kep8x8" {
			full := asking("v5p-1", 1, 5000)
			full.PodSets[0].Slices = 0
			b.Run(family.name+"/refusal", func(b *testing.B) { place(b, placement.NewScored(0), full, w, false) })
			b.Run(family.name+"/new-pod-shape", func(b *testing.B) {
				placer := placement.NewScored(0)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					g := asking("v5p-16", 16, 1)
					g.PodSets[0].Requests = map[string]int64{"cpu": int64(1 + i%4000), "memory": int64(i)}
					placer.Place(g, w[i%2])
				}
			})
		}
	}
}

// BenchmarkPools is one decision in one pool and in ten times as many, of which one was touched.
func BenchmarkPools(b *testing.B) {
	for _, family := range []struct {
		name string
		make func(string) *worlds.Site
		n    int
		ask  gang.Gang
	}{
		{"cubes", worlds.Cubes(140), 1, asking("v5p-4", 4, 1)},
		{"racks", worlds.Rack, 14, asking("gpu-16", 4, 1)},
	} {
		for _, times := range []int{1, 10} {
			inv := worlds.Times(family.n*times, family.make).Inventory()
			w := decisions(inv, halfTaken(inv, 16))
			b.Run(fmt.Sprintf("%s/x%d", family.name, times), func(b *testing.B) { place(b, placement.NewScored(0), family.ask, w, true) })
		}
	}
}

// BenchmarkDomains is one decision on a fleet of racks that are the domains of an interconnect: a pod, a gang that stands in one
// rack, one that no rack can take, and one that must stand in one rack and is too large.
func BenchmarkDomains(b *testing.B) {
	for _, racks := range []int{50, 500} {
		inv := worlds.GPURacks(racks, 18, 1).Inventory()
		w := decisions(inv, halfTaken(inv, 1))
		for _, pods := range []int{1, 4} {
			b.Run(fmt.Sprintf("%d-racks/%d-pods", racks, pods), func(b *testing.B) { place(b, placement.NewScored(0), gpus(pods, gang.Required), w, true) })
		}
		b.Run(fmt.Sprintf("%d-racks/40-pods-across", racks), func(b *testing.B) { place(b, placement.NewScored(0), gpus(40, gang.Preferred), w, true) })
		b.Run(fmt.Sprintf("%d-racks/refusal", racks), func(b *testing.B) { place(b, placement.NewScored(0), gpus(19, gang.Required), w, false) })
	}
}
