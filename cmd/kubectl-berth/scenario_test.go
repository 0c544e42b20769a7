package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestScenarios plays the scripts in testdata/scenarios, one for each scenario of docs/invariants.md that objects
// without a cluster can show. A script is comments and steps. A step is a command line, the lines that it needs, a line "----" and what it says:
//
//	nodes h0..h3 cpu=32
//	----
//	h0..h3: 4 nodes
//
// Commands change the objects that the API server would hold (see the functions of stage below), or are commands of
// kubectl-berth, which read all of these objects. After every step the invariants are checked: see stage.check.
// -update writes anew what the steps say.
func TestScenarios(t *testing.T) {
	scripts, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := newStage(t)
			var told strings.Builder
			for _, step := range stepsOf(string(content)) {
				told.WriteString(step.comment)
				if step.command == "" {
					continue
				}
				said := s.play(step.command, step.body)
				told.WriteString(step.command + "\n" + step.body + "----\n" + said + "\n")
				s.check(step.command)
			}
			golden(t, file, string(content), told.String())
		})
	}
}

// scriptStep is one step of a script; comment is what stands above it.
type scriptStep struct{ comment, command, body string }

// stepsOf cuts a script. What the steps said stands between "----" and an empty line.
func stepsOf(script string) []scriptStep {
	var steps []scriptStep
	var step scriptStep
	const (
		above = iota
		inside
		answer
	)
	at := above
	for _, line := range strings.SplitAfter(script, "\n") {
		text := strings.TrimRight(line, "\n")
		switch {
		case at == above && (strings.HasPrefix(text, "#") || text == ""):
			step.comment += line
		case at == above:
			step.command, at = text, inside
		case at == inside && text == "----":
			steps = append(steps, step)
			step, at = scriptStep{}, answer
		case at == inside:
			step.body += line
		case text == "":
			at = above
		}
	}
	return append(steps, step)
}

// play does what one step asks for.
func (s *stage) play(command, body string) string {
	words := strings.Fields(command)
	name, args := words[0], words[1:]
	if do, known := map[string]func([]string, string) string{
		"load": s.load, "apply": s.apply, "delete": s.remove, "nodes": s.nodes, "publish": s.publish, "classes": s.classes, "templates": s.templates,
		"job": s.job, "pod": s.pod, "claim": s.claim, "reserve": s.reserve,
	}[name]; known {
		s.changed = true
		return strings.TrimRight(do(args, body), "\n") + "\n"
	}
	var stdout, stderr bytes.Buffer
	code := run(append(words, "-f", "-"), bytes.NewReader(s.json()), &stdout, &stderr)
	text := strings.TrimRight(stderr.String()+stdout.String(), "\n")
	// An empty line would end the step.
	return fmt.Sprintf("%s\nexit %d\n", strings.ReplaceAll(text, "\n\n", "\n"), code)
}

// wordsOf tells the words key=value from the others; which are returned in order. One word may hold several names: h0..h3.
func wordsOf(args []string) (names []string, values map[string]string) {
	values = map[string]string{}
	for _, a := range args {
		if key, value, is := strings.Cut(a, "="); is {
			values[key] = value
		} else {
			names = append(names, expand(a)...)
		}
	}
	return names, values
}

var span = regexp.MustCompile(`^(.*?)(\d+)\.\.(?:.*?)(\d+)$`)

// expand writes h0..h3 out.
func expand(word string) []string {
	m := span.FindStringSubmatch(word)
	if m == nil {
		return []string{word}
	}
	var out []string
	for i := number(m[2]); i <= number(m[3]); i++ {
		out = append(out, fmt.Sprint(m[1], i))
	}
	return out
}

func number(text string) int {
	n := 0
	if _, err := fmt.Sscan(text, &n); err != nil {
		panic(fmt.Sprintf("%q is no number", text))
	}
	return n
}

// after are the words behind a keyword, up to the next one of the keywords.
func after(words []string, keyword string, keywords ...string) []string {
	i := slices.Index(words, keyword)
	if i < 0 {
		return nil
	}
	rest := words[i+1:]
	for j, w := range rest {
		if slices.Contains(keywords, w) {
			return rest[:j]
		}
	}
	return rest
}
