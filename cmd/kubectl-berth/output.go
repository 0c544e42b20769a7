package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/snapshot/files"
)

// report is what every command answers.
type report interface{ Text(wide bool) string }

// write prints the report as the flags want it; warnings of a text go to stderr.
func write(command *cobra.Command, o *options, r report, warnings []string) error {
	out := command.OutOrStdout()
	switch o.output {
	case "json":
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(r)
	case "yaml":
		raw, err := yaml.Marshal(r)
		if err != nil {
			return err
		}
		_, err = out.Write(raw)
		return err
	}
	for _, w := range warnings {
		fmt.Fprintln(command.ErrOrStderr(), "warning:", w)
	}
	_, err := io.WriteString(out, r.Text(o.output == "wide"))
	return err
}

// bad reports faults of the input: in the report where it is for machines, and in any case as the command's error.
func bad(command *cobra.Command, o *options, faults files.Faults, empty func(errors []string) report) error {
	if o.output == "json" || o.output == "yaml" {
		var lines []string
		for _, f := range faults {
			lines = append(lines, f.Error())
		}
		if err := write(command, o, empty(lines), nil); err != nil {
			return err
		}
	}
	return faults
}
