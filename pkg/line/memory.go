package line

import (
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// Memory keeps refusals from one pass to the next, with what each depended on. One refusal answers all gangs of equal need
// until something that it depended on got better: a device of its classes became free, a host got room, or the hardware
// changed. Nothing that is taken besides makes a refused gang fit.
//
// A refusal is dropped, too, when a holder that it names holds nothing any more, so that what people read is true.
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
	now map[question]placement.Decision
	// holders are all that hold something, read when first needed.
	holders map[string]bool
}

func newRefusals(m *Memory) refusals {
	if m != nil && m.refused == nil {
		m.refused = map[question]*refused{}
	}
	return refusals{memory: m, needs: needs{hosts: map[uintptr]string{}}, need: map[string]string{}, now: map[question]placement.Decision{}}
}

func (r *refusals) needOf(e Entry) string {
	need, known := r.need[e.Gang.UID]
	if !known {
		need = r.needs.of(e.Gang)
		r.need[e.Gang.UID] = need
	}
	return need
}

// ask puts a question to the placer unless the answer is known.
func (p *pass) ask(e Entry, targets []*Target) placement.Decision {
	r := &p.refusals
	q := question{need: r.needOf(e), targets: names(targets)}
	if d, known := r.now[q]; known {
		return d
	}
	w := p.world(p.guard(targets))
	if r.memory != nil {
		if old := r.memory.refused[q]; old != nil && old.facts.stillHold(e.Gang, w) && r.still(old.decision, w.Ledger) {
			old.used = true
			r.now[q] = old.decision
			return old.decision
		}
	}
	p.asked++
	d := p.Placer.Place(e.Gang, w)
	if d.Fits() {
		return d
	}
	r.now[q] = d
	if r.memory != nil {
		r.memory.refused[q] = &refused{decision: d, facts: factsOf(e.Gang, w, !d.Proved || d.Refusal.Code != reason.NoFreeSlice), used: true}
	}
	return d
}

// still reports whether every holder that a refusal names holds something.
func (r *refusals) still(d placement.Decision, l *ledger.Ledger) bool {
	for _, e := range d.Refusal.Evidence {
		if e.Kind != reason.KindHolder {
			continue
		}
		if r.holders == nil {
			r.holders = map[string]bool{}
			for _, h := range l.Holdings() {
				r.holders[h.Owner] = true
			}
		}
		if !r.holders[e.Name] {
			return false
		}
	}
	return true
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
