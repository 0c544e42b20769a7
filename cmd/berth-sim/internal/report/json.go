package report

import (
	"encoding/json"
	"io"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/estimate"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/experiment"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
)

// APIVersion of the JSON.
const APIVersion = "sim.berth.dev/v1"

// Comparison is the JSON of run and compare. Goodput and shares are between 0 and 1, times in hours.
type Comparison struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Scenarios  []ScenarioJSON `json:"scenarios"`
}

// ScenarioJSON is one scenario of a Comparison.
type ScenarioJSON struct {
	Name  string `json:"name"`
	Hosts int    `json:"hosts"`
	Line  string `json:"line"`
	Seeds int    `json:"seeds"`
	// Best is the goodput of the best policy by value iteration, where it was asked for.
	Best     *float64     `json:"best,omitempty"`
	Policies []PolicyJSON `json:"policies"`
}

// PolicyJSON is what one policy came to.
type PolicyJSON struct {
	Name    string            `json:"name"`
	Goodput estimate.Interval `json:"goodput"`
	// AgainstFirst is the goodput less that of the first policy, run by run.
	AgainstFirst estimate.Interval `json:"goodputAgainstFirst"`
	// Gap is by how much the goodput falls short of the best policy's (see exact.Judge).
	Gap     *estimate.Interval `json:"gap,omitempty"`
	Blocked estimate.Interval  `json:"blocked"`
	Wait    estimate.Interval  `json:"wait"`
	// HostsNeeded for the same gangs at the same wait.
	HostsNeeded *estimate.Interval `json:"hostsNeeded,omitempty"`
	Sizes       []SizeJSON         `json:"sizes"`
}

// SizeJSON is what became of the gangs of one size.
type SizeJSON struct {
	Class   string            `json:"class"`
	Hosts   int               `json:"hosts"`
	Blocked estimate.Interval `json:"blocked"`
	Wait    estimate.Interval `json:"wait"`
	P99     estimate.Interval `json:"p99"`
	Fits    []FitJSON         `json:"fits"`
}

// FitJSON is how often the size fits while the utilisation is in a range, for ranges in which the hardware was at all.
type FitJSON struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	Share float64 `json:"share"`
	Hours float64 `json:"hours"`
}

// WriteJSON writes outcomes as a Comparison.
func WriteJSON(w io.Writer, outcomes []*experiment.Outcome) error {
	out := Comparison{APIVersion: APIVersion, Kind: "Comparison", Scenarios: []ScenarioJSON{}}
	for _, o := range outcomes {
		out.Scenarios = append(out.Scenarios, scenarioJSON(o))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

func scenarioJSON(o *experiment.Outcome) ScenarioJSON {
	s := ScenarioJSON{Name: o.Name, Hosts: o.Hardware.Hosts(), Line: string(o.Line), Seeds: o.Seeds}
	if o.Optimum != nil {
		s.Best = &o.Optimum.Goodput
	}
	share := func(m experiment.Measure) experiment.Measure {
		return func(r *simulate.Result) float64 { return m(r) / 100 }
	}
	for i, name := range o.Policies {
		p := PolicyJSON{
			Name: name, Goodput: o.Of(i, share(goodput)), AgainstFirst: o.Against(i, 0, share(goodput)),
			Blocked: o.Of(i, share(blocked)), Wait: o.Of(i, wait),
		}
		if o.Optimum != nil {
			g := o.Of(i, func(r *simulate.Result) float64 { return r.Short })
			p.Gap = &g
		}
		if o.Needs != nil {
			hosts, _ := o.NeedOf(i)
			p.HostsNeeded = &hosts
		}
		for k, offer := range o.Offers {
			size := SizeJSON{
				Class: offer.Class, Hosts: offer.Hosts,
				Blocked: o.Of(i, share(kindBlocked(k))), Wait: o.Of(i, kindMean(k)), P99: o.Of(i, kindP99(k)), Fits: []FitJSON{},
			}
			for b := range simulate.Buckets {
				if fits, hours := o.Fits(i, k, b); hours > 0 {
					size.Fits = append(size.Fits, FitJSON{
						From: float64(b) / simulate.Buckets, To: float64(b+1) / simulate.Buckets, Share: fits, Hours: hours,
					})
				}
			}
			p.Sizes = append(p.Sizes, size)
		}
		s.Policies = append(s.Policies, p)
	}
	return s
}
