package reservation

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/reason"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts below testdata say instead of comparing it")

// The files below testdata are stories. A line that begins with # or is empty is for people. A line that begins with > is
// something that happens; the lines that follow it are what Berth said to it. See commands for what can happen.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scripts, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			have, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := tell(t, string(have))
			if *rewrite {
				if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want != string(have) {
				t.Errorf("%s tells another story now. If it is the right one, run this test with -rewrite.\n%s", file, firstDifference(string(have), want))
			}
		})
	}
}

// tell plays a script and returns it with what is said now.
func tell(t *testing.T, script string) string {
	var out []string
	s := &stage{}
	for i, line := range strings.Split(strings.TrimRight(script, "\n"), "\n") {
		command, is := strings.CutPrefix(line, "> ")
		switch {
		case is:
			out = append(out, line)
			said, err := s.happens(strings.Fields(command))
			if err != nil {
				t.Fatalf("line %d: %s: %v", i+1, command, err)
			}
			out = append(out, said...)
			if words := strings.Fields(command); words[0] == "berth" {
				s.check() // What others break, Berth has mended by then.
			}
			if len(s.breaches) > 0 {
				t.Fatalf("line %d: %s: %q", i+1, command, s.breaches)
			}
		case line == "" || strings.HasPrefix(line, "#"):
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n") + "\n"
}

func firstDifference(have, want string) string {
	h, w := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(h), len(w)) {
		if h[i] != w[i] {
			return fmt.Sprintf("line %d is\n  %s\nand would be\n  %s", i+1, h[i], w[i])
		}
	}
	return fmt.Sprintf("it has %d lines and would have %d", len(h), len(w))
}

// stage is a world that scripts play on.
type stage struct {
	*world
	// plan is made by "berth plans" and carried out by "berth writes".
	plan *seen
	todo []write
}

// happens does one command and returns what Berth said.
func (s *stage) happens(words []string) ([]string, error) {
	if s.world == nil && words[0] != "gang" {
		return nil, fmt.Errorf("a script begins with a gang")
	}
	do, known := commands[words[0]]
	if !known {
		return nil, fmt.Errorf("unknown command")
	}
	return do(s, words[1:])
}

// commands are what can happen.
var commands = map[string]func(*stage, []string) ([]string, error){
	"gang":        (*stage).gang,        // shared|single|double n: a new world
	"berth":       (*stage).berth,       // all that follows now; "plans" makes a plan, "writes" carries it out, "writes n" some of it
	"seating":     (*stage).seat,        // one plan of seating, carried out; "late" or a blocker as the rest of the line
	"kueue":       (*stage).kueue,       // admits|evicts|obeys|stops|unsets|reserves|finishes
	"job":         (*stage).job,         // "creates n" pods; "deletes" all
	"pod":         (*stage).podIs,       // name ends|fails|deleted|forced|removed, or name comes as a stranger
	"pods":        (*stage).allPods,     // start|end|removed
	"host":        (*stage).hostIs,      // name fails|returns|deleted|out-of-service
	"kcm":         (*stage).cleans,      // removes entries of pods that are gone or have ended
	"claim":       (*stage).claimIs,     // name deleted|stripped|unheld|planted|unplanted|kept (by another's finalizer)
	"reservation": (*stage).recordIs,    // deleted|vanished|kept|unkept (by another's finalizer)
	"workload":    (*stage).workloadIs,  // deleted|gone|deactivated
	"device":      (*stage).deviceIs,    // tainted|well
	"apiserver":   (*stage).apiServerIs, // refuses|accepts
	"show":        (*stage).show,        // what is there
}

func (s *stage) gang(words []string) ([]string, error) {
	n, err := strconv.Atoi(words[1])
	if err != nil {
		return nil, err
	}
	s.world = newWorld(map[string]func(int) [][]string{"shared": shared, "single": single, "double": double}[words[0]](n))
	return nil, nil
}

func (s *stage) berth(words []string) ([]string, error) {
	switch {
	case len(words) == 0:
		return s.settles()
	case words[0] == "plans":
		s.plan = s.gather()
		plan := Next(s.plan.View)
		s.todo = nil
		for _, step := range plan.Steps {
			s.todo = append(s.todo, s.writes(s.plan, step)...)
		}
		return []string{plan.String()}, nil
	default:
		n := len(s.todo)
		if len(words) > 1 {
			n, _ = strconv.Atoi(words[1])
		}
		for _, w := range s.todo[:n] {
			if err := w(); err != nil {
				return []string{err.Error()}, nil
			}
		}
		s.todo = nil
		return []string{"done"}, nil
	}
}

// settles lets the controller plan and write until nothing is left to do.
func (s *stage) settles() ([]string, error) {
	var said []string
	for range 20 {
		v := s.gather()
		if v == nil {
			return append(said, "nothing is left"), nil
		}
		plan := Next(v.View)
		said = append(said, plan.String())
		if len(plan.Steps) == 0 {
			return said, nil
		}
		for _, step := range plan.Steps {
			for _, w := range s.writes(v, step) {
				if err := w(); err != nil {
					said = append(said, err.Error())
				}
			}
		}
	}
	return nil, fmt.Errorf("it does not come to an end: %q", said)
}

func (s *stage) seat(words []string) ([]string, error) {
	late := len(words) > 0 && words[0] == "late"
	if late {
		words = words[1:]
	}
	v, seen := s.seatingView(late, strings.Join(words, " "))
	if v == nil {
		return []string{"nobody is to be seated"}, nil
	}
	plan := Seat(*v)
	for _, w := range s.seatingWrites(seen, plan) {
		if err := w(); err != nil {
			return []string{plan.String(), err.Error()}, nil
		}
	}
	return []string{plan.String()}, nil
}

// done is the answer of commands that others do.
func done(did bool) ([]string, error) {
	if !did {
		return nil, fmt.Errorf("it cannot be done now")
	}
	return nil, nil
}

func (s *stage) kueue(words []string) ([]string, error) {
	return done(map[string]func() bool{
		"admits": s.kueueAdmits, "evicts": s.kueueEvicts, "obeys": s.kueueObeys, "stops": s.kueueStops,
		"unsets": s.kueueUnsets, "reserves": s.kueueReservesAgain, "finishes": s.kueueFinishes,
	}[words[0]]())
}

func (s *stage) job(words []string) ([]string, error) {
	if words[0] == "deletes" {
		for s.jobDeletes() {
		}
		return nil, nil
	}
	n, err := strconv.Atoi(words[1])
	for range n {
		if !s.jobCreates() {
			return nil, fmt.Errorf("it cannot be done now")
		}
	}
	return nil, err
}

func (s *stage) podIs(words []string) ([]string, error) {
	p := s.pod(words[0])
	switch words[1] {
	case "comes":
		stranger := s.addPod(0)
		stranger.name, stranger.stranger = words[0], true
	case "ends", "fails":
		p.runs, p.terminal, p.failed = false, true, words[1] == "fails"
	case "deleted":
		p.deleting = true
	case "forced":
		p.exists, p.runs = false, p.runs && !s.host(p.host).ready
	case "removed":
		p.exists, p.runs = false, false
	}
	return nil, nil
}

func (s *stage) allPods(words []string) ([]string, error) {
	do := map[string]func() bool{"start": s.kubeletStarts, "end": func() bool { return s.kubeletEnds(false) }, "removed": s.kubeletRemoves}[words[0]]
	for do() {
	}
	return nil, nil
}

func (s *stage) hostIs(words []string) ([]string, error) {
	h := s.host(words[0])
	switch words[1] {
	case "fails":
		s.hostFails(h)
	case "returns":
		s.hostReturns(h)
	default:
		s.hostIsLost(h, words[1] == "deleted")
	}
	return nil, nil
}

func (s *stage) cleans([]string) ([]string, error) {
	for s.kcmCleans() {
	}
	return nil, nil
}

func (s *stage) claimIs(words []string) ([]string, error) {
	c := s.claims[words[0]]
	switch words[1] {
	case "planted":
		c = &claimObject{foreign: true}
		s.claims[words[0]] = c
	case "unplanted":
		delete(s.claims, words[0])
	case "deleted":
		c.deleting = true
	case "stripped":
		c.finalizer = false
	case "unheld":
		c.held = false
	}
	c.version = s.next()
	return nil, nil
}

func (s *stage) recordIs(words []string) ([]string, error) {
	switch words[0] {
	case "deleted":
		s.res.deleting = true
	case "kept":
		s.res.kept = true
	case "unkept":
		s.res.kept = false
	}
	s.res.version = s.next()
	if words[0] == "vanished" || s.res.deleting && !s.res.finalizer && !s.res.kept {
		s.res = nil
	}
	return nil, nil
}

func (s *stage) workloadIs(words []string) ([]string, error) {
	switch words[0] {
	case "deactivated":
		return done(s.userDeactivates())
	case "gone":
		s.wl = nil
		return nil, nil
	default:
		return done(s.userDeletesWorkload())
	}
}

func (s *stage) deviceIs(words []string) ([]string, error) {
	s.lost = nil
	if words[0] == "tainted" {
		s.lost = &reason.Refusal{Code: reason.DeviceTainted, Message: "device d in pool p carries the taint t:NoExecute"}
	}
	return nil, nil
}

func (s *stage) apiServerIs(words []string) ([]string, error) {
	s.refuses = words[0] == "refuses"
	return nil, nil
}

func (s *stage) show([]string) ([]string, error) {
	var lines []string
	if s.wl != nil {
		lines = append(lines, fmt.Sprintf("workload: quota %v, admitted %v, evicted %v, check %s", s.wl.Quota, s.wl.Admitted, s.wl.Evicted, s.wl.Check))
	}
	if s.res != nil {
		line := "reservation: " + string(s.res.phase)
		if len(s.res.quarantine) > 0 {
			line += ", quarantine " + strings.Join(s.res.quarantine, ", ")
		}
		lines = append(lines, line)
	}
	for _, name := range s.promised {
		if c := s.claims[name]; c != nil {
			lines = append(lines, "claim "+name+": "+s.claimText(c))
		}
	}
	for _, p := range s.pods {
		if p.exists || p.runs {
			lines = append(lines, "pod "+p.name+": "+p.text())
		}
	}
	return lines, nil
}

func (s *stage) claimText(c *claimObject) string {
	var words []string
	for _, w := range []struct {
		is   bool
		word string
	}{{c.foreign, "not Berth's"}, {!c.foreign && !c.finalizer, "no finalizer"}, {c.deleting, "in deletion"}, {c.allocated, "allocated"}, {c.held, "held"}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	var names []string
	for _, uid := range c.entries {
		names = append(names, s.byUID(uid).name)
	}
	if len(names) > 0 {
		slices.Sort(names)
		words = append(words, "for "+strings.Join(names, " "))
	}
	return strings.Join(words, ", ")
}

func (p *podObject) text() string {
	var words []string
	for _, w := range []struct {
		is   bool
		word string
	}{
		{!p.exists, "unseen"}, {p.stranger, "a stranger"}, {p.exists && p.gated, "gated"}, {p.deleting, "terminating"},
		{p.terminal && !p.failed, "succeeded"}, {p.failed, "failed"}, {p.runs, "runs on " + p.host},
	} {
		if w.is {
			words = append(words, w.word)
		}
	}
	if len(words) == 0 {
		return "waits for the scheduler"
	}
	return strings.Join(words, ", ")
}
