package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/experiment"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/report"
)

func newRun() *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use: "run", Short: "Simulate one policy", Args: cobra.NoArgs,
		Long: "Simulate one policy (Berth's own if none is named) and say what came of the gangs.",
		Example: "  berth-sim run --family kep --pools 4 --load 0.8 --kind class=tpu-4x4,duration=exponential:2h\n" +
			"  berth-sim run -f cluster.yaml --trace gangs.csv --line targets",
		RunE: func(command *cobra.Command, _ []string) error {
			return show(command, o, []string{policy.Berth}, 1)
		},
	}
	o.bind(command)
	return command
}

func newCompare() *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use: "compare", Short: "Compare policies on the same gangs", Args: cobra.NoArgs,
		Long: "Simulate several policies on the same gangs, seed by seed, and compare them with the first one, with 95 % intervals over\n" +
			"the seeds. Without --policy: firstfit, random, bestfit, slurm and berth.",
		Example: "  berth-sim compare --family rack --pools 8 --load 0.8 --line free --compact \\\n" +
			"    --kind hosts=1,duration=lognormal:1h:1 --kind hosts=4,duration=lognormal:2h:1 --kind hosts=16,duration=lognormal:4h:1",
		RunE: func(command *cobra.Command, _ []string) error {
			return show(command, o, []string{policy.FirstFit, policy.Random, policy.BestFit, policy.Slurm, policy.Berth}, 2)
		},
	}
	o.bind(command)
	return command
}

// show runs scenarios and writes their tables or JSON, and charts where asked.
func show(command *cobra.Command, o *options, policies []string, least int) error {
	list, err := o.load(command, policies)
	if err != nil {
		return err
	}
	for _, p := range list {
		if least == 1 && len(p.Policies) != 1 {
			return fmt.Errorf("--policy: run simulates one policy and scenario %s names %d; compare takes several", p.Name, len(p.Policies))
		}
		if len(p.Policies) < least {
			return fmt.Errorf("--policy: compare needs at least two policies and scenario %s names %d", p.Name, len(p.Policies))
		}
	}
	outcomes, err := o.simulateAll(list)
	if err != nil {
		return err
	}
	if err := o.drawAll(outcomes); err != nil {
		return err
	}
	out := command.OutOrStdout()
	if o.output == "json" {
		return report.WriteJSON(out, outcomes)
	}
	for _, outcome := range outcomes {
		for _, t := range report.Tables(outcome) {
			o.table(out, t)
		}
	}
	return nil
}

func (o *options) table(w io.Writer, t report.Table) {
	if o.output == "markdown" {
		t.Markdown(w)
		return
	}
	t.Text(w)
}

// drawAll writes the charts of every scenario into the directory for charts.
func (o *options) drawAll(outcomes []*experiment.Outcome) error {
	if o.charts == "" {
		return nil
	}
	for _, outcome := range outcomes {
		for _, c := range []struct {
			name  string
			write func(io.Writer, string, *experiment.Outcome) error
		}{{"fits", report.FitChart}, {"sizes", report.SizeChart}} {
			err := draw(filepath.Join(o.charts, outcome.Name+"-"+c.name+"."+o.format), func(w io.Writer) error {
				return c.write(w, o.format, outcome)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// draw writes one chart, and the directory that it stands in.
func draw(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
