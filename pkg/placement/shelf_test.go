package placement

import (
	"testing"

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

func extent(x, y, z int) worlds.Extent { return worlds.Extent{X: x, Y: y, Z: z} }
