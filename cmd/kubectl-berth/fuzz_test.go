package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/render"
)

// FuzzCommands: whatever stands beside a pool, every command ends with one of its exit codes, prints JSON of its kind, and
// says the same twice. Which command it is the input decides, too.
func FuzzCommands(f *testing.F) {
	inputs, err := filepath.Glob("testdata/in/*")
	if err != nil || len(inputs) == 0 {
		f.Fatal("no inputs", err)
	}
	for _, name := range inputs {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for command := range commands {
			f.Add(uint8(command), content)
		}
	}
	pool := poolAsJSON(f)
	f.Fuzz(func(t *testing.T, command uint8, content []byte) {
		args := append(strings.Fields(commands[int(command)%len(commands)]), "-f", pool, "-f", "-", "-o", "json")
		var first, second, stderr bytes.Buffer
		code := run(args, bytes.NewReader(content), &first, &stderr)
		if again := run(args, bytes.NewReader(content), &second, &stderr); again != code || first.String() != second.String() {
			t.Fatalf("%v: exit %d then %d", args, code, again)
		}
		var r render.FitReport
		if err := json.Unmarshal(first.Bytes(), &r); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		if (code == exitBadInput) != (len(r.Errors) > 0) {
			t.Errorf("%v: exit %d with errors %q", args, code, r.Errors)
		}
		all := true
		for _, w := range r.Workloads {
			all = all && w.Fits
		}
		if r.Kind == "FitReport" && code != exitBadInput && (code == exitOK) != all {
			t.Errorf("%v: exit %d, all fit is %v", args, code, all)
		}
	})
}

var commands = []string{"fit", "fit --order=line", "capacity", "map --placed", "why --workload first"}

// poolAsJSON writes the pool and the templates as JSON, which is read many times faster than YAML.
func poolAsJSON(f *testing.F) string {
	var items []any
	for _, name := range []string{"../../test/testdata/kep4815-multihost.yaml", "testdata/in/templates.yaml"} {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, text := range strings.Split(string(content), "\n---\n") {
			var o any
			if err := yaml.Unmarshal([]byte(text), &o); err != nil {
				f.Fatal(err)
			}
			items = append(items, o)
		}
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "pool.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		f.Fatal(err)
	}
	return path
}
