package capacity

import (
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// solution is a set of devices that can be held together and serve the most hosts.
type solution struct {
	devices []int32
	// hosts that they serve, and what no set can exceed.
	hosts, atMost int
	proved        bool
}

// largest solves each connected component by itself: free devices that share a counter which does not suffice for all of
// them, directly or through others. Each begins with what is left of the set that was the best before, under the same key.
func (c *Calculator) largest(plan *inventory.Plan, free []int32, used []int64, key bestKey) solution {
	out := solution{proved: true}
	before, _ := c.best.get(key)
	for _, part := range components(plan, free, used) {
		s := c.solve(plan, part, used, before)
		out.devices = append(out.devices, s.devices...)
		out.hosts += s.hosts
		out.atMost += s.atMost
		out.proved = out.proved && s.proved
	}
	slices.Sort(out.devices)
	c.best.put(key, out.devices)
	return out
}

func left(plan *inventory.Plan, counter int32, used []int64) int64 {
	if used == nil {
		return plan.Total(int(counter))
	}
	return inventory.Add(plan.Total(int(counter)), -used[counter])
}

func components(plan *inventory.Plan, free []int32, used []int64) [][]int32 {
	root := make(map[int32]int32, len(free))
	find := func(d int32) int32 {
		for root[d] != d {
			root[d] = root[root[d]]
			d = root[d]
		}
		return d
	}
	asked := map[int32]int64{}
	for _, d := range free {
		root[d] = d
		for _, u := range plan.Uses(int(d)) {
			asked[u.Counter] = inventory.Add(asked[u.Counter], u.Milli)
		}
	}
	first := map[int32]int32{}
	for _, d := range free {
		for _, u := range plan.Uses(int(d)) {
			if asked[u.Counter] <= left(plan, u.Counter, used) {
				continue
			}
			if other, seen := first[u.Counter]; seen {
				root[find(d)] = find(other)
			} else {
				first[u.Counter] = d
			}
		}
	}
	at := map[int32]int{}
	var out [][]int32
	for _, d := range free {
		r := find(d)
		i, seen := at[r]
		if !seen {
			i = len(out)
			at[r] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], d)
	}
	return out
}

// solve is exact unless the budget ends. What was found is kept under everything the search looks at, in numbers of the
// component's own, so the same component is known after a change elsewhere, and so is its like in another pool.
func (c *Calculator) solve(plan *inventory.Plan, devices []int32, used []int64, before []int32) solution {
	s := newComponent(plan, devices, used)
	key := s.key(c.Budget)
	found, known := c.components.get(key)
	if !known {
		budget := c.Budget
		if budget <= 0 {
			budget = DefaultBudget
		}
		var hint []int32
		for i, d := range devices {
			if _, was := slices.BinarySearch(before, d); was {
				hint = append(hint, int32(i))
			}
		}
		found = s.solve(budget, hint)
		c.components.put(key, found)
	}
	out := found
	out.devices = make([]int32, 0, len(found.devices))
	for _, i := range found.devices {
		out.devices = append(out.devices, devices[i])
	}
	return out
}
