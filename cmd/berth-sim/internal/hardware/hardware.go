package hardware

import (
	"cmp"
	"slices"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// Hardware is what exists and what is taken before the first gang comes.
type Hardware struct {
	Inventory *inventory.Inventory
	// Published is where each device stands in its pool as its driver lists it: by the name of its slice, then by its place
	// in the slice. kube-scheduler's allocator tries devices in this order.
	Published map[inventory.DeviceName]int

	// taken before the first gang comes. Who holds it keeps it for the whole simulation.
	taken *ledger.Ledger
}

// Ledger of what is taken at the beginning. Each call makes a new one.
func (h *Hardware) Ledger() *ledger.Ledger { return h.taken.Clone() }

// Hosts is how many hosts some device stands on.
func (h *Hardware) Hosts() int {
	n := 0
	for _, p := range h.Inventory.Pools() {
		n += len(p.Plan().Hosts())
	}
	return n
}

// Offer is a class with devices of one number of hosts.
type Offer struct {
	Class string
	Hosts int
}

// Offers lists what a gang of one pod per host can be given, the smallest first. Devices of more hosts than one ResourceClaim
// can serve pods are left out: Berth refuses such gangs.
func (h *Hardware) Offers() []Offer {
	var out []Offer
	for _, c := range h.Inventory.Classes() {
		for _, s := range c.Spans() {
			if s.Hosts <= gang.MaxPodsPerClaim {
				out = append(out, Offer{c.Name, s.Hosts})
			}
		}
	}
	slices.SortFunc(out, func(a, b Offer) int {
		return cmp.Or(cmp.Compare(a.Hosts, b.Hosts), inventory.Natural(a.Class, b.Class))
	})
	return out
}

// ofSite is hardware of which nothing is taken.
func ofSite(site *worlds.Site) *Hardware {
	inv := site.Inventory()
	h := &Hardware{Inventory: inv, Published: map[inventory.DeviceName]int{}, taken: ledger.New(inv)}
	listed := slices.Clone(site.Slices)
	slices.SortStableFunc(listed, func(a, b inventory.Published) int { return cmp.Compare(a.Name, b.Name) })
	at := map[inventory.PoolID]int{}
	for _, s := range listed {
		for _, d := range s.Devices {
			h.Published[inventory.DeviceName{Pool: s.Pool, Name: d.Name}] = at[s.Pool]
			at[s.Pool]++
		}
	}
	return h
}
