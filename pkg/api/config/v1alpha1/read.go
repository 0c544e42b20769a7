package v1alpha1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reader moves YAML into the configuration's plain structs and goes on after a fault. The common decoders stop at the
// first value of a wrong type and do not say where a duration was malformed.
type reader struct {
	file   string
	faults []error
}

func (r *reader) read(node *yaml.Node, into *BerthConfiguration) {
	r.value(node, reflect.ValueOf(into).Elem(), "")
}

func (r *reader) fault(node *yaml.Node, path, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = path + ": " + message
	}
	r.faults = append(r.faults, Fault{File: r.file, Line: node.Line, Message: message})
}

func (r *reader) value(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Tag == "!!null" {
		return // a key without a value keeps the default
	}
	if _, ok := into.Interface().(metav1.Duration); ok {
		d, err := time.ParseDuration(node.Value)
		if node.Kind != yaml.ScalarNode || err != nil {
			r.fault(node, path, "must be a duration such as 1m30s, not %s", shown(node))
			return
		}
		into.Set(reflect.ValueOf(metav1.Duration{Duration: d}))
		return
	}
	if into.Kind() == reflect.Struct {
		r.fields(node, into, path)
		return
	}
	scalar := scalars[into.Kind()]
	if node.Kind != yaml.ScalarNode || !slices.Contains(scalar.tags, node.Tag) || node.Decode(into.Addr().Interface()) != nil {
		r.fault(node, path, "must be %s, not %s", scalar.name, shown(node))
	}
}

// scalars are what may stand for a plain value. The decoder alone would cut 1.5 down to a whole number and take yes for
// true. People write bindAddress: 0 and level: 3, so a number may stand for a string.
var scalars = map[reflect.Kind]struct {
	name string
	tags []string
}{
	reflect.String:  {"a string", []string{"!!str", "!!int"}},
	reflect.Bool:    {"true or false", []string{"!!bool"}},
	reflect.Int32:   {"a whole number", []string{"!!int"}},
	reflect.Float32: {"a number", []string{"!!int", "!!float"}},
}

func (r *reader) fields(node *yaml.Node, into reflect.Value, path string) {
	if node.Kind != yaml.MappingNode {
		r.fault(node, path, "must hold fields, not %s", shown(node))
		return
	}
	known := fieldsOf(into)
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		target, ok := known[key.Value]
		switch line, twice := seen[key.Value]; {
		case !ok:
			r.fault(key, at, "unknown field")
		case twice:
			r.fault(key, at, "was already set in line %d", line)
		default:
			seen[key.Value] = key.Line
			r.value(value, target, at)
		}
	}
}

// fieldsOf maps the names in a file to the fields of a struct; those of an inlined struct count as its own.
func fieldsOf(s reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for i := range s.NumField() {
		name, options, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
		if options == "inline" {
			for name, inlined := range fieldsOf(s.Field(i)) {
				fields[name] = inlined
			}
			continue
		}
		fields[name] = s.Field(i)
	}
	return fields
}

func shown(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "fields"
	case yaml.SequenceNode:
		return "a list"
	default:
		return fmt.Sprintf("%q", node.Value)
	}
}
