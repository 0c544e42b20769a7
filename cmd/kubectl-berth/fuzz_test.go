package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/pkg/render"
)

// FuzzCommands: whatever stands beside a pool, every command ends with one of its exit codes, prints JSON of its kind, and
// says the same twice.
func FuzzCommands(f *testing.F) {
	const kep = "../../test/testdata/kep4815-multihost.yaml"
	inputs, err := filepath.Glob("testdata/in/*")
	if err != nil || len(inputs) == 0 {
		f.Fatal("no inputs", err)
	}
	for _, name := range inputs {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, args := range [][]string{{"fit"}, {"fit", "--order=line"}, {"capacity"}, {"map", "--placed"}} {
			args = append(args, "-f", kep, "-f", "-", "-f", "testdata/in/templates.yaml", "-o", "json")
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
			if args[0] != "fit" {
				continue
			}
			all := true
			for _, w := range r.Workloads {
				all = all && w.Fits
			}
			if code != exitBadInput && (code == exitOK) != all {
				t.Errorf("%v: exit %d, all fit is %v", args, code, all)
			}
		}
	})
}
