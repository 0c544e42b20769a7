package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// schema is what docs/cli.md promises of one kind of report: the JSON type of every leaf by its path. A path is written as
// in the document: a.b, list[].a, map.*.
type schema map[string]string

// schemas reads the tables of docs/cli.md, by kind.
func schemas(t *testing.T) map[string]schema {
	raw, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]schema{}
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([a-z]+) \\|")
	for _, section := range strings.Split(string(raw), "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		if !strings.HasSuffix(title, "Report") {
			continue
		}
		all[title] = schema{}
		for _, m := range row.FindAllStringSubmatch(text, -1) {
			all[title][m[1]] = m[2]
		}
	}
	return all
}

// optional are the fields that may be left out.
var optional = map[string]bool{"workloads[].evidence[].detail": true}

// hold compares a value with the schema at a path, and notes the leaves that were there.
func (s schema) hold(t *testing.T, value any, at string, seen map[string]bool) {
	if want, leaf := s[at]; leaf {
		seen[at] = true
		got := map[string]bool{}
		switch v := value.(type) {
		case string:
			got["string"] = true
		case bool:
			got["boolean"] = true
		case json.Number:
			_, err := v.Int64()
			got["number"], got["integer"] = true, err == nil
		}
		if !got[want] {
			t.Errorf("%s is %v, promised is: %s", at, value, want)
		}
		return
	}
	switch v := value.(type) {
	case map[string]any:
		children := s.below(at)
		for key, inner := range v {
			name := key
			if children["*"] {
				name = "*"
			} else if !children[key] {
				t.Errorf("%s.%s is not promised", at, key)
				continue
			}
			s.hold(t, inner, strings.TrimPrefix(at+"."+name, "."), seen)
		}
		for key := range children {
			path := strings.TrimPrefix(at+"."+key, ".")
			if _, there := v[key]; !there && key != "*" && !optional[path] {
				t.Errorf("%s is missing", path)
			}
		}
	case []any:
		for _, item := range v {
			s.hold(t, item, at+"[]", seen)
		}
	default:
		t.Errorf("%s is %v, which is not promised", at, value)
	}
}

// below are the names that may stand below a path.
func (s schema) below(at string) map[string]bool {
	out := map[string]bool{}
	for path := range s {
		rest, inside := path, true
		if at != "" {
			rest, inside = strings.CutPrefix(path, at+".")
		}
		if inside {
			name, _, _ := strings.Cut(rest, ".")
			out[strings.TrimSuffix(strings.TrimSuffix(name, "[]"), "[]")] = true
		}
	}
	return out
}

// TestContract holds what the commands print as JSON and YAML against docs/cli.md: every promised field is there with its
// type, and no other. The inputs are those of the stories; together they fill every field.
func TestContract(t *testing.T) {
	const kep = "../../test/testdata/kep4815-multihost.yaml"
	all := schemas(t)
	seen := map[string]map[string]bool{}
	for _, args := range []string{
		"fit -f KEP -f testdata/in/templates.yaml -f testdata/in/states.yaml",
		"fit -f KEP -f testdata/in/templates.yaml -f testdata/in/reserved.yaml --order=line",
		"fit -f testdata/in/shares.yaml",
		"fit -f KEP -f testdata/in/templates.yaml -f testdata/in/foreign.yaml -f testdata/in/two.yaml",
		"fit -f testdata/in/two.yaml",
		"fit -f testdata/in/racks.yaml",
		"fit -f testdata/in/bad.yaml",
		"fit -f -",
		"why -f KEP -f testdata/in/templates.yaml -f testdata/in/states.yaml --workload whole",
		"why -f KEP --workload nobody",
		"capacity -f KEP -f testdata/in/incomplete.yaml -f testdata/in/folds.yaml",
		"capacity -f testdata/in/bad.yaml",
		"capacity -f -",
		"map -f KEP -f testdata/in/templates.yaml -f testdata/in/states.yaml --placed",
		"map -f KEP -f testdata/in/incomplete.yaml -f testdata/in/foreign.yaml",
		"map -f testdata/in/bad.yaml",
		"map -f -",
	} {
		for _, format := range []string{"json", "yaml"} {
			t.Run(args+" -o "+format, func(t *testing.T) {
				var stdout, stderr bytes.Buffer
				run(append(strings.Fields(strings.ReplaceAll(args, "KEP", kep)), "-o", format), strings.NewReader(""), &stdout, &stderr)
				raw := stdout.Bytes()
				if format == "yaml" {
					var err error
					if raw, err = yaml.YAMLToJSON(raw); err != nil {
						t.Fatal(err)
					}
				}
				d := json.NewDecoder(bytes.NewReader(raw))
				d.UseNumber()
				var report map[string]any
				if err := d.Decode(&report); err != nil {
					t.Fatalf("%v in %s", err, raw)
				}
				kind := fmt.Sprint(report["kind"])
				if all[kind] == nil || report["apiVersion"] != "cli.berth.dev/v1" {
					t.Fatalf("%v %s is no report", report["apiVersion"], kind)
				}
				if seen[kind] == nil {
					seen[kind] = map[string]bool{}
				}
				all[kind].hold(t, report, "", seen[kind])
			})
		}
	}
	for kind, s := range all {
		for path := range s {
			if !seen[kind][path] {
				t.Errorf("no input of this test shows %s of %s", path, kind)
			}
		}
	}
}
