package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// input is one file of a corpus and the lines that it runs.
type input struct {
	name string
	size int
	runs map[string]bool
}

// keep leaves in the package's testdata/fuzz the inputs that the chosen few are, of those there and those found.
func (t target) keep() (kept, size int, err error) {
	dir := filepath.Join(t.dir, "testdata", "fuzz", t.name)
	found, err := t.found()
	if err != nil {
		return 0, 0, err
	}
	if err := gather(found, dir); err != nil {
		return 0, 0, err
	}
	inputs, err := t.measure(dir)
	if err != nil {
		return 0, 0, err
	}
	chosen := choose(inputs)
	for _, in := range inputs {
		if in.name == "" {
			continue
		}
		if chosen[in.name] {
			kept, size = kept+1, size+in.size
			continue
		}
		if err := os.Remove(filepath.Join(dir, in.name)); err != nil {
			return 0, 0, err
		}
	}
	return kept, size, nil
}

// gather copies what is found beside what is kept.
func gather(from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(to, 0o755)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// measure runs every input by itself. The first result is that of the seeds, without a name.
func (t target) measure(dir string) ([]input, error) {
	work, err := os.MkdirTemp("", "berth-fuzz-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	binary, profile := filepath.Join(work, "test"), filepath.Join(work, "profile")
	var said bytes.Buffer
	if err := command(&said, "go", "test", "-c", "-cover", "-coverpkg=./pkg/...,./"+t.dir, "-o", binary, "./"+t.dir); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said.String())
	}
	if err := t.dropUnreadable(binary, dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	inputs := []input{{}}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, input{name: e.Name(), size: int(info.Size())})
	}
	for i := range inputs {
		which := "seed#"
		if inputs[i].name != "" {
			which = inputs[i].name + "$"
		}
		said.Reset()
		// env -C: the test finds its files from its own folder.
		err := command(&said, "env", "-C", t.dir, binary, "-test.run=^"+t.name+"$/^"+which, "-test.coverprofile="+profile)
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, said.String())
		}
		if inputs[i].runs, err = read(profile); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

// unreadable is what Go says of an input that is not of the target's types, as those found before the target changed.
var unreadable = regexp.MustCompile(`"[^"]*/([^/"]+)": `)

// dropUnreadable removes inputs that the target cannot read any more.
func (t target) dropUnreadable(binary, dir string) error {
	var said bytes.Buffer
	if command(&said, "env", "-C", t.dir, binary, "-test.run=^"+t.name+"$/^$") == nil {
		return nil
	}
	for _, m := range unreadable.FindAllSubmatch(said.Bytes(), -1) {
		if err := os.Remove(filepath.Join(dir, string(m[1]))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// read lists the blocks of a coverage profile that were run.
func read(profile string) (map[string]bool, error) {
	content, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	runs := map[string]bool{}
	for _, line := range strings.Split(string(content), "\n") {
		block, count, _ := strings.Cut(line, " ")
		if _, times, _ := strings.Cut(count, " "); times != "" && times != "0" {
			runs[block] = true
		}
	}
	return runs, nil
}

// choose takes again and again the input that adds most to what runs already, of equal ones the smallest, until none adds
// anything. The first input, that of the seeds, is taken for nothing.
func choose(inputs []input) map[string]bool {
	runs := map[string]bool{}
	for block := range inputs[0].runs {
		runs[block] = true
	}
	left := slices.SortedFunc(slices.Values(inputs[1:]), func(a, b input) int { return cmp.Or(cmp.Compare(a.size, b.size), strings.Compare(a.name, b.name)) })
	chosen := map[string]bool{}
	for {
		best, adds := -1, 0
		for i, in := range left {
			n := 0
			for block := range in.runs {
				if !runs[block] {
					n++
				}
			}
			if n > adds {
				best, adds = i, n
			}
		}
		if best < 0 {
			return chosen
		}
		chosen[left[best].name] = true
		for block := range left[best].runs {
			runs[block] = true
		}
	}
}
