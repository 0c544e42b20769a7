package placement

// curve is the cheapest way to take 0, 1, 2, … devices of a class from some part of the hardware.
type curve struct {
	// cost[j] of j devices, as twice the loss; cost[0] is 0.
	cost []int64
	// pick[j] is how, as an index of picks.
	pick []int32
}

// pick is a set of devices: one, or two sets together, or nothing.
type pick struct {
	suitor      suitor
	one         bool
	left, right int32
}

// picks keeps the sets of many curves. The first is the empty set.
type picks struct {
	all []pick
	// budget is how many pairs may still be compared.
	budget int
}

func newPicks(budget int) *picks { return &picks{all: make([]pick, 1), budget: budget} }

func (p *picks) nothing() curve { return curve{cost: []int64{0}, pick: []int32{0}} }

func (p *picks) single(c suitor, cost int64) curve {
	p.all = append(p.all, pick{suitor: c, one: true})
	return curve{cost: []int64{0, cost}, pick: []int32{0, int32(len(p.all) - 1)}}
}

func (p *picks) join(left, right int32) int32 {
	if left == 0 {
		return right
	}
	if right == 0 {
		return left
	}
	p.all = append(p.all, pick{left: left, right: right})
	return int32(len(p.all) - 1)
}

// beside is the curve of two parts that have nothing in common, up to most devices. Of equal costs, as many as possible
// come from a. It is false when the budget ends.
func (p *picks) beside(a, b curve, most int) (curve, bool) {
	if len(b.cost) == 1 {
		return a, true
	}
	if len(a.cost) == 1 {
		return b, true
	}
	if p.budget -= len(a.cost) * len(b.cost); p.budget < 0 {
		return curve{}, false
	}
	n := min(len(a.cost)+len(b.cost)-2, most)
	out := curve{cost: make([]int64, n+1), pick: make([]int32, n+1)}
	for j := 1; j <= n; j++ {
		from := -1
		for i := min(j, len(a.cost)-1); i >= 0 && j-i < len(b.cost); i-- {
			if cost := a.cost[i] + b.cost[j-i]; from < 0 || cost < out.cost[j] {
				from, out.cost[j] = i, cost
			}
		}
		out.pick[j] = p.join(a.pick[from], b.pick[j-from])
	}
	return out, true
}

// devices of a set, in the order in which curves were put together.
func (p *picks) devices(at int32) []suitor {
	var out []suitor
	stack := []int32{at}
	for len(stack) > 0 {
		at := p.all[stack[len(stack)-1]]
		stack = stack[:len(stack)-1]
		switch {
		case at.one:
			out = append(out, at.suitor)
		case at.left != 0:
			stack = append(stack, at.right, at.left)
		}
	}
	return out
}
