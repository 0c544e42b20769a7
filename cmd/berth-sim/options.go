package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/chart"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/experiment"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/scenario"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
)

// options are the flags that commands share.
type options struct {
	// scenarios are files with scenarios, of which only those named are run.
	scenarios, only []string
	// one is the scenario that the flags describe.
	one    scenario.Scenario
	kinds  []string
	extent string
	line   string
	shares string

	output   string
	charts   string
	format   string
	parallel int
}

// Flags that also change scenarios of a file.
var overriding = []string{"policy", "seeds", "seed", "hours", "warmup"}

// describing flags make a scenario.
var describing = []string{"family", "size", "spans", "extent", "pools", "filename", "load", "shares", "kind", "trace", "line", "recall", "compact"}

func (o *options) bind(command *cobra.Command) {
	f := command.Flags()
	f.StringArrayVarP(&o.scenarios, "scenarios", "s", nil, "file of scenarios, or - for standard input; repeatable")
	f.StringSliceVar(&o.only, "only", nil, "names of the scenarios to run; all if not given")

	f.StringVar(&o.one.Family.Name, "family", "", "hardware: kep, rack, tree, cubes, torus or windows")
	f.IntVar(&o.one.Family.Size, "size", 0, "hosts of a tree, or cubes of a pool of cubes")
	f.IntSliceVar(&o.one.Family.Spans, "spans", nil, "hosts of the devices of a tree, for instance 1,2,4,8")
	f.StringVar(&o.extent, "extent", "", "cubes of a pool of windows, for instance 4x4x2")
	f.IntVar(&o.one.Family.Pools, "pools", 1, "number of pools")
	f.StringArrayVarP(&o.one.Files, "filename", "f", nil, "dumped state instead of a family: file or directory with YAML or JSON, or -; repeatable")
	f.Float64Var(&o.one.Load, "load", 0, "host-hours that come per hour and host")
	f.StringVar(&o.shares, "shares", "work", "what the shares of kinds are of: work or gangs")
	f.StringArrayVar(&o.kinds, "kind", nil, "kind of gang, for instance class=tpu-4x4,share=2,duration=pareto:2h:1.5 (exponential:MEAN, lognormal:MEAN:SIGMA, pareto:MEAN:ALPHA, fixed:MEAN), also hosts=, priority=, queue=, limit=; repeatable")
	f.StringVar(&o.one.Trace, "trace", "", "file with gangs as CSV or JSON, instead of a load and kinds")
	f.StringVar(&o.line, "line", "loss", "what becomes of a gang without a place: loss, free or targets")
	f.BoolVar(&o.one.Recall, "recall", false, "let gangs of lower priority into targets, to be evicted for them")
	f.BoolVar(&o.one.Compact, "compact", false, "find how many hosts each policy needs at the same wait")
	f.StringSliceVar(&o.one.Policies, "policy", nil, "policies: firstfit, random, bestfit, slurm, berth, berth-demand or exact")
	f.IntVar(&o.one.Seeds, "seeds", scenario.DefaultSeeds, "number of runs")
	f.Uint64Var(&o.one.Seed, "seed", 0, "seed of the first run")
	f.Float64Var(&o.one.Hours, "hours", 0, "hours to simulate (default 200, or the whole trace)")
	f.Float64Var(&o.one.Warmup, "warmup", 0, "hours that are not measured (default a tenth; none of a trace)")

	f.StringVarP(&o.output, "output", "o", "text", "text, markdown or json")
	f.StringVar(&o.charts, "charts", "", "directory for charts; none are drawn without it")
	f.StringVar(&o.format, "format", "svg", "format of the charts: svg or png")
	f.IntVar(&o.parallel, "parallel", runtime.GOMAXPROCS(0), "runs at a time; it changes no result")
}

