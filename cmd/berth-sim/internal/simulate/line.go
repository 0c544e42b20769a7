package simulate

import (
	"slices"
	"strconv"
	"time"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
)

// pass is a pass of the line over those of the waiting whom it could help.
func (r *run) pass() {
	asked := r.waiting
	if r.Line != Targets && !r.everybody {
		if asked = r.hopeful(); len(asked) == 0 {
			return
		}
	}
	in := line.Input{
		// What a pass gives out it books in a copy; begin books it again in the run's own.
		Now: clock(r.now), World: r.world(r.books.ledger.Clone()), Placer: (*quick)(r), Held: r.held, Targets: r.targets,
	}
	for _, n := range asked {
		in.Waiting = append(in.Waiting, r.entry(n))
	}
	if r.Line == Targets {
		for _, n := range r.order {
			in.Running = append(in.Running, *r.running[n])
		}
	}
	out := line.Pass(in)
	r.targets = out.Targets
	for _, o := range out.Outcomes {
		if !o.Decision.Fits() {
			continue
		}
		n := number(o.Entry.Gang)
		r.begin(n, o.Decision)
		r.waiting = slices.DeleteFunc(r.waiting, func(w int) bool { return w == n })
		if r.Line == Targets {
			r.running[n] = r.runs(n, o.Lent)
			r.order = append(r.order, n)
		}
	}
	for _, recall := range out.Recalls {
		r.evict(recall.Owner)
	}
	if len(out.Recalls) > 0 {
		r.pass()
	}
}

// equals are gangs that differ in their arrival alone, so that the line never offers anything to one before another that
// came before it.
type equals struct {
	kind     int
	queue    string
	priority int32
}

// hopeful leaves out who would be refused and changes nothing, where nothing is planned ahead: gangs of whose class nothing is
// free, and of equal ones those that come after as many as there are devices.
func (r *run) hopeful() []int {
	var out []int
	count := map[equals]int{}
	for _, n := range r.waiting {
		kind := r.kindOf(n)
		if !r.fits.any(kind, r.books.ledger) {
			continue
		}
		key := equals{kind, r.Gangs[n].Queue, r.Gangs[n].Priority}
		if count[key]++; count[key] <= r.fits.devices(kind) {
			out = append(out, n)
		}
	}
	return out
}

// runs is the gang as the line knows those who run.
func (r *run) runs(n int, lent bool) *line.Running {
	g := &r.Gangs[n]
	out := &line.Running{Owner: name(n), Priority: g.Priority, Since: clock(r.now), Lent: lent}
	if g.Limit > 0 {
		out.Ends = clock(r.now + g.Limit)
	}
	return out
}

// evict sends a gang back into the line; what it did is lost.
func (r *run) evict(owner string) {
	n, _ := strconv.Atoi(owner)
	if r.running[n] == nil {
		return
	}
	r.leave(n)
	r.epoch[n]++
	r.waiting = append(r.waiting, n)
	if r.counted(n) {
		r.result.evictions++
	}
}

// clock is the time of an hour of the simulation.
func clock(hours float64) time.Time {
	return time.Unix(0, 0).UTC().Add(time.Duration(hours * float64(time.Hour)))
}

func number(g gang.Gang) int {
	n, _ := strconv.Atoi(g.UID)
	return n
}

// podClaim is what every pod of the simulation calls its claim and the request in it.
const podClaim = "slice"

func (r *run) entry(n int) line.Entry {
	g := &r.Gangs[n]
	return line.Entry{
		Owner: name(n), Queue: g.Queue, Priority: g.Priority, QueuedAt: clock(g.Arrival),
		Runs: time.Duration(g.Limit * float64(time.Hour)), NoTarget: r.Line != Targets, Lends: r.Recall,
		Gang: gang.Gang{Key: gang.Key{Namespace: "sim", Name: name(n)}, UID: name(n), PodSets: []gang.PodSet{{
			Name: "main", Count: g.Hosts,
			Claims: []gang.Claim{{PodClaim: podClaim, Requests: []gang.Request{{Name: podClaim, Class: g.Class, Count: 1}}}},
		}}},
	}
}

// quick is the run's placer for the line: it refuses at once where nothing of the class is free, without the words that a
// refusal to a user needs.
type quick run

// Place implements placement.Placer.
func (q *quick) Place(g gang.Gang, w placement.World) placement.Decision {
	r := (*run)(q)
	if !r.beside.any(r.kindOf(number(g)), w.Ledger) {
		return refused
	}
	return r.place(g, w.Ledger)
}
