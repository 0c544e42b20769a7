package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func lines(names ...string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

// TestChoose keeps what adds something, the smaller of two that add the same.
func TestChoose(t *testing.T) {
	chosen := choose([]input{
		{runs: lines("seed")},
		{name: "nothing-new", size: 1, runs: lines("seed")},
		{name: "large", size: 9, runs: lines("a", "b")},
		{name: "small", size: 2, runs: lines("a", "b", "seed")},
		{name: "covered", size: 1, runs: lines("a")},
		{name: "rare", size: 50, runs: lines("b", "c")},
	})
	if diff := cmp.Diff([]string{"rare", "small"}, slices.Sorted(maps.Keys(chosen))); diff != "" {
		t.Error(diff)
	}
}

// TestFind finds this repository's targets, and none below hidden folders.
func TestFind(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"a/a_test.go":  "package a\n\nfunc FuzzOne(f *testing.F) {\n}\n\nfunc TestNo(t *testing.T) {}\n\nfunc FuzzTwo(f *testing.F) {}\n",
		"a/a.go":       "package a\n\nfunc FuzzNo(f *testing.F) {}\n",
		".b/b_test.go": "package b\n\nfunc FuzzNo(f *testing.F) {}\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := find(root, regexp.MustCompile("."))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.ToSlash(filepath.Join(root, "a"))
	if diff := cmp.Diff([]target{{dir, "FuzzOne"}, {dir, "FuzzTwo"}}, found, cmp.AllowUnexported(target{})); diff != "" {
		t.Error(diff)
	}
}

// TestRead takes the blocks that were run.
func TestRead(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(profile, []byte("mode: set\na.go:1.2,3.4 2 1\na.go:5.6,7.8 1 0\nb.go:1.1,2.2 1 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runs, err := read(profile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines("a.go:1.2,3.4", "b.go:1.1,2.2"), runs); diff != "" {
		t.Error(diff)
	}
}