// load makes the scenarios that the flags name, ready to be run. Policies are what a scenario has that names none.
func (o *options) load(command *cobra.Command, policies []string) ([]*scenario.Prepared, error) {
	if !slices.Contains([]string{"text", "markdown", "json"}, o.output) {
		return nil, fmt.Errorf("--output: is %q, must be text, markdown or json", o.output)
	}
	if !slices.Contains(chart.Formats, o.format) {
		return nil, fmt.Errorf("--format: is %q, must be svg or png", o.format)
	}
	list, err := o.list(command)
	if err != nil {
		return nil, err
	}
	var out []*scenario.Prepared
	var faults scenario.Faults
	for _, s := range list {
		if len(s.Policies) == 0 {
			s.Policies = policies
		}
		p, err := s.Prepare(command.InOrStdin())
		if f, ok := err.(scenario.Faults); ok { //nolint:errorlint // Prepare returns them as they are.
			faults = append(faults, f...)
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	if len(faults) > 0 {
		return nil, flagged(faults)
	}
	return out, nil
}

// flagged writes fields of the scenario that flags describe as flags.
func flagged(faults scenario.Faults) scenario.Faults {
	names := map[string]string{"hardware": "--family", "policies": "--policy", "kinds": "--kind"}
	for i := range faults {
		f := &faults[i]
		if f.File != "" || f.Field == "" {
			continue
		}
		head, rest, _ := strings.Cut(f.Field, ".")
		if inner, is := strings.CutPrefix(f.Field, "hardware."); is {
			f.Field = "--" + inner
			continue
		}
		bare, index, _ := strings.Cut(head, "[")
		flag := names[bare]
		if flag == "" {
			flag = "--" + bare
		}
		if index != "" {
			flag += "[" + index
		}
		f.Field = strings.TrimSuffix(flag+": "+rest, ": ")
	}
	return faults
}

func (o *options) list(command *cobra.Command) ([]scenario.Scenario, error) {
	if len(o.scenarios) == 0 {
		s, err := o.described()
		if err != nil {
			return nil, err
		}
		return []scenario.Scenario{s}, nil
	}
	for _, name := range describing {
		if command.Flags().Changed(name) {
			return nil, fmt.Errorf("--%s: the scenarios of the file say that", name)
		}
	}
	var all []scenario.Scenario
	for _, file := range o.scenarios {
		content, err := content(file, command.InOrStdin())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list, err := scenario.Read(file, content)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	for i := range all {
		o.override(command, &all[i])
	}
	return o.pick(all)
}

func (o *options) override(command *cobra.Command, s *scenario.Scenario) {
	for _, name := range overriding {
		if !command.Flags().Changed(name) {
			continue
		}
		switch name {
		case "policy":
			s.Policies = o.one.Policies
		case "seeds":
			s.Seeds = o.one.Seeds
		case "seed":
			s.Seed = o.one.Seed
		case "hours":
			s.Hours = o.one.Hours
		case "warmup":
			s.Warmup = o.one.Warmup
		}
	}
}

func (o *options) pick(all []scenario.Scenario) ([]scenario.Scenario, error) {
	if len(o.only) == 0 {
		return all, nil
	}
	var out []scenario.Scenario
	for _, name := range o.only {
		i := slices.IndexFunc(all, func(s scenario.Scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--only: there is no scenario %s", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

func content(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file)
}

// described is the scenario of the flags.
func (o *options) described() (scenario.Scenario, error) {
	s := o.one
	s.Name = "scenario"
	s.Line = simulate.Discipline(o.line)
	if o.shares != "work" && o.shares != "gangs" {
		return s, fmt.Errorf("--shares: is %q, must be work or gangs", o.shares)
	}
	s.ByGangs = o.shares == "gangs"
	if s.Family.Name == "" && len(s.Files) == 0 {
		return s, fmt.Errorf("name hardware with --family or -f, or scenarios with -s")
	}
	if len(s.Files) > 0 {
		s.Family.Pools = 0
	}
	if o.extent != "" {
		parts := strings.Split(o.extent, "x")
		if len(parts) != 3 {
			return s, fmt.Errorf("--extent: is %q, must be three numbers as in 4x4x2", o.extent)
		}
		for i, p := range parts {
			n, err := strconv.Atoi(p)
			if err != nil {
				return s, fmt.Errorf("--extent: is %q, must be three numbers as in 4x4x2", o.extent)
			}
			s.Family.Extent[i] = n
		}
	}
	for _, text := range o.kinds {
		k, err := kindOf(text)
		if err != nil {
			return s, fmt.Errorf("--kind: %q: %w", text, err)
		}
		s.Kinds = append(s.Kinds, k)
	}
	return s, nil
}

// simulateAll runs the scenarios one after the other.
func (o *options) simulateAll(list []*scenario.Prepared) ([]*experiment.Outcome, error) {
	var out []*experiment.Outcome
	for _, p := range list {
		outcome, err := experiment.Run(p, o.parallel)
		if err != nil {
			return nil, failed{err}
		}
		out = append(out, outcome)
	}
	return out, nil
}
