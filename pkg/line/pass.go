package line

import (
	"time"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
)

// Input is everything that a pass depends on.
type Input struct {
	// Now is the time of the pass.
	Now time.Time
	// World is what exists and what is taken. Pass books in its ledger what it gives out.
	World  placement.World
	Placer placement.Placer
	// Waiting are the gangs in line, in any order.
	Waiting []Entry
	// Running are the gangs that hold devices. Holders that are not among them are foreign: nobody knows when they end.
	Running []Running
	// Targets are those that the last pass returned, with For and Decision at least.
	Targets []Target
	// Held counts the hosts that the gangs of each ClusterQueue hold.
	Held map[string]int
	// Barred reports whether nothing of a pool may be given out now; the placer has to know that, too. Nil: no pool is barred.
	Barred func(inventory.PoolID) bool
	// Memory keeps refusals from pass to pass; nil to ask about every gang again. It saves questions and changes no answer.
	Memory *Memory
}

// Running is a gang that holds devices.
type Running struct {
	// Owner is what its holdings in the ledger have as their Owner.
	Owner string
	// Pods are the names that its pods, and the seats of pods to come, have in the ledger.
	Pods []string
	// Priority of the Workload.
	Priority int32
	// Since is when it got its devices.
	Since time.Time
	// Ends is when it will have ended at the latest; zero when nobody knows.
	Ends time.Time
	// Lent says that its devices were another gang's target when it got them, and that it may be recalled.
	Lent bool
}

// Outcome is what one pass says of one gang.
type Outcome struct {
	Entry Entry
	// Decision fits, and is booked, or carries the refusal.
	Decision placement.Decision
	// Lent says that the devices were lent from a target: they may be recalled before the gang has ended.
	Lent bool
	// Target is what is kept for the gang while it waits; nil for most.
	Target *Target
}

// Recall is a gang that was let into a target and is now all that keeps it from being used.
type Recall struct {
	// Owner as in Running.
	Owner string
	// For is the gang that needs the devices.
	For Entry
}

// Result of a pass.
type Result struct {
	// Outcomes, one for each gang, in the order of their turns.
	Outcomes []Outcome
	// Targets that stand after the pass, that of the gang that stands in line for longest first. They are what the next pass gets.
	Targets []Target
	// Recalls are due now.
	Recalls []Recall
	// Asked is how many questions the placer got. All other gangs were answered by what is known of equal ones.
	Asked int
}

// Pass offers the hardware to every waiting gang in turn and plans ahead for the first of each queue that gets nothing.
func Pass(in Input) Result {
	p := newPass(in)
	p.keep(in.Targets)
	for {
		e, ok := p.turns.next()
		if !ok {
			return p.result()
		}
		o := p.offer(e)
		if !o.Decision.Fits() && helped(o.Decision.Refusal.Code) {
			p.aim(e)
			// Only what was kept for a younger gang was in its way.
			if t := p.targetOf(e); t != nil && len(t.drain.holders) == 0 {
				o = p.offer(e)
			}
		}
		if o.Decision.Fits() {
			p.take(o)
		}
		p.outcomes = append(p.outcomes, o)
	}
}

// pass is a pass under way.
type pass struct {
	Input
	turns   *turns
	running map[string]*Running
	// holder is the Owner of a pod's gang.
	holder  map[string]string
	places  places
	targets []*Target // in the order of places
	// guards are the ledgers in which targets are taken, by the targets.
	guards map[string]*ledger.Ledger
	bases  bases
	// hopeless are the queues and needs for which no target was found, by the version of targets that it was looked for with.
	hopeless map[string]int
	version  int
	refusals refusals
	outcomes []Outcome
	asked    int
}

func newPass(in Input) *pass {
	p := &pass{
		Input: in, turns: newTurns(in.Waiting, in.Held),
		running: make(map[string]*Running, len(in.Running)), holder: map[string]string{},
		guards: map[string]*ledger.Ledger{}, hopeless: map[string]int{},
		refusals: newRefusals(in.Memory), outcomes: make([]Outcome, 0, len(in.Waiting)),
	}
	p.places = newPlaces(p.turns.queues)
	for i := range in.Running {
		p.runs(&in.Running[i])
	}
	return p
}

// runs adds a gang to those that hold something.
func (p *pass) runs(r *Running) {
	p.running[r.Owner] = r
	for _, pod := range r.Pods {
		p.holder[pod] = r.Owner
	}
}

// holderOf names the gang behind a pod; a pod of nobody's stands for itself.
func (p *pass) holderOf(pod string) string {
	if owner, ours := p.holder[pod]; ours {
		return owner
	}
	return "pod " + pod
}

// take books what was offered.
func (p *pass) take(o Outcome) {
	r := o.Entry.booking(o.Decision, p.Now)
	r.Lent = o.Lent
	p.runs(r)
	charge(p.World.Ledger, o.Entry, o.Decision)
	for _, l := range p.guards {
		charge(l, o.Entry, o.Decision)
	}
	p.bases = bases{}
	p.turns.held[o.Entry.Queue] += o.Decision.Shares()
	if t := p.targetOf(o.Entry); t != nil {
		p.drop(t)
	}
}

// result reads what a pass came to.
func (p *pass) result() Result {
	r := Result{Outcomes: p.outcomes, Asked: p.asked}
	of := make(map[string]*Target, len(p.targets))
	for _, t := range p.targets {
		t.drain, _ = p.drainOf(t.entry, t.Decision)
		t.tell()
		r.Targets = append(r.Targets, *t)
		of[t.For] = t
		for _, holder := range p.recalls(t) {
			r.Recalls = append(r.Recalls, Recall{Owner: holder, For: t.entry})
		}
	}
	for i := range r.Outcomes {
		if t := of[r.Outcomes[i].Entry.Gang.UID]; t != nil {
			r.Outcomes[i].Target = t
		}
	}
	p.refusals.forget()
	return r
}
