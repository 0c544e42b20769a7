package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/pkg/reason"
)

// Small nodes that no device stands on do not make hosts small.
func TestEveryHostLarge(t *testing.T) {
	site := worlds.KEP8x8("p")
	site.Hosts = append(site.Hosts, inventory.Host{Name: "control-plane", Allocatable: map[string]int64{"cpu": 4000}})
	if !everyHostLarge(site.Inventory(), map[string]int64{"cpu": 8000}) {
		t.Error("a node without devices counts")
	}
	site.Hosts[3].Allocatable["cpu"] = 7999
	if everyHostLarge(site.Inventory(), map[string]int64{"cpu": 8000}) {
		t.Error("a host of devices does not count")
	}
	site.Hosts[3].Blocked = &reason.Evidence{Kind: reason.KindHost, Name: site.Hosts[3].Name, Code: reason.HostUnusable, Detail: "is cordoned"}
	if !everyHostLarge(site.Inventory(), map[string]int64{"cpu": 8000}) {
		t.Error("a host that is out of use counts")
	}
}

// Who holds devices is asked of all together; each asked by itself says the same.
func TestHeldTogetherAsEachByItself(t *testing.T) {
	together, alone, onePool, twoPools := 0, 0, 0, 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 31))
		site := worlds.Random(rng, "p", 2+rng.IntN(7), 3+rng.IntN(12))
		site.Add(worlds.Random(rng, "q", 2+rng.IntN(4), 2+rng.IntN(5)))
		for i := range site.Hosts {
			if rng.IntN(12) == 0 {
				site.Hosts[i].Blocked = &reason.Evidence{Kind: reason.KindHost, Name: site.Hosts[i].Name, Code: reason.HostUnusable, Detail: "is cordoned"}
			}
		}
		inv := site.Inventory()
		l := ledger.New(inv)
		for i := range 2 + rng.IntN(8)*(1+rng.IntN(2)) {
			p := inv.Pools()[rng.IntN(len(inv.Pools()))]
			h := ledger.Holding{Owner: fmt.Sprint("x/o", rng.IntN(12)), Pool: p.ID, Device: p.Devices[rng.IntN(len(p.Devices))].Name}
			switch rng.IntN(6) {
			case 0:
				h.Device, h.Hosts = "vanished", p.Devices[0].Hosts
			case 1:
				h.Reservation = fmt.Sprint(i)
			case 2:
				l.Quarantine(p.ID, p.Devices[0].Hosts[0])
			}
			l.Take(h)
		}
		for _, c := range inv.Classes() {
			set := &gang.PodSet{Name: "main", Count: c.Members[0].Span, Requests: map[string]int64{"cpu": 1000},
				Claims: []gang.Claim{{PodClaim: "tpu", Requests: []gang.Request{{Name: "r", Class: c.Name, Count: 1}}}}}
			if rng.IntN(4) == 0 {
				set.Ineligible = map[string]string{inv.Hosts()[0]: "is not for these pods"}
			}
			w := World{Inventory: inv, Ledger: l}
			p, refusal := planFor(set, w.Inventory)
			if refusal != nil {
				continue
			}
			s := newSearch(w, []*plan{p}, 0)
			it := p.items[0]
			o, out, held := s.narrow(p, it)
			var each []*blocked
			var free []*inventory.Device
			for _, d := range it.devices {
				if b := s.blocked(d, it, p); b != nil {
					each = append(each, b)
				} else {
					free = append(free, d)
				}
			}
			if !slices.Equal(free, o.all) {
				t.Fatalf("seed %d, %s: other devices are free", seed, c.Name)
			}
			for _, h := range held {
				together += len(h.devices)
			}
			alone += len(out)
			needed := len(it.devices) + 1
			got, want := tooFew(it, needed, o, out, held), tooFew(it, needed, o, each, nil)
			switch more := strings.Contains(got.Message, " more"); {
			case more && len(held) == 1:
				onePool++
			case more && len(held) > 1:
				twoPools++
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, %s: (-each by itself +together)\n%s", seed, c.Name, diff)
			}
		}
	}
	if together < 500 || alone < 500 || onePool < 50 || twoPools < 50 {
		t.Errorf("too little variety: %d together, %d alone; more holders than are told in one pool %d times, in two %d times", together, alone, onePool, twoPools)
	}
}
