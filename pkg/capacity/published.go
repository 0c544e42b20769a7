package capacity

import (
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Published is what some classes would have in one pool if everything were sound and nobody held anything.
type Published struct {
	// Pool is the position in Inventory.Pools.
	Pool int
	// Hosts that devices held at the same time can serve, one pod each, and what no set of devices can exceed. They are equal
	// unless a budget ended the search.
	Hosts, AtMost int
}

type publishedKey struct {
	plan    *inventory.Plan
	budget  int
	devices uint64
}

type published struct{ hosts, atMost int }

// Published of the classes together in each managed pool that in accepts and that has devices of them, in order.
func (c *Calculator) Published(inv *inventory.Inventory, in func(inventory.PoolID) bool, classes ...string) []Published {
	var out []Published
	for _, m := range members(inv, in, classes) {
		p := inv.Pools()[m.pool]
		of := fingerprint(m.devices)
		key := publishedKey{p.Plan(), c.Budget, of}
		known, ok := c.published.get(key)
		if !ok {
			s := c.largest(p.Plan(), m.devices, nil, bestKey{p.ID, of, true})
			known = published{s.hosts, s.atMost}
			c.published.put(key, known)
		}
		out = append(out, Published{m.pool, known.hosts, known.atMost})
	}
	return out
}

// Beside is how many of the devices, positions in ascending order that stand on equally many hosts, can be held at the same
// time on sound hardware that nobody holds, and whether no more can.
func (c *Calculator) Beside(plan *inventory.Plan, devices []int32) (count int, proved bool) {
	if len(devices) == 0 {
		return 0, true
	}
	proved = true
	for _, part := range components(plan, devices, nil) {
		s := c.solve(plan, part, nil, nil)
		count += len(s.devices)
		proved = proved && s.proved
	}
	return count, proved
}

// Members are the positions of the devices of the classes in the pools that in accepts, by pool position, in ascending order.
func Members(inv *inventory.Inventory, in func(inventory.PoolID) bool, classes ...string) map[int][]int32 {
	out := map[int][]int32{}
	for _, m := range members(inv, in, classes) {
		out[m.pool] = slices.Clone(m.devices)
	}
	return out
}
