package simulate

import (
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/traffic"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
)

// Discipline is what becomes of a gang that finds no place.
type Discipline string

// Disciplines.
const (
	// Loss: it goes away for good.
	Loss Discipline = "loss"
	// Free: it stands in line, and who comes later may go before it wherever something is free.
	Free Discipline = "free"
	// Targets: it stands in line, and the devices that drain soonest are kept for the first of each queue (see pkg/line).
	Targets Discipline = "targets"
)

// Disciplines in the order in which people are told of them.
var Disciplines = []Discipline{Loss, Free, Targets}

// Config of one run.
type Config struct {
	Hardware *hardware.Hardware
	// Gangs in order of arrival.
	Gangs  []traffic.Gang
	Placer placement.Placer
	// Demand that the placer is told of; nil for none.
	Demand placement.Demand
	// Judge says what a decision costs, in host-hours; nil where nobody knows.
	Judge func(placement.World, placement.Decision) float64
	// Line is Loss when empty.
	Line Discipline
	// Recall lets gangs of lower priority into targets, to be evicted when the rest is free (see line.Entry.Lends).
	Recall bool
	// Warmup and End bound what is measured, in hours. Gangs that arrive in between are counted, also if they end later.
	Warmup, End float64
	// Offers are what Result counts by; every gang must be of one of them.
	Offers []hardware.Offer
	// MostWaiting ends the run with an error: the hardware cannot do the work that comes. 0 means 5,000.
	MostWaiting int

	// everybody who waits has part in every pass, for a test that compares.
	everybody bool
}

const mostWaiting = 5_000

// ErrOverload is that more gangs wait than Config.MostWaiting.
var ErrOverload = errors.New("the line grows without end: more work comes than the hardware can do")

// Run simulates until the last gang has ended.
func Run(c Config) (*Result, error) {
	r, err := newRun(c)
	if err != nil {
		return nil, err
	}
	next := 0
	for next < len(c.Gangs) || len(r.ends) > 0 {
		if len(r.ends) > 0 && (next == len(c.Gangs) || r.ends[0].at <= c.Gangs[next].Arrival) {
			if e := heap.Pop(&r.ends).(ending); e.epoch == r.epoch[e.gang] {
				r.end(e)
			}
		} else {
			r.arrive(next)
			next++
		}
		if len(r.waiting) > r.MostWaiting {
			return nil, fmt.Errorf("%w (%d gangs wait after %.0f hours)", ErrOverload, len(r.waiting), r.now)
		}
	}
	r.passTime(max(r.now, c.End))
	if len(r.waiting) > 0 {
		return nil, fmt.Errorf("%d gangs wait for ever: the first asks for %s on hardware of which nothing else is held", len(r.waiting), c.Gangs[r.waiting[0]].Class)
	}
	if err := r.books.empty(); err != nil {
		return nil, err
	}
	return r.result.finish(c), nil
}

// run is a simulation under way.
type run struct {
	Config
	books *books
	fits  *fits
	// beside is the same for ledgers in which targets are taken.
	beside *fits
	now    float64
	busy   int
	ends   endings
	result *measures
	// waiting gangs, by number of the trace, in order of arrival but for those that were evicted.
	waiting []int
	// held hosts by queue.
	held map[string]int
	// running gangs by number, and their numbers in ascending order of their beginning.
	running map[int]*line.Running
	order   []int
	began   map[int]float64
	// epoch counts how often a gang was evicted.
	epoch   map[int]int
	targets []line.Target
	// kinds of all gangs, as indexes of Offers.
	kinds []int
}

func newRun(c Config) (*run, error) {
	if c.MostWaiting == 0 {
		c.MostWaiting = mostWaiting
	}
	r := &run{
		Config: c, books: newBooks(c.Hardware), held: map[string]int{}, began: map[int]float64{}, running: map[int]*line.Running{}, epoch: map[int]int{},
		result: newMeasures(c),
	}
	kind := map[hardware.Offer]int{}
	for i, o := range c.Offers {
		kind[o] = i
	}
	r.fits, r.beside = newFits(c.Hardware.Inventory, c.Offers), newFits(c.Hardware.Inventory, c.Offers)
	for i, g := range c.Gangs {
		k, known := kind[hardware.Offer{Class: g.Class, Hosts: g.Hosts}]
		if !known {
			return nil, fmt.Errorf("gang %d asks for %s of %d hosts, which nothing offers", i+1, g.Class, g.Hosts)
		}
		r.kinds = append(r.kinds, k)
	}
	return r, nil
}

