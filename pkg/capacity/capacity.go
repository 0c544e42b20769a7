package capacity

import (
	"hash/maphash"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// Capacity of one class, or of several classes together, over some managed pools. A device of several of the classes counts
// once. Shares are hosts of devices: what quota is counted in.
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
	// AtMost is what Together cannot exceed. They are equal when Proved.
	AtMost int
	// Largest are devices of such a set by pool position, each in ascending order.
	Largest map[int][]int32
	// Stranded are hosts, in natural order, that stand under usable devices of the classes and are not held, but under
	// none of Largest: nobody who asks for one of these classes can get them now.
	Stranded []string
	// Proved is false when a budget ended the search: then more than Together may be possible.
	Proved bool
	// Whole is what Together would be if nobody held anything; WholeAtMost and WholeProved say the same of it as AtMost and
	// Proved.
	Whole       int
	WholeAtMost int
	WholeProved bool
}

// DefaultBudget is how much work the search does at most for one component, in looks at one device: about 20 ms.
const DefaultBudget = 10_000_000

// Calculator computes capacities and keeps those of pools and components that did not change. A component that did begins
// its search with what was the best for its pool before. What is kept never changes Together where it is proved, only which
// of several equal sets is Largest. It is not safe for concurrent use.
type Calculator struct {
	// Budget is how much work the search does at most for one component, in looks at one device; 0 means DefaultBudget.
	Budget int

	pools      generations[poolKey, poolCapacity]
	published  generations[publishedKey, published]
	components generations[memoKey, solution]
	// best is the last largest set of a pool's devices for the same classes.
	best generations[bestKey, []int32]
}

// Sweep forgets everything that was not asked for since the last Sweep.
func (c *Calculator) Sweep() {
	c.pools.sweep()
	c.published.sweep()
	c.components.sweep()
	c.best.sweep()
}

// Of the classes together over all managed pools. Classes that do not exist have nothing.
func (c *Calculator) Of(inv *inventory.Inventory, l *ledger.Ledger, classes ...string) Capacity {
	return c.In(inv, l, func(inventory.PoolID) bool { return true }, classes...)
}

// In is Of over the pools that in accepts.
func (c *Calculator) In(inv *inventory.Inventory, l *ledger.Ledger, in func(inventory.PoolID) bool, classes ...string) Capacity {
	out := Capacity{Proved: true, WholeProved: true, Largest: map[int][]int32{}}
	for _, m := range members(inv, in, classes) {
		out.add(m.pool, c.pool(inv, l, m.pool, m.devices))
	}
	slices.SortFunc(out.Stranded, inventory.Natural)
	out.Stranded = slices.Compact(out.Stranded)
	return out
}

// memberPool are the devices of some classes in one pool, in ascending order and each once.
type memberPool struct {
	pool    int
	devices []int32
}

func members(inv *inventory.Inventory, in func(inventory.PoolID) bool, classes []string) []memberPool {
	of := map[int][]int32{}
	for _, name := range classes {
		for _, m := range inv.Class(name).Members {
			of[m.Pool] = append(of[m.Pool], m.Devices...)
		}
	}
	var out []memberPool
	for at, p := range inv.Pools() {
		if devices := of[at]; len(devices) > 0 && in(p.ID) {
			slices.Sort(devices)
			out = append(out, memberPool{at, slices.Compact(devices)})
		}
	}
	return out
}

func (out *Capacity) add(pool int, p poolCapacity) {
	out.Devices += p.devices
	out.Usable += p.usable
	out.Free += p.free
	out.Together += p.together
	out.AtMost += p.atMost
	out.Whole += p.whole
	out.WholeAtMost += p.wholeAtMost
	out.Proved = out.Proved && p.proved
	out.WholeProved = out.WholeProved && p.wholeProved
	if len(p.largest) > 0 {
		out.Largest[pool] = slices.Clone(p.largest)
	}
	out.Stranded = append(out.Stranded, p.stranded...)
}

// poolCapacity is Capacity of one pool.
type poolCapacity struct {
	devices, usable, free int
	together, atMost      int
	whole, wholeAtMost    int
	proved, wholeProved   bool
	largest               []int32
	stranded              []string
}

// poolKey stands for everything that the capacity of a pool depends on.
type poolKey struct {
	plan                *inventory.Plan
	budget              int
	devices, off, taken uint64
}

// bestKey is the same whatever is taken or out of use.
type bestKey struct {
	pool    inventory.PoolID
	devices uint64
	whole   bool
}

var seed = maphash.MakeSeed()

// fingerprint tells lists of positions apart within one process.
func fingerprint(devices []int32) uint64 {
	sum := maphash.Comparable(seed, len(devices))
	for i, d := range devices {
		sum = sum*31 + maphash.Comparable(seed, [2]int32{int32(i), d})
	}
	return sum
}

func (c *Calculator) pool(inv *inventory.Inventory, l *ledger.Ledger, pool int, devices []int32) poolCapacity {
	p := inv.Pools()[pool]
	plan, state, occ := p.Plan(), inv.State(pool), l.Occupied(pool)
	of := fingerprint(devices)
	key := poolKey{plan: plan, budget: c.Budget, devices: of, off: state.Fingerprint, taken: occ.Fingerprint}
	if known, ok := c.pools.get(key); ok {
		return known
	}
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
	now := c.largest(plan, free, l.Used(pool), bestKey{p.ID, of, false})
	whole := now
	if slices.ContainsFunc(l.Used(pool), func(milli int64) bool { return milli != 0 }) || len(free) < len(usable) {
		whole = c.largest(plan, usable, nil, bestKey{p.ID, of, true})
	}
	out := poolCapacity{
		devices: len(devices), usable: len(usable), free: len(free),
		together: now.hosts, atMost: now.atMost, proved: now.proved, largest: now.devices,
		whole: whole.hosts, wholeAtMost: whole.atMost, wholeProved: whole.proved,
	}
	serves := make([]bool, len(plan.Hosts()))
	for _, d := range now.devices {
		for _, h := range plan.Under(int(d)) {
			serves[h] = true
		}
	}
	out.stranded = stranded(plan, usable, serves, &occ)
	c.pools.put(key, out)
	return out
}

// stranded lists hosts of usable devices that nothing serves. A host is held when some device that stands on it alone, or
// every device on it, has a holder.
func stranded(plan *inventory.Plan, usable []int32, serves []bool, occ *ledger.Occupied) []string {
	var out []string
	seen := make([]bool, len(serves))
	for _, d := range usable {
		for _, h := range plan.Under(int(d)) {
			if seen[h] || serves[h] {
				continue
			}
			seen[h] = true
			if !held(plan, int(h), occ) {
				out = append(out, plan.Hosts()[h])
			}
		}
	}
	return out
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
