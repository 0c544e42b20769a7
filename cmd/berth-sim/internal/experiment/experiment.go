package experiment

import (
	"fmt"
	"sync"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/estimate"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/exact"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/scenario"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
	"github.com/berth-dev/berth/pkg/placement"
)

// Outcome is what a scenario came to.
type Outcome struct {
	*scenario.Prepared
	// Optimum is the best policy, where the scenario asks for it.
	Optimum *exact.Solution
	// Runs by policy, in the order of the scenario, and seed.
	Runs [][]*simulate.Result
	// Needs is how many hosts each policy needs, by policy and seed, where the scenario is Compact.
	Needs [][]Need
}

// Run a scenario with so many runs at a time.
func Run(p *scenario.Prepared, parallel int) (*Outcome, error) {
	o := &Outcome{Prepared: p}
	for _, name := range p.Policies {
		if name == policy.Exact {
			var err error
			if o.Optimum, err = Solve(p); err != nil {
				return nil, fmt.Errorf("scenario %s: %w", p.Name, err)
			}
		}
	}
	o.Runs = make([][]*simulate.Result, len(p.Policies))
	var tasks []func() error
	for i, name := range p.Policies {
		o.Runs[i] = make([]*simulate.Result, p.Seeds)
		for s := range p.Seeds {
			tasks = append(tasks, func() (err error) {
				o.Runs[i][s], err = o.one(name, p.Seed+uint64(s))
				return err
			})
		}
	}
	if err := do(tasks, parallel); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", p.Name, err)
	}
	if p.Compact {
		if err := o.compact(parallel); err != nil {
			return nil, fmt.Errorf("scenario %s: %w", p.Name, err)
		}
	}
	return o, nil
}

// Solve computes the best policy of a scenario.
func Solve(p *scenario.Prepared) (*exact.Solution, error) {
	var classes []exact.Class
	for i, k := range p.Mix.Kinds {
		classes = append(classes, exact.Class{Name: k.Class, Hosts: k.Hosts, Rate: p.Mix.RateOf(i), Mean: k.Durations.Mean})
	}
	return exact.Solve(p.Hardware.Inventory, classes)
}

// one runs one policy on the gangs of one seed.
func (o *Outcome) one(name string, seed uint64) (*simulate.Result, error) {
	r, err := simulate.Run(o.config(name, seed))
	if err != nil {
		return nil, fmt.Errorf("policy %s, seed %d: %w", name, seed, err)
	}
	return r, nil
}

func (o *Outcome) config(name string, seed uint64) simulate.Config {
	c := simulate.Config{
		Hardware: o.Hardware, Gangs: o.Gangs(seed), Line: o.Line, Recall: o.Recall, Warmup: o.Warmup, End: o.Hours, Offers: o.Offers,
	}
	if name == policy.BerthDemand {
		c.Demand = o.Demand()
	}
	c.Placer = o.placer(name, seed)
	if o.Optimum != nil {
		c.Judge = o.Optimum.Judge().Loss
	}
	return c
}

func (o *Outcome) placer(name string, seed uint64) placement.Placer {
	if name == policy.Exact {
		return o.Optimum.Placer()
	}
	p, err := policy.New(name, policy.Options{Hardware: o.Hardware, Seed: seed})
	if err != nil {
		panic(err) // The scenario was checked.
	}
	return p
}

// do runs tasks, so many at a time, and returns the error of the first of them that failed.
func do(tasks []func() error, parallel int) error {
	errs := make([]error, len(tasks))
	next := make(chan int)
	var wait sync.WaitGroup
	for range max(1, min(parallel, len(tasks))) {
		wait.Go(func() {
			for i := range next {
				errs[i] = tasks[i]()
			}
		})
	}
	for i := range tasks {
		next <- i
	}
	close(next)
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Measure is a number of a run.
type Measure func(*simulate.Result) float64

// values of a measure over the seeds.
func (o *Outcome) values(policy int, m Measure) []float64 {
	out := make([]float64, len(o.Runs[policy]))
	for i, r := range o.Runs[policy] {
		out[i] = m(r)
	}
	return out
}

// Of is a measure of a policy.
func (o *Outcome) Of(policy int, m Measure) estimate.Interval {
	return estimate.Of(o.values(policy, m))
}

// Against is by how much a measure of a policy exceeds that of another, run by run.
func (o *Outcome) Against(policy, other int, m Measure) estimate.Interval {
	return estimate.Paired(o.values(policy, m), o.values(other, m))
}

// Policy finds a policy of the scenario, or -1.
func (o *Outcome) Policy(name string) int {
	for i, p := range o.Policies {
		if p == name {
			return i
		}
	}
	return -1
}

// Fits is how often a device of an offer is free while the utilisation is within a bucket, over all runs of a policy, and
// for how many hours it was there.
func (o *Outcome) Fits(policy, offer, bucket int) (share, hours float64) {
	fits := 0.0
	for _, r := range o.Runs[policy] {
		fits += r.Fits[offer][bucket]
		hours += r.Hours[bucket]
	}
	if hours == 0 {
		return 0, 0
	}
	return fits / hours, hours
}
