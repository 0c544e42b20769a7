package line

import (
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// Overdue is for how long a holder may outlive its known end before the end counts as unknown.
const Overdue = 15 * time.Minute

// Target is the devices that are kept for a waiting gang until they are free.
type Target struct {
	// For is the UID of the gang.
	For string
	// Decision is the devices and hosts, as if the gang had been given them.
	Decision placement.Decision
	// Due is when they are free at the latest; zero when nobody knows. It is in the past only where everybody in the way
	// outlived its end or may be recalled.
	Due time.Time
	// Holders are the owners of what is in the way, the first to go first. Foreign pods are "pod <namespace>/<name>".
	Holders []string
	// Open: something foreign is in the way and nobody knows whether it ever goes, so that nothing is kept for the gang yet.
	Open bool

	entry Entry
	drain drain
}

// tell writes down what is known of the target's drain.
func (t *Target) tell() { t.Due, t.Holders, t.Open = t.drain.due, t.drain.holders, t.drain.foreign > 0 }

// queue reports whether the target belongs to a gang of the queue.
func (t *Target) queue(name string) bool { return t.entry.Queue == name }

// keep makes the targets that still can be the pass's own, those of the gangs that stand in line for longest first. A
// target goes with its gang, when hardware it needs is out of use, and when an older gang's takes a part of it.
func (p *pass) keep(targets []Target) {
	waiting := make(map[string]Entry, len(p.Waiting))
	for _, e := range p.Waiting {
		waiting[e.Gang.UID] = e
	}
	var all []*Target
	for i := range targets {
		e, waits := waiting[targets[i].For]
		if waits && !e.NoTarget {
			all = append(all, &Target{For: targets[i].For, Decision: targets[i].Decision, entry: e})
		}
	}
	p.targets = all
	p.revise()
}

// revise drops the targets that cannot stand beside those of older gangs, and all but one of a queue.
func (p *pass) revise() {
	slices.SortStableFunc(p.targets, func(a, b *Target) int { return p.places.compare(a.entry, b.entry) })
	var kept []*Target
	for _, t := range p.targets {
		i := slices.IndexFunc(kept, func(o *Target) bool { return o.queue(t.entry.Queue) })
		switch {
		case i < 0:
			kept = append(kept, t)
		case t.entry.before(kept[i].entry) < 0:
			kept[i] = t
		}
	}
	slices.SortStableFunc(kept, func(a, b *Target) int { return p.places.compare(a.entry, b.entry) })
	p.targets = nil
	if len(kept) == 0 {
		p.changed()
		return
	}
	beside := p.bare(true).Clone()
	for _, t := range kept {
		if !serves(t.entry, t.Decision, p.World.Inventory) || p.barred(t.Decision) {
			continue
		}
		var known bool
		if t.drain, known = p.drainOf(t.entry, t.Decision); !known {
			continue
		}
		t.tell()
		base := beside
		if t.Open {
			base = p.bare(false)
		}
		if placement.Recheck(t.entry.Gang, t.Decision, p.world(base)) != nil {
			continue
		}
		if !t.Open {
			t.charge(beside)
		}
		p.targets = append(p.targets, t)
	}
	p.changed()
}

// changed forgets what followed from the former targets.
func (p *pass) changed() {
	p.version++
	p.bases.beside = nil
	p.guards = map[string]*ledger.Ledger{}
	p.refusals.changed()
}

func (p *pass) drop(t *Target) {
	p.targets = slices.DeleteFunc(p.targets, func(o *Target) bool { return o == t })
	p.changed()
}

// targetOf is the target of the gang, or nil.
func (p *pass) targetOf(e Entry) *Target {
	for _, t := range p.targets {
		if t.For == e.Gang.UID {
			return t
		}
	}
	return nil
}

// targetIn is the target of a gang of the queue, or nil.
func (p *pass) targetIn(queue string) *Target {
	for _, t := range p.targets {
		if t.queue(queue) {
			return t
		}
	}
	return nil
}

// helped reports whether a gang that was refused for the reason gets further when others end.
func helped(c reason.Code) bool {
	return c == reason.NoFreeSlice || c == reason.HostsBusy || c == reason.WaitingTurn
}

// aim sees to the target of a gang that was refused. Heads of other queues that have none and stand in line for longer are
// seen to first, so that no gang is overtaken for ever by gangs of a queue that holds less.
func (p *pass) aim(e Entry) {
	if e.NoTarget {
		return
	}
	if p.targetIn(e.Queue) == nil {
		older := slices.DeleteFunc(p.turns.heads(), func(o Entry) bool {
			return o.Queue == e.Queue || o.NoTarget || p.places.compare(o, e) > 0 || p.targetIn(o.Queue) != nil
		})
		slices.SortFunc(older, p.places.compare)
		for _, o := range older {
			if d := p.offer(o).Decision; !d.Fits() && helped(d.Refusal.Code) {
				p.aimAt(o)
			}
		}
	}
	p.aimAt(e)
}

func (p *pass) aimAt(e Entry) {
	stands := p.targetIn(e.Queue)
	switch {
	case stands == nil:
	case stands.For == e.Gang.UID:
		// It moves only from what may never come about to what will.
		if stands.drain.sure() {
			return
		}
		if t := p.search(e, stands); t != nil && t.drain.sure() {
			p.replace(stands, t)
		}
		return
	case stands.entry.before(e) < 0:
		return
	}
	if t := p.search(e, stands); t != nil {
		p.replace(stands, t)
	}
}

func (p *pass) replace(old, by *Target) {
	p.targets = slices.DeleteFunc(p.targets, func(o *Target) bool { return o == old })
	p.targets = append(p.targets, by)
	p.revise()
}

// recalls are the holders that have to be recalled for the target: all that is in the way, once nothing else is.
func (p *pass) recalls(t *Target) []string {
	if t.Open || len(t.drain.holders) == 0 || t.drain.firm > 0 {
		return nil
	}
	return t.drain.holders
}

// name under which what is kept is booked.
func (t *Target) name() string { return "the target of " + t.entry.Gang.Key.String() }

// charge books what is kept as if the gang had it.
func (t *Target) charge(l *ledger.Ledger) { chargeAs(l, t.name(), t.name(), t.entry, t.Decision) }
