package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// The domains with room, as a lineup keeps them in order, are those that are found by going through all candidates.
func TestRoomyAsFoundByLookingAtAll(t *testing.T) {
	met := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 59))
		inv := worlds.GPURacks(2+rng.IntN(9), 2+rng.IntN(5), 1+rng.IntN(3)).Inventory()
		ledgers := []*ledger.Ledger{ledger.New(inv), ledger.New(inv)}
		s := NewScored(0)
		for step := range 100 {
			l := ledgers[rng.IntN(2)]
			pool := inv.Pools()[rng.IntN(len(inv.Pools()))]
			d := pool.Devices[rng.IntN(len(pool.Devices))]
			h := ledger.Holding{Owner: fmt.Sprint("x/", rng.IntN(20)), Pool: pool.ID, Device: d.Name}
			if rng.IntN(6) == 0 {
				h.Device, h.Hosts = "vanished", d.Hosts
			}
			if !l.Give(h) && rng.IntN(3) > 0 {
				l.Take(h)
			}
			if rng.IntN(10) == 0 {
				ledgers[0], ledgers[1] = ledgers[1], l.Clone()
			}
			w := World{Inventory: inv, Ledger: ledgers[rng.IntN(2)]}
			set := &gang.PodSet{Name: "main", Count: 2 + rng.IntN(6), Claims: []gang.Claim{{PodClaim: "gpu", Requests: []gang.Request{{Name: "r", Class: "gpu", Count: 1}}}}}
			p, refusal := planFor(set, inv)
			if refusal != nil {
				t.Fatal(refusal)
			}
			s.prepare(w)
			s.visit++
			var got []roomy
			want := s.roomy(p, w, s.worths(w))
			until := len(want)
			if until > 0 && rng.IntN(2) == 0 {
				until = rng.IntN(until) // A decision looks at the first few.
			}
			s.eachRoomy(p, w, func(r roomy, worth int64) bool {
				if worth != s.worths(w)[r.domain] {
					t.Fatalf("seed %d, step %d: domain %d is worth %d", seed, step, r.domain, worth)
				}
				if len(got) == until {
					return false
				}
				got = append(got, r)
				return true
			})
			if !slices.Equal(got, want[:until]) {
				t.Fatalf("seed %d, step %d, %d pods: got %v, want %v", seed, step, set.Count, got, want[:until])
			}
			met += len(got)
		}
	}
	if met < 5000 {
		t.Errorf("too little variety: %d domains with room", met)
	}
}

// One pool of many domains was touched: one domain is appraised and one pool ranked again.
func TestManyDomainsCostAsOne(t *testing.T) {
	inv := worlds.GPURacks(300, 4, 1).Inventory()
	l := ledger.New(inv)
	other := l.Clone()
	touched := inv.Pools()[411]
	other.Take(ledger.Holding{Owner: "x/a", Pool: touched.ID, Device: touched.Devices[0].Name})
	s := NewScored(0)
	both := []World{{Inventory: inv, Ledger: l}, {Inventory: inv, Ledger: other}}
	s.prepare(both[0])
	class := inv.Class("gpu")
	it := &item{class: class, span: 1, req: &gang.Request{Class: class.Name, Count: 1}}
	s.lineup(it, both[0])
	const unknown = -7
	for i := range s.appraised.worth {
		s.appraised.worth[i] = unknown
	}
	for _, r := range s.rank[class] {
		r.all = append(r.all[:0], candidate{loss: unknown})
	}
	s.lineup(it, both[1])
	appraised, ranked := 0, 0
	for _, worth := range s.appraised.worth {
		if worth != unknown {
			appraised++
		}
	}
	for _, r := range s.rank[class] {
		if len(r.all) == 0 || r.all[0].loss != unknown {
			ranked++
		}
	}
	if appraised != 1 || ranked != 1 {
		t.Errorf("%d domains were appraised and %d pools ranked again", appraised, ranked)
	}
}
