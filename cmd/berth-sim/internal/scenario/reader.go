package scenario

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

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
