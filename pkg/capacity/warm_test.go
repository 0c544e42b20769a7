package capacity_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capacity"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// What is kept from one state to the next, of the same pool and of others, changes no number.
func TestWarmAndColdAgree(t *testing.T) {
	inv := worlds.Times(2, func(pool string) *worlds.Site {
		return worlds.Windows(pool, worlds.Extent{X: 3, Y: 3, Z: 2}, []worlds.Extent{{X: 2, Y: 1, Z: 1}, {X: 1, Y: 2, Z: 1}, {X: 2, Y: 2, Z: 1}, {X: 1, Y: 1, Z: 2}})
	}).Inventory()
	var warm capacity.Calculator
	rng := rand.New(rand.NewPCG(1, 23))
	l := ledger.New(inv)
	var held []ledger.Holding
	overlapping := 0
	for step := range 150 {
		if len(held) > 0 && rng.IntN(3) == 0 {
			i := rng.IntN(len(held))
			l.Give(held[i])
			held = append(held[:i], held[i+1:]...)
		} else {
			p := inv.Pools()[rng.IntN(2)]
			d := p.Devices[rng.IntN(len(p.Devices))]
			if l.Free(d) && len(d.Hosts) <= 32 {
				h := ledger.Holding{Owner: fmt.Sprint("x/", step), Pool: p.ID, Device: d.Name}
				l.Take(h)
				held = append(held, h)
			}
		}
		classes := []string{"v5p-32", "v5p-64"}[:1+step%2]
		var cold capacity.Calculator
		got, want := warm.Of(inv, l, classes...), cold.Of(inv, l, classes...)
		hosts := 0
		trial := l.Try()
		for pool, devices := range got.Largest {
			for _, at := range devices {
				d := inv.Pools()[pool].Devices[at]
				if trial.Obstacle(d) != nil {
					t.Fatalf("step %d: %s cannot be held with the others", step, d.Name)
				}
				trial.Take(d)
				hosts += len(d.Hosts)
			}
		}
		if hosts != got.Together {
			t.Fatalf("step %d: %d hosts in the largest set, %d together", step, hosts, got.Together)
		}
		if got.Together < want.Free*32 {
			overlapping++
		}
		got.Largest, want.Largest, got.Stranded, want.Stranded = nil, nil, nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("step %d, %v: (-cold +warm)\n%s", step, classes, diff)
		}
		if step%20 == 0 {
			warm.Sweep()
		}
	}
	if overlapping < 50 {
		t.Errorf("only in %d states do free devices overlap", overlapping)
	}
}

// A ring of seven hosts has three disjoint pairs, and a budget of nothing finds those that came before in order.
func TestBeginsWithWhatWasBest(t *testing.T) {
	// First come pairs that leave single hosts between them.
	groups := [][]int{{1, 2}, {4, 5}, {0, 1}, {2, 3}, {6, 7}, {3, 4}, {5, 6}}
	inv := worlds.Groups("p", 8, groups).Inventory()
	l := ledger.New(inv)
	cold := capacity.Calculator{Budget: 1}
	if got := cold.Of(inv, l, "n2"); got.Together != 6 || got.Proved || got.AtMost != 8 {
		t.Fatalf("without a budget: %+v", got)
	}
	var warm capacity.Calculator
	if got := warm.Of(inv, l, "n2"); got.Together != 8 || !got.Proved {
		t.Fatalf("with a budget: %+v", got)
	}
	warm.Budget = 1
	if got := warm.Of(inv, l, "n2"); got.Together != 8 || got.AtMost != 8 {
		t.Errorf("from what was best: %+v", got)
	}
}

// Pools that nobody touched are not looked at again, and those in accepts are told apart.
func TestInSomePools(t *testing.T) {
	inv := worlds.Times(3, worlds.KEP8x8).Inventory()
	l := ledger.New(inv)
	l.Take(ledger.Holding{Owner: "x/a", Pool: inv.Pools()[1].ID, Device: "tpu-2x2-5"})
	var c capacity.Calculator
	for i, want := range []int{16, 12, 16} {
		got := c.In(inv, l, func(id inventory.PoolID) bool { return id == inv.Pools()[i].ID }, "tpu-4x4")
		if got.Together != want || got.Devices != 4 || got.Whole != 16 {
			t.Errorf("pool %d: %+v", i, got)
		}
	}
	if got := c.Of(inv, l, "tpu-4x4", "tpu-4x8"); got.Together != 44 || got.Whole != 48 || got.Devices != 18 || len(got.Stranded) != 3 {
		t.Errorf("all: %+v", got)
	}
}
