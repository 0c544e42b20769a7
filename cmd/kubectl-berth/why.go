package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/render"
)

func newWhy() *cobra.Command {
	command, o := subcommand("why", "Say why a gang does not have its slice",
		"Place the gangs of the input as fit does and explain what becomes of one of them, with everything that stands in its\n"+
			"way. JSON and YAML are those of fit.\n\nExit code 0: it fits. 1: it does not. 2: bad input.", why)
	placing(command, o)
	command.Flags().StringVar(&o.workload, "workload", "", "the gang, by the name of its Job or Workload, NAME or NAMESPACE/NAME")
	return command
}

// explained is a FitReport that is told at length.
type explained struct{ render.FitReport }

// Text is the explanation of every gang of the report.
func (e explained) Text(wide bool) string {
	text := ""
	for _, w := range e.Workloads {
		text += w.Explain(wide)
	}
	return text
}

func why(command *cobra.Command, o *options) error {
	if o.workload == "" {
		return errors.New("name the gang with --workload")
	}
	r, err := judge(command, o)
	if err != nil {
		return err
	}
	if err := write(command, o, explained{r}, r.Warnings); err != nil {
		return err
	}
	return verdict(r.Workloads)
}
