package main

import (
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/render"
)

func newMap() *cobra.Command {
	command, o := subcommand("map", "Draw who holds what",
		"Draw the hosts of every pool and who holds them: a grid where the shapes of the devices give the hosts positions, else\n"+
			"a line for each domain.", hostMap)
	command.Flags().BoolVar(&o.placed, "placed", false, "place the gangs of the input first, as fit does")
	placing(command, o)
	return command
}

func hostMap(command *cobra.Command, o *options) error {
	w, err := load(command, o, func(errors []string) report { return render.NewMapReport(nil, nil, nil, errors) })
	if err != nil {
		return err
	}
	if o.placed {
		w.pass(o.order)
	}
	r := render.NewMapReport(w.Inventory, w.Ledger, w.warnings, nil)
	return write(command, o, r, r.Warnings)
}
