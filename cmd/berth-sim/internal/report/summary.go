package report

import (
	"fmt"
	"slices"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/experiment"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
)

// Summaries that can be asked for.
var Summaries = []string{"gap", "goodput", "blocked", "wait", "p99", "hosts"}

// Summarise shows one measure of several scenarios that compare the same policies with the same first one.
func Summarise(of string, outcomes []*experiment.Outcome) (Table, error) {
	if !slices.Contains(Summaries, of) {
		return Table{}, fmt.Errorf("there is no summary of %q", of)
	}
	policies := outcomes[0].Policies
	for _, o := range outcomes {
		if !slices.Equal(o.Policies, policies) {
			return Table{}, fmt.Errorf("scenarios %s and %s compare different policies", outcomes[0].Name, o.Name)
		}
	}
	t := Table{Columns: []string{"scenario"}}
	own := map[string]string{"gap": "best %", "goodput": policies[0] + " %", "blocked": policies[0] + " %", "wait": policies[0] + " h", "p99": "size", "hosts": policies[0]}[of]
	t.Columns = append(t.Columns, own)
	for _, name := range policies {
		if of == "p99" || name != policies[0] && name != policy.Exact || of == "gap" && name != policy.Exact {
			t.Columns = append(t.Columns, name)
		}
	}
	for _, o := range outcomes {
		row, err := summary(of, o)
		if err != nil {
			return Table{}, err
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

func summary(of string, o *experiment.Outcome) ([]string, error) {
	row := []string{o.Name}
	switch of {
	case "gap":
		if o.Optimum == nil {
			return nil, fmt.Errorf("scenario %s does not name the policy exact, so nothing is known of the best one", o.Name)
		}
		row = append(row, fmt.Sprintf("%.2f", 100*o.Optimum.Goodput))
		for i, name := range o.Policies {
			if name != policy.Exact {
				row = append(row, number(gap(o, i), 2))
			}
		}
	case "goodput", "blocked":
		m := experiment.Measure(goodput)
		if of == "blocked" {
			m = blocked
		}
		row = append(row, number(o.Of(0, m), 2))
		for i, name := range o.Policies[1:] {
			if name != policy.Exact {
				row = append(row, change(o.Against(i+1, 0, m), 2))
			}
		}
	case "wait":
		row = append(row, number(o.Of(0, wait), 2))
		for i := range o.Policies[1:] {
			row = append(row, change(o.Against(i+1, 0, wait), 2))
		}
	case "p99":
		largest := len(o.Offers) - 1
		row = append(row, fmt.Sprint(o.Offers[largest].Hosts))
		for i := range o.Policies {
			row = append(row, number(o.Of(i, kindP99(largest)), 1))
		}
	case "hosts":
		if o.Needs == nil {
			return nil, fmt.Errorf("scenario %s does not ask how many hosts are needed: set compact", o.Name)
		}
		hosts, _ := o.NeedOf(0)
		row = append(row, number(hosts, 0))
		for i := range o.Policies[1:] {
			_, percent := o.NeedOf(i + 1)
			row = append(row, change(percent, 2)+" %")
		}
	}
	return row, nil
}
