package ledger_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// Of many holders of one device each is named once and in natural order, whether they are asked for by the device or by many.
func TestManyHolders(t *testing.T) {
	var groups [][]int
	var all []int
	for i := range 60 {
		groups, all = append(groups, []int{i}), append(all, i)
	}
	inv := worlds.Groups("p", 60, append(groups, all)).Inventory()
	p := inv.Pools()[0]
	var single []*inventory.Device
	var whole *inventory.Device
	for _, d := range p.Devices {
		if len(d.Hosts) == 1 {
			single = append(single, d)
		} else {
			whole = d
		}
	}
	at, _ := p.Plan().Position(whole)
	l := ledger.New(inv)
	for n := range single {
		// Every third is the holder of two.
		l.Take(ledger.Holding{Owner: fmt.Sprint("x/o", 100-n+n%3/2), Reservation: fmt.Sprint(n), Pool: p.ID, Device: single[n].Name})
		var want, each []string
		for _, h := range l.Holdings() {
			want = append(want, h.Owner)
		}
		slices.SortFunc(want, inventory.Natural)
		want = slices.Compact(want)
		if got := l.Holders(whole); !slices.Equal(got, want) {
			t.Fatalf("after %d: held by %v, want %v", n+1, got, want)
		}
		l.EachHolder(0, []int32{int32(at)}, func(owner string) { each = append(each, owner) })
		if !slices.Equal(each, want) {
			t.Fatalf("after %d: of many held by %v, want %v", n+1, each, want)
		}
	}
	if want := 40; len(l.Holders(whole)) != want {
		t.Errorf("%d holders, want %d", len(l.Holders(whole)), want)
	}
}
