package capacity_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capacity"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/pkg/reason"
)

func hold(l *ledger.Ledger, p *inventory.Pool, devices ...string) {
	for _, d := range devices {
		l.Take(ledger.Holding{Owner: "x/" + d, Pool: p.ID, Device: d})
	}
}

func TestCapacity(t *testing.T) {
	kep := worlds.KEP8x8("p")
	tests := map[string]struct {
		held    []string
		blocked string
		classes []string
		whole   int
		want    capacity.Capacity
	}{
		"empty":         {nil, "", []string{"tpu-4x4"}, 16, capacity.Capacity{Devices: 4, Usable: 4, Free: 4, Together: 16, Proved: true}},
		"unknown class": {nil, "", []string{"tpu-9x9"}, 0, capacity.Capacity{Proved: true}},
		"all classes": {nil, "", []string{"tpu-2x2", "tpu-4x4", "tpu-4x8", "tpu-8x8"}, 16,
			capacity.Capacity{Devices: 23, Usable: 23, Free: 23, Together: 16, Proved: true}},
		"a hole": {[]string{"tpu-2x2-5"}, "", []string{"tpu-4x4"}, 16,
			capacity.Capacity{Devices: 4, Usable: 4, Free: 3, Together: 12, Stranded: []string{"p-h4", "p-h6", "p-h7"}, Proved: true}},
		"a hole, small ones fill it": {[]string{"tpu-2x2-5"}, "", []string{"tpu-2x2", "tpu-4x4"}, 16,
			capacity.Capacity{Devices: 20, Usable: 20, Free: 18, Together: 15, Proved: true}},
		"a lost host": {nil, "p-h0", []string{"tpu-4x8"}, 8,
			capacity.Capacity{Devices: 2, Usable: 1, Free: 1, Together: 8, Proved: true}},
		"full": {[]string{"tpu-8x8-0"}, "", []string{"tpu-4x4"}, 16, capacity.Capacity{Devices: 4, Usable: 4, Proved: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			site := *kep
			site.Hosts = slices.Clone(kep.Hosts)
			for i := range site.Hosts {
				if site.Hosts[i].Name == test.blocked {
					site.Hosts[i].Blocked = &reason.Evidence{Code: reason.HostUnusable}
				}
			}
			inv := site.Inventory()
			l := ledger.New(inv)
			hold(l, inv.Pools()[0], test.held...)
			var c capacity.Calculator
			got := c.Of(inv, l, test.classes...)
			hosts := 0
			for _, d := range got.Largest[0] {
				hosts += len(inv.Pools()[0].Devices[d].Hosts)
			}
			if hosts != got.Together {
				t.Errorf("%d hosts in the largest set, %d together", hosts, got.Together)
			}
			got.Largest = nil
			test.want.AtMost, test.want.WholeProved = test.want.Together, true
			test.want.Whole, test.want.WholeAtMost = test.whole, test.whole
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// most tries every set of free devices that the ledger lets be taken one after the other.
func most(inv *inventory.Inventory, l *ledger.Ledger, devices []*inventory.Device) int {
	trial := l.Try()
	best := 0
	var try func(from, hosts int)
	try = func(from, hosts int) {
		best = max(best, hosts)
		for i := from; i < len(devices); i++ {
			if d := devices[i]; trial.Obstacle(d) == nil {
				trial.Take(d)
				try(i+1, hosts+len(d.Hosts))
				trial.Drop(d)
			}
		}
	}
	try(0, 0)
	return best
}

func TestAgreesWithEverySet(t *testing.T) {
	var warm capacity.Calculator
	partial := 0
	for seed := range uint64(800) {
		rng := rand.New(rand.NewPCG(seed, 7))
		site := worlds.Random(rng, "p", 2+rng.IntN(7), 3+rng.IntN(9))
		inv := site.Inventory()
		l := ledger.New(inv)
		p := inv.Pools()[0]
		for i := range rng.IntN(3) {
			if d := p.Devices[rng.IntN(len(p.Devices))]; l.Free(d) {
				l.Take(ledger.Holding{Owner: fmt.Sprint("x/", i), Pool: p.ID, Device: d.Name})
			}
		}
		var classes []string
		var devices []*inventory.Device
		for _, c := range inv.Classes() {
			if rng.IntN(3) > 0 {
				classes, devices = append(classes, c.Name), append(devices, c.Devices...)
			}
		}
		got := warm.Of(inv, l, classes...)
		if want := most(inv, l, devices); got.Together != want || !got.Proved {
			t.Fatalf("seed %d, %v: %d together (proved %v), want %d", seed, classes, got.Together, got.Proved, want)
		}
		trial := l.Try()
		for _, d := range got.Largest[0] {
			if trial.Obstacle(p.Devices[d]) != nil {
				t.Fatalf("seed %d: %s cannot be held with the others", seed, p.Devices[d].Name)
			}
			trial.Take(p.Devices[d])
		}
		if want := most(inv, ledger.New(inv), devices); got.Whole != want || !got.WholeProved {
			t.Fatalf("seed %d, %v: %d if nobody held anything (proved %v), want %d", seed, classes, got.Whole, got.WholeProved, want)
		}
		if again := warm.Of(inv, l, classes...); !cmp.Equal(got, again) {
			t.Fatalf("seed %d: asked again, it says %v, and before %v", seed, again, got)
		}
		tight := capacity.Calculator{Budget: 1}
		if less := tight.Of(inv, l, classes...); less.Together > got.Together || less.AtMost < got.Together || less.WholeAtMost < got.Whole || less.Proved && less.Together != got.Together {
			t.Fatalf("seed %d: without budget %d (proved %v), with %d", seed, less.Together, less.Proved, got.Together)
		} else if !less.Proved {
			partial++
		}
		if seed%100 == 0 {
			warm.Sweep()
		}
	}
	if partial == 0 {
		t.Error("no search ended by its budget")
	}
}
