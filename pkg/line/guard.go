package line

import (
	"slices"

	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
)

// guarded are the targets that the gang has to keep out of at all, and those of them that it may not be let into. Nothing
// is kept from a gang for one that comes after it in the same queue.
func (p *pass) guarded(e Entry) (all, closed []*Target) {
	for _, t := range p.targets {
		if t.For == e.Gang.UID || t.Open || t.queue(e.Queue) && e.before(t.entry) < 0 {
			continue
		}
		all = append(all, t)
		if !p.endsBefore(e, t) && !lends(t, e) {
			closed = append(closed, t)
		}
	}
	return all, closed
}

// endsBefore reports whether the gang, begun now, ends before the target is due.
func (p *pass) endsBefore(e Entry, t *Target) bool {
	return e.Runs > 0 && !t.Due.IsZero() && !p.Now.Add(e.Runs).After(t.Due)
}

// lends reports whether the gang may be let into the target to be recalled. Once only such gangs are left in it they are
// being recalled, and nobody is let in any more.
func lends(t *Target, e Entry) bool {
	return t.entry.Lends && e.Priority < t.entry.Priority && t.drain.firm > 0
}

// guard is a ledger in which the targets are kept: what is free there is free now and is not needed for them later.
func (p *pass) guard(targets []*Target) *ledger.Ledger {
	if len(targets) == 0 {
		return p.World.Ledger
	}
	key := names(targets)
	if l := p.guards[key]; l != nil {
		return l
	}
	l := p.keeping(p.World.Ledger, targets)
	p.guards[key] = l
	return l
}

// keeping is the ledger with the targets kept in it: each takes what it needs beyond what its holders have until they go.
func (p *pass) keeping(l *ledger.Ledger, targets []*Target) *ledger.Ledger {
	kept := make([]ledger.Kept, 0, len(targets))
	for _, t := range targets {
		if w, published := want(t.entry, t.Decision, p.World.Inventory); published {
			kept = append(kept, ledger.Kept{Want: w, Leaving: t.drain.holders})
		}
	}
	return l.Keeping("targets", kept, p.holderOf)
}

// standsIn lists the targets that a decision would take something from.
func (p *pass) standsIn(e Entry, d placement.Decision, targets []*Target) []*Target {
	var in []*Target
	for _, t := range targets {
		if placement.Recheck(e.Gang, d, p.world(p.guard([]*Target{t}))) != nil {
			in = append(in, t)
		}
	}
	return in
}

// meets lists the targets that share a host with a decision, or all where none does.
func meets(d placement.Decision, targets []*Target) []*Target {
	hosts := map[string]bool{}
	for _, ps := range d.PodSets {
		for _, h := range ps.Hosts {
			hosts[h] = true
		}
	}
	var in []*Target
	for _, t := range targets {
		if slices.ContainsFunc(t.Decision.PodSets, func(ps placement.PodSet) bool {
			return slices.ContainsFunc(ps.Hosts, func(h string) bool { return hosts[h] })
		}) {
			in = append(in, t)
		}
	}
	if len(in) == 0 {
		return targets
	}
	return in
}
