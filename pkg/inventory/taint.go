package inventory

import (
	"cmp"
	"math"
	"slices"
)

// Device taint effects that keep gangs away.
const (
	NoSchedule = "NoSchedule"
	NoExecute  = "NoExecute"
)

// keepingAway drops taints of other effects, sorts and removes doubles.
func keepingAway(taints []Taint) []Taint {
	var kept []Taint
	for _, t := range taints {
		if t.Effect == NoSchedule || t.Effect == NoExecute {
			kept = append(kept, t)
		}
	}
	slices.SortFunc(kept, byTaint)
	return slices.Compact(kept)
}

func byTaint(a, b Taint) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
}

// spreadTaints gives every taint to the devices that wholly contain the tainted one, never to its parts: a broken host
// takes the rack's largest slice out of use and leaves the other hosts alone.
func (p *Pool) spreadTaints() {
	tainted := map[Taint][]*Device{}
	for _, d := range p.Devices {
		for _, t := range d.Taints {
			tainted[t] = append(tainted[t], d)
		}
	}
	if len(tainted) == 0 {
		return
	}
	consumers := map[counterName][]*Device{}
	for _, d := range p.Devices {
		for _, c := range d.Charge {
			key := counterName{c.CounterSet, c.Counter}
			consumers[key] = append(consumers[key], d)
		}
	}
	for t, own := range tainted {
		has := map[*Device]bool{}
		for _, d := range own {
			has[d] = true
		}
		for _, part := range own {
			if len(part.Charge) == 0 {
				continue // Shares nothing with anybody, so it is part of nothing.
			}
			for _, whole := range consumers[counterName{part.Charge[0].CounterSet, part.Charge[0].Counter}] {
				if !has[whole] && p.contains(whole, part) {
					has[whole] = true
					whole.Taints = append(whole.Taints, t)
				}
			}
		}
	}
	for _, d := range p.Devices {
		slices.SortFunc(d.Taints, byTaint)
	}
}

// contains reports whether whole includes the hosts and the consumption of part, and the counters do not let both be
// allocated at once. Without the last condition equal siblings on one coarse counter would count as parts of each other.
func (p *Pool) contains(whole, part *Device) bool {
	if whole == part || !includes(whole.Hosts, part.Hosts) {
		return false
	}
	takes := map[counterName]int64{}
	for _, c := range whole.Charge {
		takes[counterName{c.CounterSet, c.Counter}] = c.Milli
	}
	exclusive := false
	for _, c := range part.Charge {
		milli := takes[counterName{c.CounterSet, c.Counter}]
		if milli < c.Milli {
			return false
		}
		if i, ok := p.CounterIndex(c.CounterSet, c.Counter); ok && Add(milli, c.Milli) > p.Counters[i].Milli {
			exclusive = true
		}
	}
	return exclusive
}

func includes(whole, part []string) bool {
	if len(part) > len(whole) {
		return false
	}
	in := make(map[string]bool, len(whole))
	for _, h := range whole {
		in[h] = true
	}
	for _, h := range part {
		if !in[h] {
			return false
		}
	}
	return true
}

// Add adds amounts without wrapping around: the result stays at the largest or smallest int64.
func Add(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	default:
		return a + b
	}
}
