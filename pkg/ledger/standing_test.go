package ledger_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

func TestStanders(t *testing.T) {
	w := worlds.Groups("p", 4, [][]int{{0}, {1}, {0, 1}, {2, 3}}).Inventory()
	l := ledger.New(w)
	in := func(devices ...int32) []string {
		into := map[string]struct{}{}
		l.Standers(0, devices, into)
		return slices.Sorted(maps.Keys(into))
	}
	if got := in(0, 1, 2, 3); len(got) != 0 {
		t.Errorf("%v in an empty pool", got)
	}
	pool := w.Pools()[0].ID
	l.Take(ledger.Holding{Owner: "x/a", Pool: pool, Device: "d0"})
	l.Take(ledger.Holding{Owner: "x/b", Reservation: "r", Pool: pool, Device: "d1"})
	l.Take(ledger.Holding{Owner: "x/c", Reservation: "r", Pool: pool, Device: "d3"})
	for _, row := range []struct {
		devices []int32
		want    int
	}{{[]int32{0}, 1}, {[]int32{2}, 2}, {[]int32{0, 1, 2, 3}, 2}, {[]int32{3}, 1}, {[]int32{1, 3}, 1}, {nil, 0}} {
		if got := in(row.devices...); len(got) != row.want {
			t.Errorf("%v stand in %v", got, row.devices)
		}
	}
}

// Who has seen all pools is told of those that changed since, whatever they changed to.
func TestChanged(t *testing.T) {
	inv := worlds.Times(200, worlds.KEP8x8).Inventory()
	l := ledger.New(inv)
	seen := ledger.NewSeen(len(inv.Pools()))
	changed := func(l *ledger.Ledger) (out []int) {
		l.Changed(seen, func(pool int) {
			out = append(out, pool)
			seen.See(pool, l.Fingerprint(pool))
		})
		return out
	}
	at := func(pool int, device string) ledger.Holding {
		return ledger.Holding{Owner: "x/a", Pool: inv.Pools()[pool].ID, Device: device}
	}
	check := func(l *ledger.Ledger, want ...int) {
		t.Helper()
		if got := changed(l); !slices.Equal(got, want) {
			t.Errorf("changed are %v, want %v", got, want)
		}
		if got := changed(l); len(got) != 0 {
			t.Errorf("changed again %v", got)
		}
	}
	check(l)
	l.Take(at(3, "tpu-4x4-0"))
	l.Take(at(150, "tpu-2x2-5"))
	check(l, 3, 150)
	other := l.Clone()
	other.Take(at(64, "tpu-4x4-0"))
	other.Give(at(3, "tpu-4x4-0"))
	other.Quarantine(inv.Pools()[199].ID, inv.Pools()[199].Devices[0].Hosts[0])
	check(other, 3, 64, 199)
	check(l, 3, 64, 199)
	// The same is taken of two pools, and each of what the other had.
	l.Give(at(3, "tpu-4x4-0"))
	l.Give(at(150, "tpu-2x2-5"))
	l.Take(at(150, "tpu-4x4-0"))
	l.Take(at(3, "tpu-2x2-5"))
	check(l, 3, 150)
	check(l.Onto(worlds.Times(200, worlds.KEP8x8).Inventory()))
	check(ledger.New(inv), 3, 150)
}
