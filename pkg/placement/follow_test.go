package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// Classes with long lists are followed from ledger to ledger. Each loss is what adding up says.
func TestFollowedAsAddedUp(t *testing.T) {
	inv := worlds.Torus("p").Inventory()
	rng := rand.New(rand.NewPCG(1, 47))
	p := inv.Pools()[0]
	ledgers := []*ledger.Ledger{ledger.New(inv), ledger.New(inv)}
	s := NewScored(0)
	s.prepare(World{Inventory: inv, Ledger: ledgers[0]})
	followed, losses := 0, 0
	for step := range 60 {
		l := ledgers[rng.IntN(2)]
		for range 1 + rng.IntN(12) {
			h := ledger.Holding{Owner: fmt.Sprint("x/", rng.IntN(40)), Pool: p.ID, Device: p.Devices[rng.IntN(len(p.Devices))].Name}
			switch rng.IntN(40) {
			case 0:
				h.Device, h.Hosts = "vanished", p.Devices[rng.IntN(len(p.Devices))].Hosts
			case 1:
				l.Quarantine(p.ID, p.Devices[rng.IntN(len(p.Devices))].Hosts[0])
			}
			if !l.Give(h) {
				l.Take(h)
			}
		}
		if rng.IntN(15) == 0 {
			ledgers[0], ledgers[1] = ledger.New(inv), ledgers[0]
		}
		w := World{Inventory: inv, Ledger: ledgers[rng.IntN(2)]}
		occ := w.Ledger.Occupied(0)
		class := inv.Class([]string{"v5p-64", "v5p-128", "v5p-32", "v5p-4"}[rng.IntN(4)])
		m := &class.Members[0]
		sh := s.shelf(0, w)
		r := sh.ranking(class.Name, m)
		sh.rank(r, m.Devices, &occ)
		if r.follower != nil {
			followed++
		}
		got := map[int32]int64{}
		for _, c := range r.all {
			got[c.device] = c.loss
		}
		fresh := newShelf(inv, s.classes, 0, sh.key, nil)
		fresh.begin(&occ)
		free := 0
		for _, d := range m.Devices {
			if occ.Short != nil && (occ.Short[d] != 0 || occ.Shut[d] != 0) {
				continue
			}
			free++
			if want := fresh.loss(d, &occ); got[d] != want {
				t.Fatalf("step %d, %s: %s costs %d, added up %d", step, class.Name, p.Devices[d].Name, got[d], want)
			}
			losses++
		}
		if free != len(got) {
			t.Fatalf("step %d, %s: %d are free, %d are ranked", step, class.Name, free, len(got))
		}
	}
	if followed < 30 || losses < 1000 {
		t.Errorf("too little variety: %d times followed, %d losses", followed, losses)
	}
}

// What is looked at again after a gang came is what it stands in, not the pool.
func TestFollowingCostsWhatChanged(t *testing.T) {
	inv := worlds.Torus("p").Inventory()
	p := inv.Pools()[0]
	l := ledger.New(inv)
	s := NewScored(0)
	w := World{Inventory: inv, Ledger: l}
	s.prepare(w)
	m := &inv.Class("v5p-64").Members[0]
	sh := s.shelf(0, w)
	r := sh.ranking("v5p-64", m)
	rank := func() int {
		occ := l.Occupied(0)
		sh.rank(r, m.Devices, &occ)
		looks := 0
		for _, d := range r.follower.changed {
			looks += int(r.follower.from[d+1] - r.follower.from[d])
		}
		return looks
	}
	rank()
	l.Take(ledger.Holding{Owner: "x/a", Pool: p.ID, Device: "c3-1-5"})
	if looks := rank(); looks == 0 || looks > r.lists/10 {
		t.Errorf("one host was taken: %d sums changed, all lists together have %d", looks, r.lists)
	}
	l.Take(ledger.Holding{Owner: "x/b", Pool: p.ID, Device: "w2x2x1-0-0-3"})
	if looks := rank(); looks == 0 || looks > r.lists/2 {
		t.Errorf("64 hosts were taken: %d sums changed, all lists together have %d", looks, r.lists)
	}
}
