package capacity

import (
	"cmp"
	"slices"
)

// search is branch and bound for the devices that serve the most hosts. It begins with a greedy set; if that reaches the
// bound, as in every forest, nothing is searched. A branch decides who serves the cell that the fewest devices can still
// serve, or that nobody does. The bound is the hosts that some device can still serve, rounded down to the grain; where
// devices can share a host it is the sum of what is left, which is weaker.
type search struct {
	*component
	// out[d] counts the reasons why device d cannot be taken any more: zero while it is alive.
	out    []int32
	left   []int64
	budget int
	spent  bool

	now    int
	chosen []int32
	most   int
	best   []int32
}

// solve searches for at most budget looks at a device. hint is a set that was good before something changed.
func (s *component) solve(budget int, hint []int32) solution {
	x := &search{component: s, out: make([]int32, len(s.uses)), left: slices.Clone(s.left), budget: budget}
	bound := x.bound()
	x.greedy(nil)
	if x.most < bound && len(hint) > 0 {
		x.greedy(hint)
	}
	if x.most < bound {
		x.branch()
	}
	slices.Sort(x.best)
	out := solution{devices: x.best, hosts: x.most, atMost: x.most, proved: !x.spent}
	if x.spent {
		out.atMost = bound
	}
	return out
}

// bound is the most that alive devices can add.
func (x *search) bound() int {
	sum := 0
	if !x.exclusive {
		for d, worth := range x.worth {
			if x.out[d] == 0 {
				sum += worth
			}
		}
		x.budget -= len(x.worth)
		return sum
	}
	for _, c := range x.cells {
		for _, d := range c.devices {
			x.budget--
			if x.out[d] == 0 {
				sum += c.hosts
				break
			}
		}
	}
	if x.grain > 1 {
		sum -= sum % x.grain
	}
	return sum
}

// greedy takes those of first, then the largest devices, and leaves no trace but best.
func (x *search) greedy(first []int32) {
	order := make([]int32, len(x.worth))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(x.worth[b], x.worth[a]) })
	for _, d := range slices.Concat(first, order) {
		if x.out[d] == 0 && x.fits(d) {
			x.take(d)
		}
	}
	x.keep()
	for len(x.chosen) > 0 {
		x.drop()
	}
}

func (x *search) keep() {
	if x.now > x.most || x.best == nil {
		x.most, x.best = x.now, slices.Clone(x.chosen)
	}
}

// fits is needed beside near: three devices may fit a counter two at a time.
func (x *search) fits(d int32) bool {
	for _, u := range x.uses[d] {
		if x.left[u.counter] < u.milli {
			return false
		}
	}
	return true
}

func (x *search) take(d int32) {
	x.now += x.worth[d]
	x.chosen = append(x.chosen, d)
	for _, u := range x.uses[d] {
		x.left[u.counter] -= u.milli
	}
	x.out[d]++
	for _, o := range x.near[d] {
		x.out[o]++
	}
	x.budget -= len(x.near[d])
}

func (x *search) drop() {
	d := x.chosen[len(x.chosen)-1]
	x.chosen = x.chosen[:len(x.chosen)-1]
	x.now -= x.worth[d]
	for _, u := range x.uses[d] {
		x.left[u.counter] += u.milli
	}
	x.out[d]--
	for _, o := range x.near[d] {
		x.out[o]--
	}
}

func (x *search) branch() {
	if x.budget < 0 {
		x.spent = true
		return
	}
	x.keep()
	if x.now+x.bound() <= x.most {
		return
	}
	pivot := x.pivot()
	for _, d := range pivot {
		if x.fits(d) {
			x.take(d)
			x.branch()
			x.drop()
		}
		if x.spent {
			return
		}
	}
	// Nobody serves the cell.
	for _, d := range pivot {
		x.out[d]++
	}
	x.branch()
	for _, d := range pivot {
		x.out[d]--
	}
}

// pivot is the alive devices of the cell that has the fewest, the largest first; where devices can share hosts, one device.
func (x *search) pivot() []int32 {
	var few []int32
	if !x.exclusive {
		for d := range x.out {
			if x.out[d] == 0 {
				return []int32{int32(d)}
			}
		}
		return nil
	}
	least := -1
	for i, c := range x.cells {
		alive := 0
		for _, d := range c.devices {
			x.budget--
			if x.out[d] == 0 {
				alive++
			}
		}
		if alive > 0 && (least < 0 || alive < len(few)) {
			least = i
			few = few[:0]
			for _, d := range c.devices {
				if x.out[d] == 0 {
					few = append(few, d)
				}
			}
		}
	}
	slices.SortStableFunc(few, func(a, b int32) int { return cmp.Compare(x.worth[b], x.worth[a]) })
	return few
}
