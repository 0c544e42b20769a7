package line

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// offer says what the gang gets if it is its turn now. Nothing is booked.
//
// First it is asked what fits at all, for most refusals end there. What fits and leaves all targets alone is given. Else
// the placer is asked to leave them alone, and at last to leave those alone that the gang may not be let into.
func (p *pass) offer(e Entry) Outcome {
	d := p.ask(e, nil)
	if !d.Fits() {
		return Outcome{Entry: e, Decision: d}
	}
	all, closed := p.guarded(e)
	if p.apart(e, d, all) {
		return Outcome{Entry: e, Decision: d}
	}
	if beside := p.ask(e, all); beside.Fits() {
		return Outcome{Entry: e, Decision: beside}
	}
	var inside placement.Decision
	switch {
	case len(closed) == len(all):
		return Outcome{Entry: e, Decision: kept(d, meets(d, closed))}
	case p.apart(e, d, closed):
		inside = d
	default:
		inside = p.ask(e, closed)
	}
	if !inside.Fits() {
		return Outcome{Entry: e, Decision: kept(d, meets(d, closed))}
	}
	in := p.standsIn(e, inside, all)
	// What it takes from several targets only together, such as room on a host that they share, is in the way of none of
	// them by itself, so nobody would recall it.
	shared := slices.DeleteFunc(slices.Clone(all), func(t *Target) bool { return slices.Contains(in, t) || p.endsBefore(e, t) })
	if !p.apart(e, inside, shared) {
		return Outcome{Entry: e, Decision: kept(inside, meets(inside, shared))}
	}
	o := Outcome{Entry: e, Decision: inside}
	for _, t := range in {
		o.Lent = o.Lent || !p.endsBefore(e, t)
	}
	return o
}

// apart reports whether a decision takes nothing from the targets.
func (p *pass) apart(e Entry, d placement.Decision, targets []*Target) bool {
	return len(targets) == 0 || placement.Recheck(e.Gang, d, p.world(p.guard(targets))) == nil
}

// kept refuses a gang that would fit but for targets.
func kept(d placement.Decision, targets []*Target) placement.Decision {
	var owners []string
	r := &reason.Refusal{Code: reason.WaitingTurn}
	for _, t := range targets {
		owners = append(owners, t.entry.Gang.Key.String())
		r.Evidence = append(r.Evidence, reason.Evidence{
			Kind: reason.KindHolder, Name: t.entry.Gang.Key.String(), Code: reason.WaitingTurn, Detail: "waits for " + t.Slice(),
		})
	}
	const most = 5
	if len(owners) > most {
		owners = append(owners[:most], fmt.Sprintf("%d more", len(owners)-most))
	}
	r.Message = "what is free is kept for " + strings.Join(owners, ", ")
	return placement.Decision{Refusal: r, Proved: d.Proved}
}
