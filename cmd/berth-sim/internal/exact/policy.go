package exact

import (
	"slices"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// Placer follows a Solution. Of devices that lead to equally good states it takes the first by pool and name. It is not
// safe for concurrent use, and serves only the world that was solved.
type Placer struct {
	solution *Solution
	// states of each device of the tree, made anew for each gang.
	now  []int
	held []bool
}

var _ placement.Placer = (*Placer)(nil)

// Placer of the best policy.
func (s *Solution) Placer() *Placer {
	n := len(s.tree.devices)
	return &Placer{solution: s, now: make([]int, n), held: make([]bool, n)}
}

// equal values differ by less: what value iteration leaves undecided is decided by name.
const equal = 1e-6

// Place implements placement.Placer.
func (p *Placer) Place(g gang.Gang, w placement.World) placement.Decision {
	t, s := p.solution.tree, p.solution.states
	set := &g.PodSets[0]
	request := &set.Claims[0].Requests[0]
	clear(p.held)
	for _, h := range w.Ledger.Holdings() {
		p.held[t.at[inventory.DeviceName{Pool: h.Pool, Name: h.Device}]] = true
	}
	root := len(t.devices) - 1
	p.survey(root)
	var best *inventory.Device
	most := 0.0
	for _, d := range w.Inventory.Class(request.Class).OfSpan(set.Count) {
		at := t.at[inventory.DeviceName{Pool: d.Pool, Name: d.Name}]
		if p.now[at] != s.empty(t.devices[at].form) || p.covered(at) {
			continue
		}
		if v := p.solution.value[p.after(at)]; best == nil || v > most+equal {
			best, most = d, v
		}
	}
	if best == nil {
		return placement.Decision{Refusal: &reason.Refusal{Code: reason.NoFreeSlice, Message: "no " + request.Class + " is free"}, Proved: true}
	}
	return placement.Decision{Proved: true, PodSets: []placement.PodSet{{Name: set.Name, Hosts: best.Hosts, Claims: []placement.Claim{{
		PodClaim: set.Claims[0].PodClaim, PodsPerClaim: len(best.Hosts),
		Instances: []placement.Instance{{Devices: []placement.Device{{
			Request: request.Name, Pool: best.Pool, Generation: best.Generation, Name: best.Name, Hosts: best.Hosts, Charge: best.Charge,
		}}}},
	}}}}}
}

// survey computes the state of a subtree.
func (p *Placer) survey(at int) int {
	d := &p.solution.tree.devices[at]
	st := state{form: d.form, held: p.held[at]}
	for _, c := range d.children {
		n := p.survey(c)
		if !st.held {
			st.children = append(st.children, n)
		}
	}
	p.now[at] = p.solution.states.intern(st)
	return p.now[at]
}

// covered reports whether something that the device lies in is held.
func (p *Placer) covered(at int) bool {
	for up := p.solution.tree.devices[at].parent; up >= 0; up = p.solution.tree.devices[up].parent {
		if p.held[up] {
			return true
		}
	}
	return false
}

// after is the state of the root once the device is held.
func (p *Placer) after(at int) int {
	t, s := p.solution.tree, p.solution.states
	became := s.hold(t.devices[at].form)
	for t.devices[at].parent >= 0 {
		before := p.now[at]
		at = t.devices[at].parent
		st := state{form: t.devices[at].form, children: slices.Clone(s.all[p.now[at]].children)}
		st.children[slices.Index(st.children, before)] = became
		became = s.intern(st)
	}
	return became
}
