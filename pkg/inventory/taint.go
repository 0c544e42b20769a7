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
	for t, own := range tainted {
		has := map[*Device]bool{}
		for _, d := range own {
			has[d] = true
		}
		for _, part := range own {
			for _, at := range p.around(part) {
				if whole := p.Devices[at]; !has[whole] && p.contains(whole, part) {
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

// around are the positions of the devices that may contain a part: those on its first host, or where it matches no node,
// those that consume its first counter.
func (p *Pool) around(part *Device) []int32 {
	if len(part.Charge) == 0 {
		return nil // Shares nothing with anybody, so it is part of nothing.
	}
	if len(part.Hosts) > 0 {
		host, _ := p.plan.HostPosition(part.Hosts[0])
		return p.plan.On(host)
	}
	var all []int32
	if counter, known := p.CounterIndex(part.Charge[0].CounterSet, part.Charge[0].Counter); known {
		for _, u := range p.plan.Users(counter) {
			all = append(all, u.Device)
		}
	}
	return all
}

// contains reports whether whole includes the hosts and the consumption of part, and the counters do not let both be
// allocated at once. Without the last condition equal siblings on one coarse counter would count as parts of each other.
//
// A device may use two counter sets only, so one of many hosts may consume a coarse counter in place of the fine ones of
// its parts. Of a device on more hosts than the part has, only counters that both consume are compared.
func (p *Pool) contains(whole, part *Device) bool {
	if whole == part {
		return false
	}
	larger := len(part.Hosts) > 0 && len(whole.Hosts) > len(part.Hosts)
	exclusive := false
	for _, c := range part.Charge {
		i, both := slices.BinarySearchFunc(whole.Charge, c, byCounter)
		if !both && larger {
			continue
		}
		if !both || whole.Charge[i].Milli < c.Milli {
			return false
		}
		if at, ok := p.CounterIndex(c.CounterSet, c.Counter); ok && Add(whole.Charge[i].Milli, c.Milli) > p.Counters[at].Milli {
			exclusive = true
		}
	}
	return exclusive && includes(whole.Hosts, part.Hosts)
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
