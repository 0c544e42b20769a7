package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the commands print into testdata/stories")

// TestStories runs the scripts in testdata/stories. A line that begins with "$ " is a command; up to the next one stands
// what it prints, stderr first, and its exit code. Lines that begin with "# " above a command are comments. KEP stands for
// the pool of KEP-4815; everything else is relative to testdata.
func TestStories(t *testing.T) {
	stories, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil || len(stories) == 0 {
		t.Fatal("no stories", err)
	}
	for i := range stories {
		stories[i] = absolute(t, stories[i])
	}
	kep := absolute(t, "../../test/testdata/kep4815-multihost.yaml")
	t.Chdir("testdata")
	for _, file := range stories {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var told strings.Builder
			for _, line := range strings.SplitAfter(string(content), "\n") {
				if strings.HasPrefix(line, "# ") {
					told.WriteString(line)
				}
				if args, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok {
					told.WriteString("$ " + args + "\n" + tell(args, kep) + "\n")
				}
			}
			golden(t, file, string(content), told.String())
		})
	}
}

// TestExamples plays the examples of docs/cli.md, which are told like stories; KEP stands for the pool there, too.
func TestExamples(t *testing.T) {
	doc, kep := absolute(t, "../../docs/cli.md"), absolute(t, "../../test/testdata/kep4815-multihost.yaml")
	content, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("testdata")
	before, rest, found := strings.Cut(string(content), "```console\n")
	block, behind, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("docs/cli.md has no examples")
	}
	var told strings.Builder
	for _, line := range strings.Split(block, "\n") {
		if args, ok := strings.CutPrefix(line, "$ kubectl berth "); ok {
			if told.Len() > 0 {
				told.WriteString("\n")
			}
			text := tell(args, kep)
			told.WriteString(line + "\n" + text[:strings.LastIndex(text, "exit ")])
		}
	}
	golden(t, doc, string(content), before+"```console\n"+told.String()+"```\n"+behind)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// tell runs one command. "< file" at the end is its standard input.
func tell(line, kep string) string {
	var stdin bytes.Buffer
	if command, file, redirected := strings.Cut(line, " < "); redirected {
		content, err := os.ReadFile(file)
		if err != nil {
			return err.Error()
		}
		line = command
		stdin.Write(content)
	}
	args := strings.Fields(strings.ReplaceAll(line, "KEP", kep))
	var stdout, stderr bytes.Buffer
	code := run(args, &stdin, &stdout, &stderr)
	text := strings.ReplaceAll(stderr.String()+stdout.String(), kep, "KEP")
	return fmt.Sprintf("%sexit %d\n", text, code)
}

// golden compares what was told with the file that says what should be told, or writes it there.
func golden(t *testing.T, file, want, told string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(told), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if told != want {
		t.Errorf("%s differs; run with -update and look at the change:\n%s", filepath.Base(file), difference(want, told))
	}
}

// difference is the first line that differs, with what stands around it.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		at := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(end)"
		}
		if at(w) != at(g) {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, at(w), at(g))
		}
	}
	return ""
}
