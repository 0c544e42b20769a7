package scenario

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// FuzzScenarios: whatever a file of scenarios holds, each of them has a name of its own, or the faults are told.
func FuzzScenarios(f *testing.F) {
	content, err := os.ReadFile("../../../../docs/simulation/scenarios.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	for _, seed := range []string{
		"", "a: [", "scenarios:\n- name: a\n  hardware: {family: kep, pools: 4, extent: [1, 2, 3]}\n  load: 0.8\n  kinds: [{class: c, share: 1, duration: {kind: pareto, mean: 2h, alpha: 1.5}}]\n",
		"x: &x {load: 1}\nscenarios: [{<<: *x, name: a}, {<<: *x, name: a}]", "scenarios: &s [*s]", "scenarios: [&a {<<: *a, name: b}]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		all, err := Read("scenarios.yaml", content)
		if err != nil {
			var faults Faults
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("no fault in %v", err)
			}
			return
		}
		names := map[string]bool{}
		for _, s := range all {
			if s.Name == "" || names[s.Name] {
				t.Errorf("scenario %q", s.Name)
			}
			names[s.Name] = true
		}
	})
}

// TestAliases: what stands in itself, and what is small and means a great deal, is told and not followed.
func TestAliases(t *testing.T) {
	bomb := "a0: &a0 {x: 1, y: 1}\n"
	for i := range 20 {
		bomb += fmt.Sprintf("a%d: &a%d {x: *a%d, y: *a%d}\n", i+1, i+1, i, i)
	}
	for text, want := range map[string]string{
		"scenarios: [&a {<<: *a, name: b}]":    `f:1: what "a" stands for contains itself`,
		"x: 1\nscenarios: &s\n- kinds: [*s]\n": `f:2: what "s" stands for contains itself`,
		bomb:                                   "f: its aliases make it too large",
	} {
		if _, err := Read("f", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.40q: got %v, want %s", text, err, want)
		}
	}
}
