package capacity

import (
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// Capacity of one class, or of several classes together, over all managed pools. A device of several of the classes counts
// once.
type Capacity struct {
	// Devices that the classes select and that can be reserved at all.
	Devices int
	// Usable are those on sound hardware: no device taint, every host there and in use, nothing quarantined.
	Usable int
	// Free are the usable ones that nobody stands in.
	Free int
	// Together are the most hosts that free devices held at the same time can serve, one pod each. For classes of one span
	// that is a number of devices times their hosts.
	Together int
	// Largest are devices of such a set by pool position, each in ascending order.
	Largest map[int][]int32
	// Stranded are hosts, in natural order, that stand under usable devices of the classes and are not held, but under
	// none of Largest: nobody who asks for one of these classes can get them now.
	Stranded []string
	// Proved is false when a budget ended the search: then more than Together may be possible.
	Proved bool
}

// DefaultBudget is how much work the search does at most for one component, in looks at one device: about 20 ms.
const DefaultBudget = 10_000_000

// Calculator computes capacities and keeps those of components that did not change. It is not safe for concurrent use.
type Calculator struct {
	// Budget is how much work the search does at most for one component, in looks at one device; 0 means DefaultBudget.
	Budget int

	memo map[memoKey]solution
	next map[memoKey]solution
}

// Sweep forgets everything that was not asked for since the last Sweep.
func (c *Calculator) Sweep() { c.memo, c.next = c.next, nil }

// Of the classes together. Classes that do not exist have nothing.
func (c *Calculator) Of(inv *inventory.Inventory, l *ledger.Ledger, classes ...string) Capacity {
	out := Capacity{Proved: true, Largest: map[int][]int32{}}
	of := map[int][]int32{}
	for _, name := range classes {
		for _, m := range inv.Class(name).Members {
			of[m.Pool] = append(of[m.Pool], m.Devices...)
		}
	}
	for pool := range inv.Pools() {
		devices := of[pool]
		if len(devices) == 0 {
			continue
		}
		slices.Sort(devices)
		c.pool(inv, l, pool, slices.Compact(devices), &out)
	}
	slices.SortFunc(out.Stranded, inventory.Natural)
	out.Stranded = slices.Compact(out.Stranded)
	return out
}

func (c *Calculator) pool(inv *inventory.Inventory, l *ledger.Ledger, pool int, devices []int32, out *Capacity) {
	plan, state, occ := inv.Pools()[pool].Plan(), inv.State(pool), l.Occupied(pool)
	out.Devices += len(devices)
	var usable, free []int32
	for _, d := range devices {
		if state.Off[d] || occ.Shut != nil && occ.Shut[d] > 0 {
			continue
		}
		usable = append(usable, d)
		if occ.Short == nil || occ.Short[d] == 0 {
			free = append(free, d)
		}
	}
	out.Usable += len(usable)
	out.Free += len(free)

	best := c.largest(plan, free, l.Used(pool))
	out.Proved = out.Proved && best.proved
	if len(best.devices) > 0 {
		out.Largest[pool] = best.devices
	}
	serves := make([]bool, len(plan.Hosts()))
	for _, d := range best.devices {
		for _, h := range plan.Under(int(d)) {
			serves[h] = true
		}
		out.Together += len(plan.Under(int(d)))
	}
	strand(plan, usable, serves, &occ, out)
}

// strand lists hosts of usable devices that nothing serves. A host is held when some device that stands on it alone, or
// every device on it, has a holder.
func strand(plan *inventory.Plan, usable []int32, serves []bool, occ *ledger.Occupied, out *Capacity) {
	seen := make([]bool, len(serves))
	for _, d := range usable {
		for _, h := range plan.Under(int(d)) {
			if seen[h] || serves[h] {
				continue
			}
			seen[h] = true
			if !held(plan, int(h), occ) {
				out.Stranded = append(out.Stranded, plan.Hosts()[h])
			}
		}
	}
}

func held(plan *inventory.Plan, host int, occ *ledger.Occupied) bool {
	if occ.Standing == nil {
		return false
	}
	for _, d := range plan.On(host) {
		if occ.Standing[d] == 0 {
			return false
		}
		if len(plan.Under(int(d))) == 1 {
			return true
		}
	}
	return true
}
