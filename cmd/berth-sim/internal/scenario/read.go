package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
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

// reader walks a document and gathers what is wrong with it.
type reader struct {
	file   string
	faults Faults
	// lines of all fields that were read, by path.
	lines map[string]int
}

type (
	field  func(n *yaml.Node, at string)
	fields map[string]field
)

func (r *reader) fault(n *yaml.Node, at, format string, args ...any) {
	f := Fault{File: r.file, Field: at, Message: fmt.Sprintf(format, args...)}
	if n != nil {
		f.Line = n.Line
	}
	r.faults = append(r.faults, f)
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// object reads the fields that are known and refuses others, also one that stands there twice.
func (r *reader) object(n *yaml.Node, at string, known fields) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		r.fault(n, at, "must be an object with fields")
		return
	}
	seen := map[string]bool{}
	for _, p := range pairs(n) {
		path := p.key.Value
		if at != "" {
			path = at + "." + path
		}
		read := known[p.key.Value]
		switch {
		case seen[p.key.Value] && p.merged:
			// What stands in the object itself counts.
		case read == nil:
			r.fault(p.key, path, "unknown field")
		case seen[p.key.Value]:
			r.fault(p.key, path, "stands there twice")
		default:
			seen[p.key.Value] = true
			r.lines[path] = p.key.Line
			read(resolve(p.value), path)
		}
	}
}

// pair is a field and its value; merged says that it comes from another object by the merge key <<.
type pair struct {
	key, value *yaml.Node
	merged     bool
}

// pairs of an object, those that are merged into it last.
func pairs(n *yaml.Node) []pair {
	var own, merged []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		if key.Tag != "!!merge" || value.Kind != yaml.MappingNode {
			own = append(own, pair{key, value, false})
			continue
		}
		for _, p := range pairs(value) {
			merged = append(merged, pair{p.key, p.value, true})
		}
	}
	return append(own, merged...)
}

func (r *reader) list(n *yaml.Node, at string, each field) {
	if n.Kind != yaml.SequenceNode {
		r.fault(n, at, "must be a list")
		return
	}
	for i, item := range n.Content {
		path := fmt.Sprintf("%s[%d]", at, i)
		r.lines[path] = item.Line
		each(resolve(item), path)
	}
}

// scalar is the text of a value that is not empty.
func (r *reader) scalar(n *yaml.Node, at, must string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.fault(n, at, "must be %s", must)
		return "", false
	}
	return n.Value, true
}

func (r *reader) text(to *string) field {
	return func(n *yaml.Node, at string) { *to, _ = r.scalar(n, at, "text") }
}

func (r *reader) number(to *float64) field {
	return func(n *yaml.Node, at string) {
		text, ok := r.scalar(n, at, "a number")
		if !ok {
			return
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			r.fault(n, at, "%q is no number", text)
			return
		}
		*to = x
	}
}

func (r *reader) whole(to *int) field {
	return func(n *yaml.Node, at string) {
		text, ok := r.scalar(n, at, "a whole number")
		if !ok {
			return
		}
		x, err := strconv.ParseInt(text, 10, 32)
		if err != nil || x < 0 && !strings.HasSuffix(at, ".priority") {
			reason := "is no whole number"
			if errors.Is(err, strconv.ErrRange) {
				reason = "is out of range"
			}
			r.fault(n, at, "%q %s", text, reason)
			return
		}
		*to = int(x)
	}
}

func (r *reader) truth(to *bool) field {
	return func(n *yaml.Node, at string) {
		text, ok := r.scalar(n, at, "true or false")
		if ok && text != "true" && text != "false" {
			r.fault(n, at, "%q is neither true nor false", text)
		}
		*to = text == "true"
	}
}

func (r *reader) texts(to *[]string) field {
	return func(n *yaml.Node, at string) {
		r.list(n, at, func(n *yaml.Node, at string) {
			var s string
			r.text(&s)(n, at)
			*to = append(*to, s)
		})
	}
}

func (r *reader) wholes(to *[]int) field {
	return func(n *yaml.Node, at string) {
		r.list(n, at, func(n *yaml.Node, at string) {
			var x int
			r.whole(&x)(n, at)
			*to = append(*to, x)
		})
	}
}
