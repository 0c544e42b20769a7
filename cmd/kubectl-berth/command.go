package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cmd/internal/release"
	"github.com/berth-dev/berth/pkg/snapshot/files"
)

// Exit codes.
const (
	exitOK = iota
	exitNoFit
	exitBadInput
)

// errNoFit ends a command whose report says that some gang does not fit.
var errNoFit = errors.New("some gangs do not fit")

// options are the flags that commands share.
type options struct {
	files    []string
	output   string
	workload string
	order    string
	placed   bool
}

// run is main with everything passed in; it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	command := newCommand()
	command.SetArgs(args)
	command.SetIn(stdin)
	command.SetOut(stdout)
	command.SetErr(stderr)
	err := command.Execute()
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNoFit):
		return exitNoFit
	}
	var faults files.Faults
	if !errors.As(err, &faults) {
		fmt.Fprintln(stderr, "error:", err)
		return exitBadInput
	}
	for _, f := range faults {
		fmt.Fprintln(stderr, "error:", f)
	}
	return exitBadInput
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-berth",
		Short: "Ask offline what Berth would do",
		Long: "Ask offline what Berth would do with the objects in some files: ResourceSlices and DeviceClasses, Nodes and Pods,\n" +
			"ResourceClaims and their templates, AcceleratorPools, CapacityFolds, GangReservations, Kueue's objects, Jobs and JobSets.",
		Version:       release.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl berth"},
		RunE: func(command *cobra.Command, _ []string) error {
			return fmt.Errorf("name a command: %s --help lists them", command.CommandPath())
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newFit(), newCapacity(), newMap(), newWhy())
	return root
}

// subcommand makes a command with the flags that all have.
func subcommand(use, short, long string, do func(*cobra.Command, *options) error) (*cobra.Command, *options) {
	o := &options{}
	command := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.NoArgs, RunE: func(command *cobra.Command, _ []string) error {
		return do(command, o)
	}}
	command.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "file or directory with YAML or JSON, or - for standard input; repeatable")
	command.Flags().StringVarP(&o.output, "output", "o", "", "json, yaml or wide")
	return command, o
}

// validate refuses flags that mean nothing.
func (o *options) validate() error {
	switch {
	case len(o.files) == 0:
		return errors.New("name the input with -f")
	case o.output != "" && o.output != "json" && o.output != "yaml" && o.output != "wide":
		return fmt.Errorf("unknown output %q: it must be json, yaml or wide", o.output)
	case o.order != "" && o.order != orderFile && o.order != orderLine:
		return fmt.Errorf("unknown order %q: it must be %s or %s", o.order, orderFile, orderLine)
	}
	return nil
}
