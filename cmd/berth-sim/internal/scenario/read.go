package scenario

import (
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/traffic"
)

// Read reads a file of scenarios:
//
//	scenarios:
//	  - name: kep
//	    hardware: {family: kep, pools: 4}
//	    load: 0.8
//	    kinds:
//	      - {class: tpu-4x4, share: 1, duration: {kind: exponential, mean: 2h}}
//	    policies: [firstfit, berth]
//
// docs/simulation.md lists all fields. An error is Faults with everything that is wrong.
func Read(file string, content []byte) ([]Scenario, error) {
	r := &reader{file: file, lines: map[string]int{}}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, Faults{{File: file, Message: strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	var out []Scenario
	if len(document.Content) == 0 {
		return nil, Faults{{File: file, Message: "is empty"}}
	}
	left := maxNodes
	if f := unfold(&document, map[*yaml.Node]bool{}, &left); f != nil {
		f.File = file
		return nil, Faults{*f}
	}
	r.object(document.Content[0], "", fields{"scenarios": func(n *yaml.Node, at string) {
		r.list(n, at, func(n *yaml.Node, at string) { out = append(out, r.scenario(n, at)) })
	}})
	if len(r.faults) == 0 && len(out) == 0 {
		r.fault(document.Content[0], "scenarios", "is missing or empty")
	}
	for i, s := range out {
		at := fmt.Sprintf("scenarios[%d].name", i)
		switch first := slices.IndexFunc(out, func(o Scenario) bool { return o.Name == s.Name }); {
		case s.Name == "":
			r.fault(nil, at, "is missing")
		case first < i:
			r.fault(nil, at, "%s is the name of scenarios[%d], too", s.Name, first)
		}
	}
	if len(r.faults) > 0 {
		return nil, source{lines: r.lines}.place(r.faults)
	}
	return out, nil
}

// place fills in the lines that are not known yet.
func (s source) place(faults Faults) Faults {
	for i := range faults {
		for path := faults[i].Field; path != "" && faults[i].Line == 0; path = parent(path) {
			faults[i].Line = s.lines[path]
		}
	}
	return faults
}

func (r *reader) scenario(n *yaml.Node, at string) Scenario {
	s := Scenario{source: source{file: r.file, at: at, lines: r.lines}}
	r.lines[at] = n.Line
	r.object(n, at, fields{
		"name":  r.text(&s.Name),
		"group": r.text(&s.Group),
		"hardware": func(n *yaml.Node, at string) {
			var extent []int
			r.object(n, at, fields{
				"family": r.text(&s.Family.Name), "size": r.whole(&s.Family.Size), "pools": r.whole(&s.Family.Pools),
				"spans": r.wholes(&s.Family.Spans), "extent": r.wholes(&extent), "files": r.texts(&s.Files),
			})
			if extent != nil && len(extent) != 3 {
				r.fault(n, at+".extent", "must be three numbers")
			}
			copy(s.Family.Extent[:], extent)
		},
		"load": r.number(&s.Load),
		"shares": func(n *yaml.Node, at string) {
			var of string
			r.text(&of)(n, at)
			if of != "gangs" && of != "work" {
				r.fault(n, at, "is %q, must be gangs or work", of)
			}
			s.ByGangs = of == "gangs"
		},
		"kinds": func(n *yaml.Node, at string) {
			r.list(n, at, func(n *yaml.Node, at string) { s.Kinds = append(s.Kinds, r.kind(n, at)) })
		},
		"trace":    r.text(&s.Trace),
		"line":     func(n *yaml.Node, at string) { r.text((*string)(&s.Line))(n, at) },
		"recall":   r.truth(&s.Recall),
		"policies": r.texts(&s.Policies),
		"seeds":    r.whole(&s.Seeds),
		"seed": func(n *yaml.Node, at string) {
			seed := 0
			r.whole(&seed)(n, at)
			s.Seed = uint64(seed)
		},
		"hours":   r.number(&s.Hours),
		"warmup":  r.number(&s.Warmup),
		"compact": r.truth(&s.Compact),
	})
	return s
}

func (r *reader) kind(n *yaml.Node, at string) traffic.Kind {
	k := traffic.Kind{Share: 1}
	priority := 0
	r.object(n, at, fields{
		"class": r.text(&k.Class), "hosts": r.whole(&k.Hosts), "share": r.number(&k.Share), "queue": r.text(&k.Queue),
		"priority": r.whole(&priority), "limit": r.number(&k.Limit),
		"duration": func(n *yaml.Node, at string) {
			r.object(n, at, fields{
				"kind": r.text(&k.Durations.Kind), "sigma": r.number(&k.Durations.Sigma), "alpha": r.number(&k.Durations.Alpha),
				"mean": func(n *yaml.Node, at string) {
					var text string
					r.text(&text)(n, at)
					h, err := traffic.Hours(text)
					if err != nil && text != "" {
						r.fault(n, at, "%v", err)
					}
					k.Durations.Mean = h
				},
			})
		},
	})
	k.Priority = int32(priority)
	return k
}
