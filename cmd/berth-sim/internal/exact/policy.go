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
type Placer struct{ view view }

var _ placement.Placer = (*Placer)(nil)

// Placer of the best policy.
func (s *Solution) Placer() *Placer { return &Placer{s.view()} }

// equal values, in host-hours, differ by less: what value iteration leaves undecided is decided by name.
const equal = 1e-6

// Place implements placement.Placer.
func (p *Placer) Place(g gang.Gang, w placement.World) placement.Decision {
	set := &g.PodSets[0]
	request := &set.Claims[0].Requests[0]
	p.view.look(w)
	best, _ := p.view.best(request.Class, set.Count, w.Inventory)
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

// Judge says what the decisions of any policy cost.
//
// In the long run a policy's goodput falls short of the best one's by exactly what its decisions lose in value, summed over a
// run of that policy and divided by hosts and time (the performance difference lemma for average rewards). That has a far
// smaller error than the difference of two goodputs.
type Judge struct{ view view }

// Judge of a run. It is not safe for concurrent use.
func (s *Solution) Judge() *Judge { return &Judge{s.view()} }

// Loss is by how many host-hours what a gang was given leads to less than the best that it could have been given. The
// decision must fit and not be booked yet.
func (j *Judge) Loss(w placement.World, d placement.Decision) float64 {
	chosen := &d.PodSets[0].Claims[0].Instances[0].Devices[0]
	at := j.view.tree.at[inventory.DeviceName{Pool: chosen.Pool, Name: chosen.Name}]
	j.view.look(w)
	_, most := j.view.best(j.view.tree.classes[j.view.tree.devices[at].class].Name, len(chosen.Hosts), w.Inventory)
	return max(0, most-j.view.value[j.view.after(at)])
}

// view is a world as the Solution knows it.
type view struct {
	*Solution
	// now is the state of each device of the tree, held which of them are.
	now  []int
	held []bool
}

func (s *Solution) view() view {
	n := len(s.tree.devices)
	return view{Solution: s, now: make([]int, n), held: make([]bool, n)}
}

// look reads what is held.
func (v *view) look(w placement.World) {
	clear(v.held)
	for _, h := range w.Ledger.Holdings() {
		v.held[v.tree.at[inventory.DeviceName{Pool: h.Pool, Name: h.Device}]] = true
	}
	v.survey(len(v.tree.devices) - 1)
}

// best is the free device that leads to the best state, and the value of that; nil when none is free.
func (v *view) best(class string, hosts int, inv *inventory.Inventory) (*inventory.Device, float64) {
	var best *inventory.Device
	most := 0.0
	for _, d := range inv.Class(class).OfSpan(hosts) {
		at := v.tree.at[inventory.DeviceName{Pool: d.Pool, Name: d.Name}]
		if v.now[at] != v.states.empty(v.tree.devices[at].form) || v.covered(at) {
			continue
		}
		if x := v.value[v.after(at)]; best == nil || x > most+equal {
			best, most = d, x
		}
	}
	return best, most
}

// survey computes the state of a subtree.
func (v *view) survey(at int) int {
	d := &v.tree.devices[at]
	st := state{form: d.form, held: v.held[at]}
	for _, c := range d.children {
		n := v.survey(c)
		if !st.held {
			st.children = append(st.children, n)
		}
	}
	v.now[at] = v.states.intern(st)
	return v.now[at]
}

// covered reports whether something that the device lies in is held.
func (v *view) covered(at int) bool {
	for up := v.tree.devices[at].parent; up >= 0; up = v.tree.devices[up].parent {
		if v.held[up] {
			return true
		}
	}
	return false
}

// after is the state of the root once the device is held.
func (v *view) after(at int) int {
	t, s := v.tree, v.states
	became := s.hold(t.devices[at].form)
	for t.devices[at].parent >= 0 {
		before := v.now[at]
		at = t.devices[at].parent
		st := state{form: t.devices[at].form, children: slices.Clone(s.all[v.now[at]].children)}
		st.children[slices.Index(st.children, before)] = became
		became = s.intern(st)
	}
	return became
}
