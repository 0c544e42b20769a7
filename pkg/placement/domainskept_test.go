package placement_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// tiedSite is racks of hosts with a pool each, and sometimes pools of several domains, of none, and larger ones of one.
func tiedSite(rng *rand.Rand) *worlds.Site {
	site := worlds.GPURacks(2+rng.IntN(5), 2+rng.IntN(4), 1+rng.IntN(2))
	scattered := rng.IntN(3) == 0
	for i := range rng.IntN(3) {
		more := worlds.Random(rng, fmt.Sprint("q", i), 2+rng.IntN(5), 2+rng.IntN(8))
		more.Tie("example.com/rack", func(d *inventory.Device) string {
			if scattered {
				return d.Hosts[0]
			}
			return []string{"rack-0", "", "elsewhere"}[i]
		})
		site.Add(more)
	}
	return site
}

// Whatever a Scored decided before, it decides as one that was never asked: nothing that it keeps of domains goes stale.
func TestDomainsKeptAsFoundAnew(t *testing.T) {
	fits, not, spread := 0, 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 53))
		site := tiedSite(rng)
		inventories := []*inventory.Inventory{site.Inventory(), site.Inventory()}
		inv := inventories[0]
		ledgers := []*ledger.Ledger{ledger.New(inv), ledger.New(inv)}
		kept := placement.NewScored(0)
		for step := range 80 {
			l := ledgers[rng.IntN(2)]
			p := inv.Pools()[rng.IntN(len(inv.Pools()))]
			d := p.Devices[rng.IntN(len(p.Devices))]
			h := ledger.Holding{Owner: fmt.Sprint("x/", rng.IntN(6)), Pool: p.ID, Device: d.Name}
			switch rng.IntN(8) {
			case 0:
				if !l.Lift(p.ID, d.Hosts[0]) {
					l.Quarantine(p.ID, d.Hosts[0])
				}
			case 1:
				h.Device, h.Hosts = "vanished", d.Hosts
				fallthrough
			default:
				if !l.Give(h) && rng.IntN(3) > 0 {
					l.Take(h)
				}
			}
			switch rng.IntN(25) {
			case 0, 1:
				ledgers[0], ledgers[1] = ledgers[1], l.Clone()
			case 2:
				inv = inventories[rng.IntN(2)]
				ledgers[0], ledgers[1] = ledgers[0].Onto(inv), ledgers[1].Onto(inv)
			}
			w := placement.World{Inventory: inv, Ledger: ledgers[rng.IntN(2)]}
			c := inv.Classes()[rng.IntN(len(inv.Classes()))]
			m := c.Members[rng.IntN(len(c.Members))]
			g := asking(c.Name, m.Span, 1+rng.IntN(5))
			g.PodSets[0].Interconnect = []gang.Interconnect{gang.Preferred, gang.Required}[rng.IntN(2)]
			got, want := kept.Place(g, w), placement.NewScored(0).Place(g, w)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, step %d, %s: (-anew +kept)\n%s", seed, step, c.Name, diff)
			}
			switch {
			case !got.Fits():
				not++
			case got.PodSets[0].Across:
				spread++
			default:
				fits++
			}
		}
	}
	if fits < 1000 || not < 200 || spread < 50 {
		t.Errorf("too little variety: %d fit, %d do not, %d are spread", fits, not, spread)
	}
}
