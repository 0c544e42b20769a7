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
