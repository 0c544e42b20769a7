package placement_test

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/test/race"
)

// trees are all rooted trees with n leaves in which every inner node has at least two children, up to the order of
// children. A tree is the bit sets of leaves of its nodes.
func trees(n int) [][]uint8 {
	if n == 1 {
		return [][]uint8{{1}}
	}
	var out [][]uint8
	// forest appends ways to fill the leaves from at on with trees that do not grow in size, then in number.
	var forest func(at, size, index int, nodes []uint8, children int)
	forest = func(at, size, index int, nodes []uint8, children int) {
		if at == n {
			if children > 1 {
				out = append(out, append(append([]uint8{}, nodes...), uint8(1<<n-1)))
			}
			return
		}
		for s := min(size, n-at, n-1); s >= 1; s-- {
			of := trees(s)
			first := 0
			if s == size {
				first = index
			}
			for i := first; i < len(of); i++ {
				next := append([]uint8{}, nodes...)
				for _, node := range of[i] {
					next = append(next, node<<at)
				}
				forest(at+s, s, i, next, children+1)
			}
		}
	}
	forest(0, n, 0, nil, 0)
	return out
}

// leastLoss tries every set of k free nodes of the size. Each taken host has a holder of its own. It returns twice the loss,
// or -1.
func leastLoss(nodes []uint8, taken uint8, size, k int) int64 {
	least := int64(-1)
	var try func(from, left int, union uint8)
	try = func(from, left int, union uint8) {
		if left == 0 {
			var loss int64
			for _, d := range nodes {
				if d&union != 0 {
					loss += int64(bits.OnesCount8(d)) * oneHost >> bits.OnesCount8(d&taken)
				}
			}
			if least < 0 || loss < least {
				least = loss
			}
			return
		}
		for i := from; i < len(nodes); i++ {
			if d := nodes[i]; bits.OnesCount8(d) == size && d&taken == 0 && d&union == 0 {
				try(i+1, left-1, union|d)
			}
		}
	}
	try(0, k, 0)
	return least
}

// TestScoredIsExactOnEveryTree goes through every tree of up to 8 hosts, every set of taken hosts, every size and up to three
// devices. Those of 7 and 8 hosts are thirty times the work of all smaller ones.
func TestScoredIsExactOnEveryTree(t *testing.T) {
	most, wantWorlds := 8, 80934
	if race.Enabled || testing.Short() {
		most, wantWorlds = 6, 2598
	}
	worldsSeen, decisions, refused := 0, 0, 0
	for n, count := range []int{0, 1, 1, 2, 5, 12, 33, 90, 261}[:most+1] {
		if n == 0 {
			continue
		}
		all := trees(n)
		if len(all) != count {
			t.Fatalf("%d trees of %d leaves, there are %d", len(all), n, count)
		}
		for _, nodes := range all {
			var groups [][]int
			sizes, leaf := map[int]bool{}, map[int]string{}
			for i, d := range nodes {
				var group []int
				for h := range n {
					if d>>h&1 == 1 {
						group = append(group, h)
					}
				}
				groups, sizes[len(group)] = append(groups, group), true
				if len(group) == 1 {
					leaf[group[0]] = fmt.Sprint("d", i)
				}
			}
			inv := worlds.Groups("p", n, groups).Inventory()
			placer := placement.NewScored(0)
			for taken := range 1 << n {
				l := ledger.New(inv)
				for h := range n {
					if taken>>h&1 == 0 {
						continue
					}
					held := ledger.Holding{Owner: fmt.Sprint("h", h), Pool: inv.Pools()[0].ID, Device: leaf[h]}
					if h%2 == taken%3%2 { // Some are held by a device that is published no more: what is kept of parts does not hold then.
						held.Device = fmt.Sprint("gone-", h)
						held.Charge = []inventory.Charge{{CounterSet: "hosts-0", Counter: fmt.Sprint("h", h), Milli: 1000}}
					}
					l.Take(held)
				}
				w := placement.World{Inventory: inv, Ledger: l}
				worldsSeen++
				for size := range sizes {
					for k := 1; k <= 3; k++ {
						want := leastLoss(nodes, uint8(taken), size, k)
						decisions++
						if want < 0 {
							refused++
						}
						d := placer.Place(asking(fmt.Sprint("n", size), size, k), w)
						if d.Fits() != (want >= 0) || !d.Proved {
							t.Fatalf("%v, taken %b, %d×%d: fits %v, proved %v, want %v", groups, taken, k, size, d.Fits(), d.Proved, want)
						}
						if want >= 0 && d.Score != float64(want)/(2*oneHost) {
							t.Fatalf("%v, taken %b, %d×%d: %v costs %v, want %v", groups, taken, k, size, names(d), d.Score, float64(want)/(2*oneHost))
						}
					}
				}
			}
		}
	}
	t.Logf("%d worlds, %d decisions, %d of them refusals", worldsSeen, decisions, refused)
	if worldsSeen != wantWorlds || refused == 0 || refused == decisions {
		t.Errorf("%d worlds, want %d", worldsSeen, wantWorlds)
	}
}
