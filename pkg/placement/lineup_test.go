package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// scored finds the first candidates by looking at all of them, with nothing kept.
func scored(it *item, set *gang.PodSet, w World, best int) []suitor {
	s := NewScored(0)
	s.prepare(w)
	s.visit++
	var all []suitor
	for i, r := range s.rankings(it, w) {
		m := &it.class.Members[i]
		for at := 0; m.Span == it.span; at++ {
			c, ok := r.at(at)
			if !ok {
				break
			}
			if s.suits(m.Pool, c.device, it.req, set, w) {
				all = append(all, suitor{c, m.Pool})
			}
		}
	}
	slices.SortFunc(all, func(a, b suitor) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return all[:min(len(all), best)]
}

func TestLineupAgreesWithLookingAtAll(t *testing.T) {
	found, none := 0, 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 37))
		site := &worlds.Site{}
		for i := range 1 + rng.IntN(9) {
			if rng.IntN(2) == 0 {
				site.Add(worlds.KEP8x8(fmt.Sprint("k", i)))
			} else {
				site.Add(worlds.Random(rng, fmt.Sprint("p", i), 2+rng.IntN(6), 2+rng.IntN(8)))
			}
		}
		inv := site.Inventory()
		ledgers := []*ledger.Ledger{ledger.New(inv), ledger.New(inv)}
		s := NewScored(0)
		for step := range 120 {
			l := ledgers[rng.IntN(2)]
			p := inv.Pools()[rng.IntN(len(inv.Pools()))]
			h := ledger.Holding{Owner: fmt.Sprint("x/", rng.IntN(30)), Pool: p.ID, Device: p.Devices[rng.IntN(len(p.Devices))].Name}
			if !l.Give(h) && rng.IntN(3) > 0 {
				l.Take(h)
			}
			if rng.IntN(10) == 0 {
				ledgers[0], ledgers[1] = ledgers[1], l.Clone()
			}
			w := World{Inventory: inv, Ledger: ledgers[rng.IntN(2)]}
			c := inv.Classes()[rng.IntN(len(inv.Classes()))]
			set := &gang.PodSet{Name: "main", Count: c.Members[0].Span, Requests: map[string]int64{"cpu": 1000}}
			if rng.IntN(3) == 0 {
				host := inv.Hosts()[rng.IntN(len(inv.Hosts()))]
				set.Ineligible = map[string]string{host: "x"}
			}
			it := &item{class: c, span: c.Members[rng.IntN(len(c.Members))].Span, req: &gang.Request{Class: c.Name, Count: 1}}
			s.prepare(w)
			s.visit++
			if rng.IntN(4) == 0 {
				s.rankings(it, World{Inventory: inv, Ledger: ledgers[rng.IntN(2)]}) // As another kind of gang would have them.
			}
			var best [runnersUp + 1]suitor
			got := best[:s.first(s.lineup(it, w), it, set, w, best[:])]
			want := scored(it, set, w, len(best))
			if diff := cmp.Diff(want, append([]suitor{}, got...), cmp.AllowUnexported(suitor{}, candidate{})); len(want) > 0 && diff != "" || len(got) != len(want) {
				t.Fatalf("seed %d, step %d, %s: (-all +lineup)\n%s", seed, step, c.Name, diff)
			}
			if len(got) > 0 {
				found++
			} else {
				none++
			}
		}
	}
	if found < 1000 || none < 200 {
		t.Errorf("too little variety: %d found, %d with none", found, none)
	}
}

// One pool of many was touched: one is ranked again, and nothing is allocated.
func TestManyPoolsCostAsOne(t *testing.T) {
	inv := worlds.Times(300, worlds.KEP8x8).Inventory()
	l := ledger.New(inv)
	l.Take(ledger.Holding{Owner: "x/a", Pool: inv.Pools()[7].ID, Device: "tpu-2x2-3"})
	other := l.Clone()
	other.Take(ledger.Holding{Owner: "x/b", Pool: inv.Pools()[200].ID, Device: "tpu-2x2-5"})
	both := []World{{Inventory: inv, Ledger: l}, {Inventory: inv, Ledger: other}}
	s := NewScored(0)
	s.prepare(both[0])
	class := inv.Class("tpu-4x4")
	it := &item{class: class, span: 4, req: &gang.Request{Class: class.Name, Count: 1}}
	set := &gang.PodSet{Name: "main", Count: 4, Requests: map[string]int64{"cpu": 1000, "pods": 1000}}
	s.lineup(it, both[0])
	fingerprints := func() (out []uint64) {
		for _, r := range s.rank[class] {
			out = append(out, r.taken)
		}
		return out
	}
	before := fingerprints()
	s.lineup(it, both[1])
	ranked := 0
	for i, now := range fingerprints() {
		if now != before[i] {
			ranked++
		}
	}
	if ranked != 1 {
		t.Errorf("%d pools were ranked again", ranked)
	}
	var best [runnersUp + 1]suitor
	turn := 0
	if allocs := testing.AllocsPerRun(100, func() {
		turn++
		s.visit++
		w := both[turn%2]
		if n := s.first(s.lineup(it, w), it, set, w, best[:]); n != len(best) {
			t.Errorf("%d found", n)
		}
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
