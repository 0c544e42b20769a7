package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cmd/internal/release"
)

// Exit codes.
const (
	exitOK = iota
	exitFailed
	exitBadInput
)

// failed is an error of a simulation whose input was in order.
type failed struct{ error }

// Unwrap is for errors.Is.
func (f failed) Unwrap() error { return f.error }

// run is main with everything passed in; it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	command := newCommand()
	command.SetArgs(args)
	command.SetIn(stdin)
	command.SetOut(stdout)
	command.SetErr(stderr)
	err := command.Execute()
	if err == nil {
		return exitOK
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(stderr, "error:", line)
	}
	if f := (failed{}); errors.As(err, &f) {
		return exitFailed
	}
	return exitBadInput
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "berth-sim",
		Short:         "Simulate how gangs fare under different placement policies",
		Version:       release.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return fmt.Errorf("name a command: %s --help lists them", command.CommandPath())
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newRun(), newCompare(), newExact(), newReport())
	return root
}
