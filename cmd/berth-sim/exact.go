package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/report"
)

func newExact() *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use: "exact", Short: "Compute the best policy of small worlds and compare others with it", Args: cobra.NoArgs,
		Long: "Compute, by value iteration, the best policy of worlds whose devices lie in one another, with Poisson arrivals and exponential\n" +
			"durations, and say by how many points of goodput other policies fall short of it on the same gangs.",
		Example: "  berth-sim exact --family tree --size 16 --spans 1,2,4,8 --load 0.9 \\\n" +
			"    --kind hosts=1,duration=exponential:1h --kind hosts=2,duration=exponential:1h \\\n" +
			"    --kind hosts=4,duration=exponential:1h --kind hosts=8,duration=exponential:1h",
		RunE: func(command *cobra.Command, _ []string) error { return exactly(command, o) },
	}
	o.bind(command)
	return command
}

func exactly(command *cobra.Command, o *options) error {
	list, err := o.load(command, policy.Names)
	if err != nil {
		return err
	}
	for _, p := range list {
		if !slices.Contains(p.Policies, policy.Exact) {
			return fmt.Errorf("--policy: scenario %s does not name the policy exact", p.Name)
		}
	}
	outcomes, err := o.simulateAll(list)
	if err != nil {
		return err
	}
	t, err := report.Summarise("gap", outcomes)
	if err != nil {
		return err
	}
	if o.charts != "" {
		err := draw(filepath.Join(o.charts, "gap."+o.format), func(w io.Writer) error { return report.SummaryChart(w, o.format, "gap", outcomes) })
		if err != nil {
			return err
		}
	}
	if o.output == "json" {
		return report.WriteJSON(command.OutOrStdout(), outcomes)
	}
	t.Title = "Points of goodput short of the best policy"
	t.Columns = slices.Insert(t.Columns, 1, "states", "decisions")
	for i, outcome := range outcomes {
		t.Rows[i] = slices.Insert(t.Rows[i], 1, fmt.Sprint(outcome.Optimum.States), fmt.Sprint(outcome.Optimum.Decisions))
	}
	o.table(command.OutOrStdout(), t)
	return nil
}
