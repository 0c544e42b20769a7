package placement

import (
	"testing"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// TestScoringAllocatesNothing scores every candidate of a pool whose contents changed.
func TestScoringAllocatesNothing(t *testing.T) {
	for name, site := range map[string]*worlds.Site{"forest": worlds.Cubes(8)("p"), "windows": worlds.Windows("p", extent(2, 2, 2), []worlds.Extent{extent(2, 1, 1), extent(2, 2, 1)})} {
		inv := site.Inventory()
		s, w := NewScored(0), World{Inventory: inv, Ledger: ledger.New(inv)}
		s.prepare(w)
		class := inv.Class("v5p-4")
		it := &item{class: class, span: class.Members[0].Span}
		s.rankings(it, w)
		other := w
		other.Ledger = w.Ledger.Clone()
		other.Ledger.Take(ledger.Holding{Owner: "x/a", Pool: inv.Pools()[0].ID, Device: "c1-1-3"})
		turn := 0
		allocs := testing.AllocsPerRun(100, func() {
			turn++
			if turn%2 == 0 {
				s.rankings(it, w)
			} else {
				s.rankings(it, other)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations per scoring", name, allocs)
		}
	}
}

// TestScoringDomainsAllocatesNothing weighs every domain of a fleet of racks, and chooses in them, after something changed.
func TestScoringDomainsAllocatesNothing(t *testing.T) {
	inv := worlds.GPURacks(6, 4, 2).Inventory()
	s, w := NewScored(0), World{Inventory: inv, Ledger: ledger.New(inv)}
	s.prepare(w)
	it := &item{class: inv.Class("gpu"), span: 1, req: &gang.Request{Class: "gpu", Count: 1}}
	set := &gang.PodSet{Requests: map[string]int64{"cpu": 1000, "pods": 1000}}
	var best [runnersUp + 1]suitor
	choose := func(w World) int {
		s.visit++
		return s.cheapest(it, set, w, best[:])
	}
	other := w
	other.Ledger = w.Ledger.Clone()
	for i := range 3 {
		other.Ledger.Take(ledger.Holding{Owner: "x/a", Reservation: "a", Pool: inv.Pools()[i].ID, Device: "gpu-1"})
	}
	if n := choose(other); n != len(best) || inv.Pools()[best[0].pool].ID != inv.Pools()[0].ID {
		t.Fatalf("%d candidates, the first of pool %v: rack 0 is broken up", n, best[0].pool)
	}
	choose(w)
	turn := 0
	allocs := testing.AllocsPerRun(100, func() {
		turn++
		if turn%2 == 0 {
			choose(w)
		} else {
			choose(other)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per scoring", allocs)
	}
}

func extent(x, y, z int) worlds.Extent { return worlds.Extent{X: x, Y: y, Z: z} }
