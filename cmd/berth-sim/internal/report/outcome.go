package report

import (
	"fmt"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/estimate"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/experiment"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
)

// Measures of a run that tables show.
var (
	goodput = func(r *simulate.Result) float64 { return 100 * r.Goodput }
	blocked = func(r *simulate.Result) float64 { return 100 * r.Blocked }
	wait    = func(r *simulate.Result) float64 { return r.Wait }
)

func kindBlocked(kind int) experiment.Measure {
	return func(r *simulate.Result) float64 { return 100 * r.Kinds[kind].Blocked }
}

func kindMean(kind int) experiment.Measure {
	return func(r *simulate.Result) float64 { return r.Kinds[kind].Mean }
}

func kindP99(kind int) experiment.Measure {
	return func(r *simulate.Result) float64 { return r.Kinds[kind].P99 }
}

// number writes a mean with its interval; without one where there was a single run.
func number(i estimate.Interval, digits int) string {
	if i.Runs < 2 {
		return fmt.Sprintf("%.*f", digits, i.Mean)
	}
	return fmt.Sprintf("%.*f ± %.*f", digits, i.Mean, digits, i.Half)
}

// change writes a difference with its sign.
func change(i estimate.Interval, digits int) string {
	if i.Runs < 2 {
		return fmt.Sprintf("%+.*f", digits, i.Mean)
	}
	return fmt.Sprintf("%+.*f ± %.*f", digits, i.Mean, digits, i.Half)
}

// gap is by how many points of goodput a policy falls short of the best one (see exact.Judge).
func gap(o *experiment.Outcome, policyAt int) estimate.Interval {
	return o.Of(policyAt, func(r *simulate.Result) float64 { return 100 * r.Short })
}

// waits reports whether gangs of the scenario wait.
func waits(o *experiment.Outcome) bool { return o.Line != simulate.Loss }

// Describe says in one line what was simulated.
func Describe(o *experiment.Outcome) string {
	text := fmt.Sprintf("%s: %d hosts", o.Name, o.Hardware.Hosts())
	if o.Trace != "" {
		text += ", trace " + o.Trace
	} else {
		text += fmt.Sprintf(", load %.4g", o.Load)
	}
	switch o.Line {
	case simulate.Free:
		text += ", gangs wait and may go before each other"
	case simulate.Targets:
		text += ", gangs wait and have targets"
	default:
		text += ", gangs without a place are lost"
	}
	if o.Recall {
		text += " with recall"
	}
	runs := "1 run"
	if o.Seeds > 1 {
		runs = fmt.Sprintf("%d runs", o.Seeds)
	}
	return text + fmt.Sprintf(", %s of %.4g hours, the first %.4g not measured", runs, o.Hours, o.Warmup)
}

// Tables of one scenario.
func Tables(o *experiment.Outcome) []Table {
	out := []Table{Policies(o), Sizes(o)}
	return append(out, FitTable(o))
}

// Policies has one row for each policy.
func Policies(o *experiment.Outcome) Table {
	t := Table{Title: Describe(o), Columns: []string{"policy", "goodput %"}}
	first, best := o.Policies[0], o.Policy(policy.Exact)
	several := len(o.Policies) > 1
	if several {
		t.Columns = append(t.Columns, "against "+first)
	}
	if best >= 0 && several {
		t.Columns = append(t.Columns, "short of the best")
	}
	t.Columns = append(t.Columns, "work blocked %")
	if waits(o) {
		t.Columns = append(t.Columns, "wait h")
		if several {
			t.Columns = append(t.Columns, "against "+first+" h")
		}
	}
	if o.Needs != nil {
		t.Columns = append(t.Columns, "hosts needed", "against "+first+" %")
	}
	for i, name := range o.Policies {
		row := []string{name, number(o.Of(i, goodput), 2)}
		if several {
			row = append(row, change(o.Against(i, 0, goodput), 2))
		}
		if best >= 0 && several {
			row = append(row, number(gap(o, i), 2))
		}
		row = append(row, number(o.Of(i, blocked), 2))
		if waits(o) {
			row = append(row, number(o.Of(i, wait), 3))
			if several {
				row = append(row, change(o.Against(i, 0, wait), 3))
			}
		}
		if o.Needs != nil {
			hosts, percent := o.NeedOf(i)
			row = append(row, number(hosts, 1), change(percent, 2))
		}
		t.Rows = append(t.Rows, row)
	}
	if o.Optimum != nil {
		t.Rows = append(t.Rows, append([]string{"best by value iteration", fmt.Sprintf("%.2f", 100*o.Optimum.Goodput)}, make([]string, len(t.Columns)-2)...))
	}
	return t
}

// Sizes has one row for each size: what share of its gangs was lost, or how long they waited.
func Sizes(o *experiment.Outcome) Table {
	t := Table{Title: "Blocked by size, % of the gangs", Columns: append([]string{"size"}, o.Policies...)}
	if waits(o) {
		t.Title = "Wait by size in hours, mean / 99th percentile"
	}
	for k, offer := range o.Offers {
		row := []string{fmt.Sprintf("%s (%d)", offer.Class, offer.Hosts)}
		for i := range o.Policies {
			if waits(o) {
				row = append(row, fmt.Sprintf("%.2f / %s", o.Of(i, kindMean(k)).Mean, number(o.Of(i, kindP99(k)), 2)))
			} else {
				row = append(row, number(o.Of(i, kindBlocked(k)), 2))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// leastHours is how long a utilisation must have been there, over all runs, before anything is said of it.
const leastHours = 5

// FitTable has one row for each size and tenth of utilisation in which every policy spent some time.
func FitTable(o *experiment.Outcome) Table {
	t := Table{Title: "How often a size fits at a utilisation, % of the time", Columns: append([]string{"size, utilisation"}, o.Policies...)}
	const steps = 10
	for k, offer := range o.Offers {
		for step := range steps {
			row := []string{fmt.Sprintf("%s, %d–%d %%", offer.Class, step*100/steps, (step+1)*100/steps)}
			for i := range o.Policies {
				fits, hours := 0.0, 0.0
				for b := step * simulate.Buckets / steps; b < (step+1)*simulate.Buckets/steps; b++ {
					share, h := o.Fits(i, k, b)
					fits, hours = fits+share*h, hours+h
				}
				if hours >= leastHours {
					row = append(row, fmt.Sprintf("%.1f", 100*fits/hours))
				}
			}
			if len(row) == len(t.Columns) {
				t.Rows = append(t.Rows, row)
			}
		}
	}
	return t
}
