package reservation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/reason"
)

var worlds = flag.Int("worlds", 1500, "how many random worlds TestRandomWorlds goes through")

// controller is one of Berth's controllers at work on a plan. Between two of its writes everything else may happen.
type controller struct {
	plan   func() []write
	writes []write
}

// step does one write, or makes a plan when there is none to go on with. It returns false when there is nothing to do.
// With accident the controller dies after the write, or before it.
func (c *controller) step(accident func() bool) bool {
	if len(c.writes) == 0 {
		c.writes = c.plan()
		return len(c.writes) > 0
	}
	if accident() {
		c.writes = nil
		return true
	}
	err := c.writes[0]()
	c.writes = c.writes[1:]
	if err != nil || accident() {
		c.writes = nil
	}
	return true
}

// trial is one random world.
type trial struct {
	*world
	rng     *rand.Rand
	main    controller
	seating controller
	story   []string
}

func newTrial(seed uint64) *trial {
	rng := rand.New(rand.NewPCG(seed, 11))
	kinds := []func(int) [][]string{shared, single, double}
	t := &trial{rng: rng, world: newWorld(kinds[rng.IntN(3)](1 + rng.IntN(4)))}
	t.main.plan = func() []write {
		s := t.gather()
		if s == nil {
			return nil
		}
		plan := Next(s.View)
		var all []write
		for _, step := range plan.Steps {
			all = append(all, t.writes(s, step)...)
		}
		if len(all) > 0 {
			t.note("berth: %s", plan)
		}
		return all
	}
	t.seating.plan = func() []write {
		v, s := t.seatingView(t.rng.IntN(20) == 0, "")
		if v == nil {
			return nil
		}
		plan := Seat(*v)
		if plan.GiveUp == nil && !plan.Begin && len(plan.Enter) == 0 && len(plan.Ungate) == 0 {
			return nil
		}
		t.note("seating: %s", plan)
		return t.seatingWrites(s, plan)
	}
	return t
}

func (t *trial) note(format string, args ...any) {
	t.story = append(t.story, fmt.Sprintf(format, args...))
}

// deed is something that somebody does.
type deed struct {
	name string
	do   func() bool
}

// everyday is what others do when all is well. Done for long enough it brings the gang to its end.
func (t *trial) everyday() []deed {
	return []deed{
		{"kueue admits", t.kueueAdmits}, {"kueue obeys a Retry", t.kueueObeys}, {"kueue stops the Workload", t.kueueStops},
		{"kueue finishes the Workload", t.kueueFinishes}, {"the Job creates a pod", t.jobCreates}, {"the Job creates a pod", t.jobCreates},
		{"the Job deletes a pod", t.jobDeletes}, {"a pod starts", t.kubeletStarts}, {"a pod starts", t.kubeletStarts},
		{"a pod is removed", t.kubeletRemoves}, {"an entry is removed", t.kcmCleans}, {"a pod ends", func() bool { return t.kubeletEnds(false) }},
	}
}

// faults are what goes wrong.
func (t *trial) faults() []deed {
	anyPod := func(do func(*podObject)) func() bool {
		return func() bool {
			if len(t.pods) == 0 {
				return false
			}
			do(t.pods[t.rng.IntN(len(t.pods))])
			return true
		}
	}
	anyHost := func(do func(*hostObject)) func() bool {
		return func() bool { do(t.hosts[t.rng.IntN(len(t.hosts))]); return true }
	}
	return []deed{
		{"kueue evicts", t.kueueEvicts}, {"kueue unsets quota", t.kueueUnsets}, {"kueue reserves quota again", t.kueueReservesAgain},
		{"the check is taken off or put on", t.kueueUnasks},
		{"a user deletes the Workload", t.userDeletesWorkload}, {"a user deactivates the Workload", t.userDeactivates},
		{"a user deletes the reservation", func() bool {
			if t.res == nil {
				return false
			}
			t.res.deleting, t.res.version = true, t.next()
			return true
		}},
		{"a user deletes a claim", func() bool {
			c := t.claims[t.promised[t.rng.IntN(len(t.promised))]]
			if c == nil {
				return false
			}
			c.deleting, c.version = true, t.next()
			return true
		}},
		{"a pod fails", func() bool { return t.kubeletEnds(true) }},
		{"binding a pod fails", anyPod(t.schedulerUnreserves)},
		{"a user deletes a pod", anyPod(func(p *podObject) { p.deleting = true })},
		{"a pod is removed by force", anyPod(func(p *podObject) {
			// On a host that answers, its kubelet stops it at once.
			p.exists, p.runs = false, p.runs && !t.host(p.host).ready
		})},
		{"the garbage collector removes a pod by force", t.garbageCollectorForces},
		{"a host is cut off and its pod removed by force", func() bool {
			return t.firstPod(func(p *podObject) bool { return p.exists && p.runs }, func(p *podObject) {
				t.hostFails(t.host(p.host))
				p.exists = false
			})
		}},
		{"a stranger comes", func() bool { t.addPod(0).stranger = true; return true }},
		{"a host fails", anyHost(t.hostFails)}, {"a host returns", anyHost(t.hostReturns)},
		{"a host is deleted", anyHost(func(h *hostObject) { t.hostIsLost(h, true) })},
		{"a host is declared out of service", anyHost(func(h *hostObject) { t.hostIsLost(h, false) })},
		{"a device is tainted", func() bool {
			t.lost = &reason.Refusal{Code: reason.DeviceTainted, Message: "tainted"}
			return true
		}},
		{"the API server refuses claims", func() bool { t.refuses = !t.refuses; return true }},
	}
}

