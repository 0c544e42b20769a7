package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/chart"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/experiment"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/report"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/scenario"
)

// Marks in a document between which report writes.
const (
	markBegin = "<!-- berth-sim "
	markEnd   = "<!-- /berth-sim -->"
)

func newReport() *cobra.Command {
	o := &options{}
	into := ""
	command := &cobra.Command{
		Use: "report", Short: "Write tables and charts into a Markdown document", Args: cobra.NoArgs,
		Long: "Write what scenarios come to into a Markdown document, between lines such as\n\n" +
			"  <!-- berth-sim summary gap small -->        a measure of all scenarios of a group: gap, goodput, blocked, wait, p99, hosts\n" +
			"  <!-- berth-sim chart gap small gap.svg -->  the same as a chart, in a file beside the document\n" +
			"  <!-- berth-sim policies kep -->             a scenario by policy; also sizes, fits\n" +
			"  <!-- berth-sim fit-chart kep kep.svg -->    how often each size fits at each utilisation; also size-chart\n" +
			"  <!-- /berth-sim -->                         ends what is written\n\n" +
			"Only scenarios that the document names are run.",
		RunE: func(command *cobra.Command, _ []string) error { return write(command, o, into) },
	}
	o.bind(command)
	command.Flags().StringVar(&into, "into", "", "the document")
	return command
}

// insertion is one place of a document.
type insertion struct {
	line  int
	words []string
}

func write(command *cobra.Command, o *options, into string) error {
	if into == "" || len(o.scenarios) == 0 {
		return fmt.Errorf("name the document with --into and scenarios with -s")
	}
	document, err := os.ReadFile(into)
	if err != nil {
		return fmt.Errorf("--into: %w", err)
	}
	lines := strings.Split(string(document), "\n")
	places, err := insertions(into, lines)
	if err != nil {
		return err
	}
	list, err := o.load(command, policy.Names)
	if err != nil {
		return err
	}
	w := &writer{options: o, document: into, list: list, outcomes: map[string]*experiment.Outcome{}, err: command.ErrOrStderr()}
	var out []string
	at := 0
	for _, place := range places {
		out = append(out, lines[at:place.line+1]...)
		text, err := w.insert(place.words)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", into, place.line+1, err)
		}
		out = append(out, "", strings.TrimSpace(text), "")
		for at = place.line; lines[at] != markEnd; at++ {
		}
	}
	out = append(out, lines[at:]...)
	return os.WriteFile(into, []byte(strings.Join(out, "\n")), 0o666)
}

// insertions are the marks of a document.
func insertions(file string, lines []string) ([]insertion, error) {
	var out []insertion
	open := 0
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, markBegin):
			if open > 0 {
				return nil, fmt.Errorf("%s:%d: what begins in line %d does not end before", file, i+1, open)
			}
			open = i + 1
			words := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(line, markBegin), "-->"))
			if !complete(words) {
				return nil, fmt.Errorf("%s:%d: %q is nothing that berth-sim report writes", file, i+1, strings.Join(words, " "))
			}
			out = append(out, insertion{i, words})
		case line == markEnd:
			if open == 0 {
				return nil, fmt.Errorf("%s:%d: ends what did not begin", file, i+1)
			}
			open = 0
		}
	}
	if open > 0 {
		return nil, fmt.Errorf("%s:%d: %s is missing below", file, open, markEnd)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: the document has no line that begins with %q", file, markBegin)
	}
	return out, nil
}

// complete reports whether the words of a mark can be carried out, given scenarios of these names.
func complete(words []string) bool {
	if len(words) == 0 {
		return false
	}
	count := map[string]int{"summary": 3, "chart": 4, "policies": 2, "sizes": 2, "fits": 2, "fit-chart": 3, "size-chart": 3}[words[0]]
	if len(words) != count {
		return false
	}
	if words[0] == "summary" || words[0] == "chart" {
		return slices.Contains(report.Summaries, words[1])
	}
	return true
}

// writer runs scenarios when they are first needed.
type writer struct {
	*options
	document string
	list     []*scenario.Prepared
	outcomes map[string]*experiment.Outcome
	err      io.Writer
}

func (w *writer) outcome(p *scenario.Prepared) (*experiment.Outcome, error) {
	if o := w.outcomes[p.Name]; o != nil {
		return o, nil
	}
	fmt.Fprintln(w.err, "simulating", p.Name)
	o, err := experiment.Run(p, w.parallel)
	if err != nil {
		return nil, failed{err}
	}
	w.outcomes[p.Name] = o
	return o, nil
}

func (w *writer) group(name string) ([]*experiment.Outcome, error) {
	var out []*experiment.Outcome
	for _, p := range w.list {
		if p.Group == name {
			o, err := w.outcome(p)
			if err != nil {
				return nil, err
			}
			out = append(out, o)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no scenario of group %s", name)
	}
	return out, nil
}

func (w *writer) named(name string) (*experiment.Outcome, error) {
	for _, p := range w.list {
		if p.Name == name {
			return w.outcome(p)
		}
	}
	return nil, fmt.Errorf("there is no scenario %s", name)
}

// insert makes what a mark asks for.
func (w *writer) insert(words []string) (string, error) {
	var b bytes.Buffer
	if words[0] == "summary" || words[0] == "chart" {
		outcomes, err := w.group(words[2])
		if err != nil {
			return "", err
		}
		if words[0] == "chart" {
			return w.chart(words[3], words[1], func(out io.Writer, format string) error { return report.SummaryChart(out, format, words[1], outcomes) })
		}
		t, err := report.Summarise(words[1], outcomes)
		t.Markdown(&b)
		return b.String(), err
	}
	o, err := w.named(words[1])
	if err != nil {
		return "", err
	}
	switch words[0] {
	case "fit-chart":
		return w.chart(words[2], "how often each size fits", func(out io.Writer, format string) error { return report.FitChart(out, format, o) })
	case "size-chart":
		return w.chart(words[2], "by size", func(out io.Writer, format string) error { return report.SizeChart(out, format, o) })
	case "policies":
		report.Policies(o).Markdown(&b)
	case "sizes":
		report.Sizes(o).Markdown(&b)
	case "fits":
		report.FitTable(o).Markdown(&b)
	}
	return b.String(), nil
}

// chart draws into a file beside the document and returns the reference to it.
func (w *writer) chart(file, alt string, write func(io.Writer, string) error) (string, error) {
	format := strings.TrimPrefix(path.Ext(file), ".")
	if !slices.Contains(chart.Formats, format) {
		return "", fmt.Errorf("%s: the name of a chart must end in .svg or .png", file)
	}
	err := draw(filepath.Join(filepath.Dir(w.document), filepath.FromSlash(file)), func(out io.Writer) error { return write(out, format) })
	return fmt.Sprintf("![%s](%s)", alt, file), err
}
