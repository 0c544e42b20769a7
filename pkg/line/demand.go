package line

import (
	"math"
	"time"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/placement"
)

// HalfLife is after how long a gang that got its devices counts half for what its classes are in demand.
const HalfLife = 24 * time.Hour

// Demand remembers which classes gangs ask for. A gang counts with its hosts: in full while it waits, and from when it got
// its devices on ever less, by half in every HalfLife. So a class is in demand by the hosts that are asked for with it per
// time, as seen lately.
//
// It is kept in memory only. A new one is filled with the gangs that hold devices, and so begins where most of what counts
// is known.
type Demand struct {
	// since is when hosts have their face value; it moves on so that numbers stay small.
	since time.Time
	hosts map[string]float64
	// served are the gangs that are counted, by UID.
	served map[string]bool
}

// NewDemand returns a Demand that nobody has counted for.
func NewDemand() *Demand { return &Demand{hosts: map[string]float64{}, served: map[string]bool{}} }

// Serves reports whether the gang is counted among those that got devices.
func (d *Demand) Serves(uid string) bool { return d.served[uid] }

// Served counts a gang that got its devices at a time, unless it is counted already: a gang that is moved asks once.
func (d *Demand) Served(g gang.Gang, at time.Time) {
	if d.served[g.UID] {
		return
	}
	d.served[g.UID] = true
	// Everything decays alike, so instead of all that is old what is new is scaled.
	if age := at.Sub(d.since); age > 100*HalfLife || d.since.IsZero() {
		for class := range d.hosts {
			d.hosts[class] *= decay(age)
		}
		d.since = at
	}
	for class, n := range hostsOf(g) {
		d.hosts[class] += float64(n) / decay(at.Sub(d.since))
	}
}

// Forget drops the names of gangs that are no more; what they asked for still counts.
func (d *Demand) Forget(exists func(uid string) bool) {
	for uid := range d.served {
		if !exists(uid) {
			delete(d.served, uid)
		}
	}
}

// Weights are the demand of every class at a time, with the gangs that wait. The greatest is 1. They are rounded to whole
// powers of the square root of two: so they stay the same from pass to pass while nothing much happens, and decisions can
// be repeated. Nil when nobody asked for anything.
func (d *Demand) Weights(now time.Time, waiting []Entry) placement.Demand {
	sums := map[string]float64{}
	for class, n := range d.hosts {
		sums[class] = n * decay(now.Sub(d.since))
	}
	whole := map[string]int{}
	for _, e := range waiting {
		for class, n := range hostsOf(e.Gang) {
			whole[class] += n
		}
	}
	for class, n := range whole {
		sums[class] += float64(n)
	}
	top := 0.0
	for _, n := range sums {
		top = max(top, n)
	}
	if top == 0 {
		return nil
	}
	out := placement.Demand{}
	for class, n := range sums {
		// Below the floor all are alike.
		if steps := math.Round(2 * math.Log2(n/top)); n > 0 && math.Exp2(steps/2) >= placement.DemandFloor {
			out[class] = math.Exp2(steps / 2)
		}
	}
	return out
}

func decay(age time.Duration) float64 { return math.Exp2(-float64(age) / float64(HalfLife)) }

// hostsOf are the hosts that a gang asks for by class.
func hostsOf(g gang.Gang) map[string]int {
	out := map[string]int{}
	for _, ps := range g.PodSets {
		seen := map[string]bool{}
		for _, c := range ps.Claims {
			for _, r := range c.Requests {
				if !seen[r.Class] {
					seen[r.Class] = true
					out[r.Class] += ps.Count
				}
			}
		}
	}
	return out
}