func (t *trial) do(d deed) {
	if d.do() {
		t.note("%s", d.name)
	}
}

// run lets the whole gang come to run.
func (t *trial) run() {
	never := func() bool { return false }
	starting := slices.DeleteFunc(t.everyday(), func(d deed) bool { return d.name == "a pod ends" })
	for range 60 {
		t.main.step(never)
		t.seating.step(never)
		for _, d := range starting {
			t.do(d)
		}
		t.check()
	}
	t.note("the gang runs")
}

// live goes through a random number of things, most of them Berth's own.
func (t *trial) live() {
	if t.rng.IntN(2) == 0 {
		t.run()
	}
	everyday, faults := t.everyday(), t.faults()
	accident := func() bool { return t.rng.IntN(12) == 0 }
	for range 20 + t.rng.IntN(150) {
		switch n := t.rng.IntN(20); {
		case n < 7:
			t.main.step(accident)
		case n < 10:
			t.seating.step(accident)
		case n < 19:
			t.do(everyday[t.rng.IntN(len(everyday))])
		default:
			t.do(faults[t.rng.IntN(len(faults))])
		}
		if t.check(); len(t.breaches) > 0 {
			return
		}
	}
}

// settle lets everybody do what is left to do, without further faults. It returns false when that does not come to an end.
func (t *trial) settle() bool {
	t.note("the world settles")
	t.refuses = false
	for _, h := range t.hosts {
		if !h.gone {
			t.hostReturns(h)
		}
	}
	never := func() bool { return false }
	for range 2000 {
		busy := t.main.step(never)
		busy = t.seating.step(never) || busy
		for _, d := range t.everyday() {
			if d.do() {
				t.note("%s", d.name)
				busy = true
			}
		}
		if t.check(); len(t.breaches) > 0 {
			return true
		}
		if !busy {
			if t.over() {
				return true
			}
			// Whoever waits for ever is ended by a user, and that must be enough.
			if !t.userDeletesWorkload() {
				return false
			}
			t.note("a user deletes the Workload")
		}
	}
	return false
}

// over reports whether nothing is left of the reservation.
func (t *trial) over() bool {
	for _, c := range t.claims {
		if !c.foreign {
			return false
		}
	}
	return t.res == nil
}

// fails goes through one world and says what was wrong, with the story that led there.
func (t *trial) fails() string {
	t.live()
	over := t.settle()
	if len(t.breaches) == 0 && over {
		return ""
	}
	return fmt.Sprintf("over %v, breaches %q\n%s", over, t.breaches, strings.Join(t.story, "\n"))
}

// In every world: a check is Ready only while every claim is held, nothing is cleared while a pod may run, a release goes
// on to its end, no two pods of one rank run at once, and when nothing happens any more nothing is left.
func TestRandomWorlds(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(*worlds) {
		w := newTrial(seed)
		if why := w.fails(); why != "" {
			t.Fatalf("seed %d: %s", seed, why)
		}
		for _, line := range w.story {
			key := line
			if rule, is := strings.CutPrefix(line, "berth: "); is {
				key, _, _ = strings.Cut(rule, ":")
			} else if strings.HasPrefix(line, "seating: ") {
				key = "seating"
			}
			counts[key]++
		}
	}
	for _, table := range [][]rule{serving, unasked, releasing} {
		for _, r := range table {
			if counts[r.name] < 5 && !slices.Contains(notInRandomWorlds, r.name) {
				t.Errorf("%d times came rule %s: too few to test it", counts[r.name], r.name)
			}
		}
	}
	t.Log(counts)
}

// notInRandomWorlds are rules that write nothing, rules about what the admission policies refuse to everybody, and one that
// takes several lost hosts at once; the tables and the scripts have those.
var notInRandomWorlds = []string{"await-pods", "await-hosts", "foreign-claim", "keep", "hold", "orphaned", "hosts-back"}

// Without faults a gang runs, ends and is gone, and nobody has to help.
func TestQuietWorlds(t *testing.T) {
	for seed := range uint64(100) {
		w := newTrial(seed)
		w.run()
		running := 0
		for _, p := range w.pods {
			if p.runs {
				running++
			}
		}
		w.settle()
		if running != len(w.uses) || !w.over() || len(w.breaches) > 0 || w.wl == nil || !w.wl.Finished {
			t.Fatalf("seed %d: %d of %d pods ran, over %v, breaches %q\n%s",
				seed, running, len(w.uses), w.over(), w.breaches, strings.Join(w.story, "\n"))
		}
	}
}

// notMissed are rules without which a random world is slower or ruder, but comes to no harm.
var notMissed = []string{"write-refused", "strangers", "orphaned", "foreign-claim", "keep", "hold", "record", "lost", "ready", "delete-pods", "hosts-back"}

// Random worlds are worth something: without any of these rules they go wrong.
func TestRandomWorldsMissEachRule(t *testing.T) {
	whole := map[*[]rule][]rule{&serving: serving, &unasked: unasked, &releasing: releasing}
	defer func() {
		for table, rules := range whole {
			*table = rules
		}
	}()
	for table, rules := range whole {
		for i, r := range rules {
			if slices.Contains(notMissed, r.name) {
				continue
			}
			*table = slices.Delete(slices.Clone(rules), i, i+1)
			found := false
			for seed := uint64(0); !found && seed < uint64(*worlds); seed++ {
				found = newTrial(seed).fails() != ""
			}
			if !found {
				t.Errorf("no world is worse without rule %s", r.name)
			}
			*table = rules
		}
	}
}
