package render

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryFieldIsDocumented holds the reports against the tables of docs/cli.md, both ways, names and types.
func TestEveryFieldIsDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, s := range strings.Split(string(raw), "\n## ")[1:] {
		title, text, _ := strings.Cut(s, "\n")
		sections[title] = text
	}
	for _, report := range []any{FitReport{}, CapacityReport{}, MapReport{}} {
		kind := reflect.TypeOf(report)
		var documented, declared []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(sections[kind.Name()], -1) {
			documented = append(documented, m[1]+" "+strings.TrimSpace(m[2]))
		}
		paths(kind, "", &declared)
		for _, path := range declared {
			if !slices.Contains(documented, path) {
				t.Errorf("docs/cli.md, %s lacks %q", kind.Name(), path)
			}
		}
		for _, path := range documented {
			if !slices.Contains(declared, path) {
				t.Errorf("docs/cli.md, %s has %q, which does not exist", kind.Name(), path)
			}
		}
	}
}

// paths lists the leaves of a type with their JSON types. No field may be left out of the JSON when it is empty, except
// where the type of another package says so.
func paths(t reflect.Type, at string, out *[]string) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if at != "" {
				name = at + "." + name
			}
			paths(t.Field(i).Type, name, out)
		}
	case reflect.Slice:
		paths(t.Elem(), at+"[]", out)
	case reflect.Map:
		paths(t.Elem(), at+".*", out)
	case reflect.String:
		*out = append(*out, at+" string")
	case reflect.Bool:
		*out = append(*out, at+" boolean")
	case reflect.Float64:
		*out = append(*out, at+" number")
	default:
		*out = append(*out, at+" integer")
	}
}

// TestEmptyReports have lists that are empty, not null.
func TestEmptyReports(t *testing.T) {
	for _, r := range []any{NewFitReport(nil, nil, nil), NewCapacityReport(nil, nil), NewMapReport(nil, nil, nil, nil), NewWorkload("Job", "ns", "n")} {
		v := reflect.ValueOf(r)
		for i := range v.NumField() {
			if f := v.Field(i); (f.Kind() == reflect.Slice || f.Kind() == reflect.Map) && f.IsNil() {
				t.Errorf("%T.%s is nil", r, v.Type().Field(i).Name)
			}
		}
	}
}
