package simulate

import (
	"math"
	"slices"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
)

// Buckets is how many steps of equal width the utilisation is divided into.
const Buckets = 20

// Result is what one run measured.
type Result struct {
	Hosts int
	// Goodput is the share of the host-hours of the measured time that went into gangs that completed.
	Goodput float64
	// Short is by how much the goodput falls short of the best policy's, as Config.Judge has it.
	Short float64
	// Decisions that the placer made, how many gangs came in the measured time, and how often one of them was evicted.
	Decisions, Came, Evictions int
	// Blocked is the share of the offered host-hours that found no place on arrival.
	Blocked float64
	// Wait is the mean wait in hours, each gang weighed by its hosts, so that small gangs do not hide what large ones suffer.
	Wait float64
	// Kinds by offer.
	Kinds []Kind
	// Hours by utilisation, and for each offer those of them in which a device of it was free.
	Hours [Buckets]float64
	Fits  [][Buckets]float64
}

// Kind is what became of the gangs of one offer.
type Kind struct {
	hardware.Offer
	Came int
	// Blocked is the share that found no place on arrival: lost, or made to wait.
	Blocked float64
	// Mean, Median and P99 of the wait in hours; zero where gangs are lost.
	Mean, Median, P99 float64
	// Work is the share of the host-hours of the measured time that went into gangs of this kind.
	Work float64
}

// measures gathers a Result.
type measures struct {
	hosts     int
	decisions int
	evictions int
	kinds     []kind
	hours     [Buckets]float64
	fits      [][Buckets]float64
	// offered and blocked host-hours of the gangs that came in the measured time.
	offered, blocked float64
	// loss is what Judge says of all decisions.
	loss float64
}

type kind struct {
	came, lost int
	waits      []float64
	work       float64
}

func (k *kind) wait(hours float64) { k.waits = append(k.waits, hours) }

func newMeasures(c Config) *measures {
	return &measures{hosts: c.Hardware.Hosts(), kinds: make([]kind, len(c.Offers)), fits: make([][Buckets]float64, len(c.Offers))}
}

// passTime counts a time in which nothing changed.
func (m *measures) passTime(hours float64, busy int, free []bool) {
	bucket := min(Buckets-1, busy*Buckets/max(1, m.hosts))
	m.hours[bucket] += hours
	for i, fits := range free {
		if fits {
			m.fits[i][bucket] += hours
		}
	}
}

func (m *measures) finish(c Config) *Result {
	total := float64(m.hosts) * (c.End - c.Warmup)
	r := &Result{Hosts: m.hosts, Decisions: m.decisions, Evictions: m.evictions, Short: m.loss / total, Hours: m.hours, Fits: m.fits}
	waits, weights := 0.0, 0.0
	for i := range m.kinds {
		k := &m.kinds[i]
		out := Kind{Offer: c.Offers[i], Came: k.came, Work: k.work / total}
		late := 0
		slices.Sort(k.waits)
		for _, w := range k.waits {
			out.Mean += w / float64(len(k.waits))
			if w > 0 {
				late++
			}
			waits += w * float64(out.Hosts)
			weights += float64(out.Hosts)
		}
		out.Median, out.P99 = quantile(k.waits, 0.5), quantile(k.waits, 0.99)
		if k.came > 0 {
			out.Blocked = float64(k.lost+late) / float64(k.came)
		}
		r.Came += k.came
		r.Goodput += out.Work
		r.Kinds = append(r.Kinds, out)
	}
	if m.offered > 0 {
		r.Blocked = m.blocked / m.offered
	}
	if weights > 0 {
		r.Wait = waits / weights
	}
	return r
}

// quantile of sorted values: the least that at least that share of them does not exceed; 0 of none.
func quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, max(0, int(math.Ceil(share*float64(len(sorted))))-1))]
}
