package simulate

import (
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/traffic"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
)

// Config of one run.
type Config struct {
	Hardware *hardware.Hardware
	// Gangs in order of arrival.
	Gangs  []traffic.Gang
	Placer placement.Placer
	// Demand that the placer is told of; nil for none.
	Demand placement.Demand
	// Wait: a gang that finds no place stands in line; otherwise it is lost.
	Wait bool
	// Warmup and End bound what is measured, in hours. Gangs that arrive in between are counted, also if they end later.
	Warmup, End float64
	// Offers are what Result counts by; every gang must be of one of them.
	Offers []hardware.Offer
	// MostWaiting ends the run with an error: the hardware cannot do the work that comes. 0 means 20,000.
	MostWaiting int
}

const mostWaiting = 20_000

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
			r.end(heap.Pop(&r.ends).(ending))
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
		return nil, fmt.Errorf("%d gangs wait for ever: the first asks for %s on hardware of which nothing else is held", len(r.waiting), c.Gangs[number(r.waiting[0])].Class)
	}
	if err := r.books.empty(); err != nil {
		return nil, err
	}
	return r.result.finish(c), nil
}

// run is a simulation under way.
type run struct {
	Config
	books  *books
	fits   *fits
	now    float64
	busy   int
	ends   endings
	result *measures
	// waiting entries in order of arrival.
	waiting []line.Entry
	// held hosts by queue.
	held map[string]int
	// began is when each running gang did.
	began map[int]float64
	// kind of each offer, as an index of Offers.
	kind map[hardware.Offer]int
}

func newRun(c Config) (*run, error) {
	if c.MostWaiting == 0 {
		c.MostWaiting = mostWaiting
	}
	r := &run{
		Config: c, books: newBooks(c.Hardware), held: map[string]int{}, began: map[int]float64{}, kind: map[hardware.Offer]int{},
		result: newMeasures(c),
	}
	for i, o := range c.Offers {
		r.kind[o] = i
	}
	r.fits = newFits(c.Hardware.Inventory, c.Offers)
	for i, g := range c.Gangs {
		if _, known := r.kind[hardware.Offer{Class: g.Class, Hosts: g.Hosts}]; !known {
			return nil, fmt.Errorf("gang %d asks for %s of %d hosts, which nothing offers", i+1, g.Class, g.Hosts)
		}
	}
	return r, nil
}

func (r *run) world() placement.World {
	return placement.World{Inventory: r.Hardware.Inventory, Ledger: r.books.ledger, Demand: r.Demand}
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
	if r.Wait {
		r.waiting = append(r.waiting, r.entry(n))
		r.pass()
		return
	}
	if r.fits.any(kind, r.books.ledger) {
		if d := r.place(r.entry(n).Gang); d.Fits() {
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

func (r *run) place(g gang.Gang) placement.Decision {
	r.result.decisions++
	return r.Placer.Place(g, r.world())
}

func (r *run) begin(n int, d placement.Decision) {
	g := &r.Gangs[n]
	r.busy += r.books.take(name(n), d)
	r.held[g.Queue] += g.Hosts
	r.began[n] = r.now
	heap.Push(&r.ends, ending{at: r.now + g.Duration, gang: n})
	if r.counted(n) {
		r.result.kinds[r.kindOf(n)].wait(r.now - g.Arrival)
		if r.now > g.Arrival {
			r.result.blocked += work(g)
		}
	}
}

func (r *run) end(e ending) {
	r.passTime(e.at)
	g := &r.Gangs[e.gang]
	r.books.release(name(e.gang))
	r.busy -= g.Hosts
	r.held[g.Queue] -= g.Hosts
	if from, until := max(r.began[e.gang], r.Warmup), min(e.at, r.End); until > from {
		r.result.kinds[r.kindOf(e.gang)].work += (until - from) * float64(g.Hosts)
	}
	delete(r.began, e.gang)
	if len(r.waiting) > 0 {
		r.pass()
	}
}

// pass is a pass of the line over all who wait. It is left out where nobody can get anything.
func (r *run) pass() {
	if !slices.ContainsFunc(r.waiting, func(e line.Entry) bool { return r.fits.any(r.kindOf(number(e)), r.books.ledger) }) {
		return
	}
	placed := map[int]bool{}
	line.Pass(r.waiting, r.held, r.world(), (*quick)(r), func(e line.Entry, d placement.Decision) {
		n := number(e)
		placed[n] = true
		r.begin(n, d)
	})
	r.waiting = slices.DeleteFunc(r.waiting, func(e line.Entry) bool { return placed[number(e)] })
}

// counted reports whether a gang arrives in the time that is measured.
func (r *run) counted(n int) bool {
	return r.Gangs[n].Arrival >= r.Warmup && r.Gangs[n].Arrival < r.End
}

func (r *run) kindOf(n int) int {
	return r.kind[hardware.Offer{Class: r.Gangs[n].Class, Hosts: r.Gangs[n].Hosts}]
}

// Gangs are known by their number in the trace.
func name(n int) string { return strconv.Itoa(n) }

func number(e line.Entry) int {
	n, _ := strconv.Atoi(e.Gang.UID)
	return n
}

// podClaim is what every pod of the simulation calls its claim and the request in it.
const podClaim = "slice"

func (r *run) entry(n int) line.Entry {
	g := &r.Gangs[n]
	return line.Entry{
		Queue: g.Queue, Priority: g.Priority, QueuedAt: time.Unix(0, 0).Add(time.Duration(g.Arrival * float64(time.Hour))),
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
func (q *quick) Place(g gang.Gang, _ placement.World) placement.Decision {
	r := (*run)(q)
	n, _ := strconv.Atoi(g.UID)
	if !r.fits.any(r.kindOf(n), r.books.ledger) {
		return refused
	}
	return r.place(g)
}

// ending is when a gang ends.
type ending struct {
	at   float64
	gang int
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
