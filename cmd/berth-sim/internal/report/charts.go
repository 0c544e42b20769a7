package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/chart"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/estimate"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/experiment"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
)

// colour of a policy is the same in all charts.
func colour(name string) int { return slices.Index(policy.Names, name) }

// bars has a group for each scenario and a bar for each policy that value knows something of. Random is left out: it is so far
// off that nothing could be told of the others.
func bars(title, y string, outcomes []*experiment.Outcome, value func(o *experiment.Outcome, policyAt int) (estimate.Interval, bool)) chart.Bars {
	b := chart.Bars{Title: title, Y: y}
	for i, name := range outcomes[0].Policies {
		if name == policy.Random {
			continue
		}
		s := chart.Series{Name: name, Colour: colour(name)}
		for _, o := range outcomes {
			if v, known := value(o, i); known {
				s.Values = append(s.Values, v)
			}
		}
		if len(s.Values) == len(outcomes) {
			b.Series = append(b.Series, s)
		}
	}
	for _, o := range outcomes {
		b.Groups = append(b.Groups, o.Name)
	}
	return b
}

// SummaryChart draws what Summarise tells of the same measure.
func SummaryChart(w io.Writer, format, of string, outcomes []*experiment.Outcome) error {
	var b chart.Bars
	switch of {
	case "gap":
		b = bars("Short of the best policy", "points of goodput", outcomes, func(o *experiment.Outcome, i int) (estimate.Interval, bool) {
			return gap(o, i), o.Policies[i] != policy.Exact
		})
	case "goodput":
		b = bars("Goodput", "% of the host-hours", outcomes, func(o *experiment.Outcome, i int) (estimate.Interval, bool) {
			return o.Of(i, goodput), true
		})
	case "blocked":
		b = bars("Work that finds no place on arrival", "% of the host-hours", outcomes, func(o *experiment.Outcome, i int) (estimate.Interval, bool) {
			return o.Of(i, blocked), true
		})
	case "wait":
		b = bars("Wait, by hosts", "hours", outcomes, func(o *experiment.Outcome, i int) (estimate.Interval, bool) {
			return o.Of(i, wait), true
		})
	case "p99":
		b = bars("Wait of the largest size, 99th percentile", "hours", outcomes, func(o *experiment.Outcome, i int) (estimate.Interval, bool) {
			return o.Of(i, kindP99(len(o.Offers)-1)), true
		})
	case "hosts":
		b = bars("Hosts needed at the same wait", "% of what "+outcomes[0].Policies[0]+" needs", outcomes, func(o *experiment.Outcome, i int) (estimate.Interval, bool) {
			if o.Needs == nil {
				return estimate.Interval{}, false
			}
			_, percent := o.NeedOf(i)
			percent.Mean += 100
			return percent, true
		})
	default:
		return fmt.Errorf("there is no chart of %q", of)
	}
	return b.Write(w, format)
}

// FitChart draws, for each size, how often it fits at each utilisation.
func FitChart(w io.Writer, format string, o *experiment.Outcome) error {
	var panels []chart.Panel
	for k, offer := range o.Offers {
		p := chart.Panel{Title: fmt.Sprintf("%d hosts (%s)", offer.Hosts, offer.Class), X: "utilisation %", Y: "fits, % of the time", YMax: 100}
		for i, name := range o.Policies {
			p.Lines = append(p.Lines, fitLine(o, i, k, name))
		}
		panels = append(panels, p)
	}
	return chart.Panels(w, format, panels, 3)
}

func fitLine(o *experiment.Outcome, policyAt, offer int, name string) chart.Line {
	line := chart.Line{Name: name, Colour: colour(name)}
	gap := false
	for b := range simulate.Buckets {
		share, hours := o.Fits(policyAt, offer, b)
		if hours < leastHours {
			gap = true
			continue
		}
		line.Points = append(line.Points, chart.Point{X: (float64(b) + 0.5) * 100 / simulate.Buckets, Y: 100 * share, Gap: gap})
		gap = false
	}
	return line
}

// SizeChart draws, for each size, what share of its gangs was blocked, or the 99th percentile of their wait.
func SizeChart(w io.Writer, format string, o *experiment.Outcome) error {
	b := chart.Bars{Title: o.Name + ": blocked by size", Y: "% of the gangs"}
	measure := kindBlocked
	if waits(o) {
		b.Title, b.Y, measure = o.Name+": wait by size, 99th percentile", "hours", kindP99
	}
	for i, name := range o.Policies {
		s := chart.Series{Name: name, Colour: colour(name)}
		for k := range o.Offers {
			s.Values = append(s.Values, o.Of(i, measure(k)))
		}
		b.Series = append(b.Series, s)
	}
	for _, offer := range o.Offers {
		b.Groups = append(b.Groups, fmt.Sprint(offer.Hosts))
	}
	return b.Write(w, format)
}
