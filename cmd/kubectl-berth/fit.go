package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/render"
	"github.com/berth-dev/berth/pkg/snapshot/files"
)

func newFit() *cobra.Command {
	command, o := subcommand("fit", "Say which gangs fit, and where",
		"Place every gang of the input, one after the other, on what is free, and say where each goes or why it does not.\n"+
			"A Job and its Workload are one gang; a gang that is reserved already is reported and not placed again.\n\n"+
			"Exit code 0: all fit. 1: some do not. 2: bad input.", fit)
	placing(command, o)
	command.Flags().StringVar(&o.workload, "workload", "", "report this gang only, by the name of its Job or Workload, NAME or NAMESPACE/NAME; those before it are placed all the same")
	return command
}

// placing adds the flags of commands that place gangs.
func placing(command *cobra.Command, o *options) {
	command.Flags().StringVar(&o.order, "order", orderFile, "whose turn it is: file (as they stand in the input) or line (as the controller would)")
}

func fit(command *cobra.Command, o *options) error {
	r, err := judge(command, o)
	if err != nil {
		return err
	}
	if err := write(command, o, r, r.Warnings); err != nil {
		return err
	}
	return verdict(r.Workloads)
}

// judge reads the input, places the gangs and reports those that were asked for.
func judge(command *cobra.Command, o *options) (render.FitReport, error) {
	empty := func(errors []string) report { return render.NewFitReport(nil, nil, errors) }
	w, err := load(command, o, empty)
	if err != nil {
		return render.FitReport{}, err
	}
	outcomes := w.pass(o.order)
	if o.workload != "" {
		found := named(outcomes, o.workload)
		switch {
		case len(found) == 0:
			return render.FitReport{}, bad(command, o, files.Faults{{File: "--workload", Message: fmt.Sprintf("the input has no gang %s", o.workload)}}, empty)
		case len(found) > 1:
			var names []string
			for _, f := range found {
				names = append(names, f.kind+" "+f.title())
			}
			return render.FitReport{}, bad(command, o, files.Faults{{File: "--workload", Message: fmt.Sprintf("%s may mean %s", o.workload, render.Some(names))}}, empty)
		}
		outcomes = found
	}
	workloads := make([]render.Workload, 0, len(outcomes))
	for _, out := range outcomes {
		workloads = append(workloads, out.report)
	}
	return render.NewFitReport(workloads, w.warnings, nil), nil
}

// load makes the world of the input.
func load(command *cobra.Command, o *options, empty func([]string) report) (*world, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	objects, faults := files.Read(o.files, command.InOrStdin())
	if len(faults) > 0 {
		return nil, bad(command, o, faults, empty)
	}
	return newWorld(objects), nil
}

func verdict(workloads []render.Workload) error {
	if slices.ContainsFunc(workloads, func(w render.Workload) bool { return !w.Fits }) {
		return errNoFit
	}
	return nil
}