func (r *run) world(l *ledger.Ledger) placement.World {
	return placement.World{Inventory: r.Hardware.Inventory, Ledger: l, Demand: r.Demand}
}

// passTime counts what was true since the last event.
func (r *run) passTime(to float64) {
	if from, until := max(r.now, r.Warmup), min(to, r.End); until > from {
		r.result.passTime(until-from, r.busy, r.fits.all(r.books.ledger))
	}
	r.now = to
}

func (r *run) arrive(n int) {
	g := &r.Gangs[n]
	r.passTime(g.Arrival)
	kind := r.kindOf(n)
	if r.counted(n) {
		r.result.kinds[kind].came++
		r.result.offered += work(g)
	}
	if r.Line == Free || r.Line == Targets {
		r.waiting = append(r.waiting, n)
		r.pass()
		return
	}
	if r.fits.any(kind, r.books.ledger) {
		if d := r.place(r.entry(n).Gang, r.books.ledger); d.Fits() {
			r.begin(n, d)
			return
		}
	}
	if r.counted(n) {
		r.result.kinds[kind].lost++
		r.result.blocked += work(g)
	}
}

// work of a gang in host-hours.
func work(g *traffic.Gang) float64 { return g.Duration * float64(g.Hosts) }

func (r *run) place(g gang.Gang, l *ledger.Ledger) placement.Decision {
	r.result.decisions++
	return r.Placer.Place(g, r.world(l))
}

func (r *run) begin(n int, d placement.Decision) {
	g := &r.Gangs[n]
	if r.Judge != nil && r.counted(n) {
		r.result.loss += r.Judge(r.world(r.books.ledger), d)
	}
	r.busy += r.books.take(name(n), d)
	r.held[g.Queue] += g.Hosts
	r.began[n] = r.now
	heap.Push(&r.ends, ending{at: r.now + g.Duration, gang: n, epoch: r.epoch[n]})
	if r.counted(n) && r.epoch[n] == 0 {
		r.result.kinds[r.kindOf(n)].wait(r.now - g.Arrival)
		if r.now > g.Arrival {
			r.result.blocked += work(g)
		}
	}
}

func (r *run) end(e ending) {
	r.passTime(e.at)
	if from, until := max(r.began[e.gang], r.Warmup), min(e.at, r.End); until > from {
		r.result.kinds[r.kindOf(e.gang)].work += (until - from) * float64(r.Gangs[e.gang].Hosts)
	}
	r.leave(e.gang)
	if len(r.waiting) > 0 {
		r.pass()
	}
}

// leave takes back what a gang holds.
func (r *run) leave(n int) {
	g := &r.Gangs[n]
	r.books.release(name(n))
	r.busy -= g.Hosts
	r.held[g.Queue] -= g.Hosts
	delete(r.began, n)
	if r.running[n] != nil {
		delete(r.running, n)
		r.order = slices.DeleteFunc(r.order, func(o int) bool { return o == n })
	}
}

// counted reports whether a gang arrives in the time that is measured.
func (r *run) counted(n int) bool {
	return r.Gangs[n].Arrival >= r.Warmup && r.Gangs[n].Arrival < r.End
}

func (r *run) kindOf(n int) int { return r.kinds[n] }

// name of a gang as a holder: its number in the trace.
func name(n int) string { return strconv.Itoa(n) }

// ending is when a gang ends.
type ending struct {
	at   float64
	gang int
	// epoch is the number of evictions before; an ending of an earlier epoch means nothing.
	epoch int
}

// endings is a heap; of equal times the gang that came first ends first.
type endings []ending

func (e endings) Len() int      { return len(e) }
func (e endings) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e endings) Less(i, j int) bool {
	if e[i].at != e[j].at {
		return e[i].at < e[j].at
	}
	return e[i].gang < e[j].gang
}
func (e *endings) Push(x any) { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}
