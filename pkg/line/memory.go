package line

import (
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// Memory keeps refusals from one pass to the next, with what each depended on. One refusal answers all gangs of equal need
// until something that it depended on got better: a device of its classes became free, a host got room, or the hardware
// changed. Nothing that is taken besides makes a refused gang fit.
//
// Near the head of a queue people read what they are told, so there any change of what is taken makes a refusal stale: the
// holders that it names may be others now. See Fresh.
//
// The zero value is empty. It belongs to one line of passes; a placer whose answers depend on more than the World must
// call Forget when that changes.
type Memory struct {
	refused map[question]*refused
}

// Forget makes the next pass ask about every gang again.
func (m *Memory) Forget() { m.refused = nil }

// question is what the placer was asked: the need, and the targets that were kept from it.
type question struct{ need, targets string }

type refused struct {
	decision placement.Decision
	facts    facts
	used     bool
}

// refusals answers for the placer within one pass.
type refusals struct {
	memory *Memory
	needs  needs
	// need by the UID of the gang.
	need map[string]string
	// now are refusals of this pass. Within a pass less and less is free, so they stand until targets change.
	now map[question]answer
}

// answer is a refusal; fresh when it says what is, and not only why nothing got better.
type answer struct {
	decision placement.Decision
	fresh    bool
}

func newRefusals(m *Memory) refusals {
	if m != nil && m.refused == nil {
		m.refused = map[question]*refused{}
	}
	return refusals{memory: m, needs: needs{hosts: map[uintptr]string{}}, need: map[string]string{}, now: map[question]answer{}}
}

func (r *refusals) needOf(e Entry) string {
	need, known := r.need[e.Gang.UID]
	if !known {
		need = r.needs.of(e.Gang)
		r.need[e.Gang.UID] = need
	}
	return need
}

// Fresh is how many gangs of each queue, from the first on, are told at once when something changes that does not help
// them: another holder, one free device less. Whoever stands further back goes on reading what was true before, so that a
// change costs as much whether a hundred gangs wait or ten thousand.
const Fresh = 32

// fresh reports whether the gang, whose turn it is or comes next, stands near the head of its queue.
func (p *pass) fresh(e Entry) bool { return p.turns.from[e.Queue] <= Fresh }

// ask puts a question to the placer unless the answer is known.
func (p *pass) ask(e Entry, targets []*Target) placement.Decision {
	r := &p.refusals
	q := question{need: r.needOf(e), targets: names(targets)}
	// Nobody reads what is said of a world with targets.
	fresh := len(targets) == 0 && p.fresh(e)
	if a, known := r.now[q]; known && (a.fresh || !fresh) {
		return a.decision
	}
	w := p.world(p.guard(targets))
	if r.memory != nil {
		if old := r.memory.refused[q]; old != nil && old.facts.stillHold(e.Gang, w, fresh) {
			old.used = true
			r.now[q] = answer{old.decision, fresh}
			return old.decision
		}
	}
	p.asked++
	d := p.Placer.Place(e.Gang, w)
	if d.Fits() {
		return d
	}
	r.now[q] = answer{d, true}
	if r.memory != nil {
		f := factsOf(e.Gang, w, !d.Proved || d.Refusal.Code != reason.NoFreeSlice)
		f.guessed, f.demand = !d.Proved, w.Demand
		r.memory.refused[q] = &refused{decision: d, facts: f, used: true}
	}
	return d
}

// changed forgets answers that depended on targets.
func (r *refusals) changed() {
	for q := range r.now {
		if q.targets != "" {
			delete(r.now, q)
		}
	}
}

// forget drops what no gang asked about in this pass.
func (r *refusals) forget() {
	if r.memory == nil {
		return
	}
	for q, old := range r.memory.refused {
		if !old.used {
			delete(r.memory.refused, q)
			continue
		}
		old.used = false
	}
}
