package experiment

import (
	"errors"
	"math"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/estimate"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
)

// Need is how many hosts a policy needs for the gangs of one seed.
type Need struct {
	// Hosts at which the wait is what the first policy of the scenario has on the scenario's own hardware, interpolated
	// between the two sizes that lie around it.
	Hosts float64
	// Whole is the fewest whole pools, in hosts, at which the wait is not longer.
	Whole int
}

// compact varies the number of pools, with the gangs of each seed as they are, until the wait is that of the first policy
// on the scenario's hardware (cell compaction, as Verma and others call it in their paper on Borg, EuroSys 2015).
func (o *Outcome) compact(parallel int) error {
	o.Needs = make([][]Need, len(o.Policies))
	var tasks []func() error
	for i := range o.Policies {
		o.Needs[i] = make([]Need, o.Seeds)
		for s := range o.Seeds {
			tasks = append(tasks, func() (err error) {
				o.Needs[i][s], err = o.need(i, s)
				return err
			})
		}
	}
	return do(tasks, parallel)
}

// atMost times the scenario's own size is tried.
const atMost = 4

// need looks for the size from the scenario's own one up or down, one unit at a time: waits change fast, so it is near.
func (o *Outcome) need(policy, seed int) (Need, error) {
	wanted := o.Runs[0][seed].Wait
	own := o.Family.Units()
	perUnit := float64(o.Hardware.Hosts()) / float64(own)
	waits := map[int]float64{own: o.Runs[policy][seed].Wait}
	at := own
	for waits[at] > wanted {
		if at++; at > atMost*own {
			return Need{}, errors.New("no number of pools up to four times as many makes the wait short enough")
		}
		if err := o.waitAt(policy, seed, at, waits); err != nil {
			return Need{}, err
		}
	}
	// One fewer is too few, or nothing is less.
	for at > 1 {
		if err := o.waitAt(policy, seed, at-1, waits); err != nil {
			return Need{}, err
		}
		if waits[at-1] > wanted {
			break
		}
		at--
	}
	n := Need{Whole: int(float64(at) * perUnit), Hosts: float64(at) * perUnit}
	above, known := waits[at-1]
	below := waits[at]
	if known && !math.IsInf(above, 1) && above > below {
		// The logarithm of the wait is nearer to a straight line than the wait.
		const least = 1e-3
		l := func(w float64) float64 { return math.Log(w + least) }
		n.Hosts -= perUnit * (l(wanted) - l(below)) / (l(above) - l(below))
	}
	return n, nil
}

// waitAt simulates a number of units; where the line grows without end the wait is infinite.
func (o *Outcome) waitAt(policy, seed, units int, waits map[int]float64) error {
	if _, known := waits[units]; known {
		return nil
	}
	h, err := o.Family.WithUnits(units).Build()
	if err != nil {
		return err
	}
	p := *o.Prepared
	p.Hardware = h
	resized := &Outcome{Prepared: &p}
	c := resized.config(o.Policies[policy], o.Seed+uint64(seed))
	// Gangs wait that the smaller hardware cannot do; a few times as many as run at once are plenty to know that.
	c.MostWaiting = 20 * h.Hosts()
	r, err := simulate.Run(c)
	switch {
	case errors.Is(err, simulate.ErrOverload):
		waits[units] = math.Inf(1)
	case err != nil:
		return err
	default:
		waits[units] = r.Wait
	}
	return nil
}

// NeedOf is how many hosts a policy needs, and by how many per cent that differs from the first policy.
func (o *Outcome) NeedOf(policy int) (hosts, percent estimate.Interval) {
	var needs, changes []float64
	for s, n := range o.Needs[policy] {
		needs = append(needs, n.Hosts)
		changes = append(changes, 100*(n.Hosts/o.Needs[0][s].Hosts-1))
	}
	return estimate.Of(needs), estimate.Of(changes)
}
