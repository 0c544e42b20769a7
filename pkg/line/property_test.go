package line_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// seeds is how many random worlds are played.
var seeds = flag.Uint64("seeds", 60, "random worlds")

// longest is how many minutes a gang runs at the most.
const longest = 40

// random hardware: of every family a small one.
func hardware(rng *rand.Rand) *worlds.Site {
	switch rng.IntN(7) {
	case 0:
		return worlds.KEP8x8("pod")
	case 1:
		return worlds.Times(2, worlds.KEP8x8)
	case 2:
		return worlds.Rack("rack")
	case 3:
		return worlds.Windows("torus", worlds.Extent{X: 3, Y: 1, Z: 1}, []worlds.Extent{{X: 2, Y: 1, Z: 1}, {X: 3, Y: 1, Z: 1}})
	case 5:
		return worlds.Mixed(rng, "mixed", 3+rng.IntN(3))
	case 4:
		return worlds.Groups("groups", 6, [][]int{{0}, {1}, {2}, {3}, {4}, {5}, {0, 1}, {1, 2}, {3, 4}, {4, 5}, {0, 1, 2}, {3, 4, 5}, {0, 1, 2, 3, 4, 5}})
	default:
		return worlds.Random(rng, "random", 3+rng.IntN(4), 6+rng.IntN(8))
	}
}

// crowd makes gangs for ever and ends those that run.
type crowd struct {
	*site
	rng     *rand.Rand
	classes []string
	queues  int
	made    int
	// back are gangs that were recalled, and end with the next minute.
	back []string
}

func newCrowd(seed uint64) *crowd {
	rng := rand.New(rand.NewPCG(seed, 7))
	c := &crowd{site: newSite(hardware(rng)), rng: rng, queues: 1 + rng.IntN(3)}
	if rng.IntN(4) == 0 {
		c.placer = placement.FirstFit{}
	}
	for _, class := range c.inv.Classes() {
		if len(class.Devices) > 0 {
			c.classes = append(c.classes, class.Name)
		}
	}
	slices.SortFunc(c.classes, func(a, b string) int { return c.span(a) - c.span(b) })
	return c
}

// arrive makes a gang of a random class among the smaller ones.
func (c *crowd) arrive(most int, options ...option) {
	c.made++
	name := fmt.Sprintf("g%04d", c.made)
	class := c.classes[c.rng.IntN(most)]
	options = append([]option{queue(fmt.Sprint("q", c.rng.IntN(c.queues)))}, options...)
	if c.rng.IntN(2) == 0 {
		options = append(options, runs(1+c.rng.IntN(longest)))
	}
	if c.rng.IntN(3) == 0 {
		options = append(options, lending)
	}
	if c.rng.IntN(4) == 0 {
		options = append(options, pods(func(ps *gang.PodSet) { ps.Requests["cpu"] = int64(1+c.rng.IntN(8)) * 1000 }))
	}
	c.comes(name, class, options...)
	if c.inv.Class(class).Shared(c.span(class)) && c.rng.IntN(2) == 0 {
		capacity := []inventory.Amount{{Name: "mem", Milli: 1 + c.rng.Int64N(4000)}}
		c.waiting[len(c.waiting)-1].Gang.PodSets[0].Claims[0].Requests[0].Capacity = capacity
	}
	if last := &c.waiting[len(c.waiting)-1]; len(last.Gang.PodSets) == 1 && c.rng.IntN(6) == 0 {
		ps := &last.Gang.PodSets[0]
		ps.Slices, ps.Count = 2, ps.Count*2
	}
}

// step makes one pass, holds it against the invariants, and lets a minute go by.
func (c *crowd) step(t *testing.T) {
	t.Helper()
	in := c.input()
	before := c.targets
	told := c.pass()
	c.judge(t, in, before, told)
	for _, r := range c.running {
		if r.ends > 0 {
			continue
		}
		lasts := 1 + c.rng.IntN(longest)
		if bound := int(r.entry.Runs / time.Minute); bound > 0 {
			lasts = min(lasts, bound)
		}
		r.ends = c.minute + lasts
	}
	for _, recall := range c.last.Recalls {
		for _, r := range c.running {
			if r.Owner == recall.Owner {
				c.back = append(c.back, r.entry.Gang.Key.Name)
				c.waiting = append(c.waiting, r.entry)
			}
		}
	}
	// A recalled gang holds its devices until it has ended, and stands in line only then.
	recalled := c.back
	c.back = nil
	c.minute++
	c.ends(recalled...)
	var ended []string
	for _, r := range c.running {
		if r.ends <= c.minute {
			ended = append(ended, r.entry.Gang.Key.Name)
		}
	}
	c.ends(ended...)
}

// judge asserts what holds after every pass.
func (c *crowd) judge(t *testing.T, in line.Input, before []line.Target, told string) {
	t.Helper()
	l := c.ledger()
	if over := l.Overdrawn(); len(over) > 0 {
		t.Fatalf("minute %d: %s\noverdrawn: %+v", c.minute, told, over)
	}
	// The same pass again, in another order and without memory.
	again := in
	again.World.Ledger = in.World.Ledger.Clone()
	again.Memory = nil
	again.Waiting, again.Running, again.Targets = slices.Clone(in.Waiting), slices.Clone(in.Running), slices.Clone(in.Targets)
	c.rng.Shuffle(len(again.Waiting), func(i, j int) { again.Waiting[i], again.Waiting[j] = again.Waiting[j], again.Waiting[i] })
	c.rng.Shuffle(len(again.Running), func(i, j int) { again.Running[i], again.Running[j] = again.Running[j], again.Running[i] })
	c.rng.Shuffle(len(again.Targets), func(i, j int) { again.Targets[i], again.Targets[j] = again.Targets[j], again.Targets[i] })
	if got, want := line.Pass(again), c.last; tell(got) != tell(want) {
		t.Fatalf("minute %d: the same pass without memory\n got %s\nwant %s", c.minute, tell(got), tell(want))
	} else if got.Asked < want.Asked {
		t.Fatalf("minute %d: %d questions with memory and %d without", c.minute, want.Asked, got.Asked)
	}
	c.judgeTargets(t, in, before, told)
}

// tell writes down everything of a result that people and the next pass go by, but the words of refusals.
func tell(r line.Result) string {
	text := ""
	for _, o := range r.Outcomes {
		text += o.Entry.Gang.Key.Name
		if o.Decision.Fits() {
			text += " on " + where(o.Decision)
		} else {
			text += " " + string(o.Decision.Refusal.Code)
		}
		if o.Lent {
			text += " lent"
		}
		text += "; "
	}
	for _, target := range r.Targets {
		text += target.For + " " + target.String() + target.Due.String() + "; "
	}
	for _, recall := range r.Recalls {
		text += "recall " + recall.Owner + "; "
	}
	return text
}

// judgeTargets asserts that nobody was let into a target but who may, and that a due time is never put off.
func (c *crowd) judgeTargets(t *testing.T, in line.Input, before []line.Target, told string) {
	t.Helper()
	entries := map[string]line.Entry{}
	for _, e := range in.Waiting {
		entries[e.Gang.UID] = e
	}
	places := line.Places(in.Waiting)
	after := map[string]line.Target{}
	queues := map[string]string{}
	for _, target := range c.last.Targets {
		after[target.For] = target
		queue := entries[target.For].Queue
		if other := queues[queue]; other != "" {
			t.Fatalf("minute %d: two targets in queue %s, for %s and %s", c.minute, queue, other, target.For)
		}
		queues[queue] = target.For
	}
	for _, target := range before {
		now, stands := after[target.For]
		if !stands || where(now.Decision) != where(target.Decision) || target.Open || now.Open {
			continue
		}
		e := entries[target.For]
		// What is kept is not kept from who comes before, and a gang with an older place may aim at the same. The target is a
		// new one then.
		first := func(r *runner) bool {
			return r.Since.Equal(c.now()) && (r.entry.Queue == e.Queue && line.Before(r.entry, e) || places(r.entry, e) < 0)
		}
		if slices.ContainsFunc(c.running, first) {
			continue
		}
		if !target.Due.IsZero() && target.Due.After(c.now()) && (now.Due.IsZero() || now.Due.After(target.Due)) {
			t.Fatalf("minute %d: %s was due %v and is due %v now\n%s\nbefore: %v\n%s", c.minute, target.For, target.Due, now.Due, told, target.Holders, c.debug())
		}
		// Without those who were in the way when the pass began, and with those who were let in, the gang must have its place.
		gone := map[string]bool{}
		for _, h := range holdersOf(in, target) {
			gone[h] = true
		}
		for _, r := range c.running {
			if !r.Since.Equal(c.now()) {
				continue
			}
			allowed := r.entry.Runs > 0 && !now.Due.IsZero() && !r.Ends.After(now.Due) ||
				r.Lent && e.Lends && r.entry.Priority < e.Priority
			if allowed {
				gone[r.Owner] = true
			}
		}
		left := *c.site
		left.running = slices.DeleteFunc(slices.Clone(c.running), func(r *runner) bool { return gone[r.Owner] })
		w := placement.World{Inventory: c.inv, Ledger: left.ledger()}
		if why := placement.Recheck(e.Gang, target.Decision, w); why != nil {
			t.Fatalf("minute %d: %s\nthe target of %s was taken from: %v", c.minute, told, target.For, why)
		}
	}
	c.judgeApart(t, entries, told)
}

// holdersOf is found out by dumb trial: whoever ran before the pass and stands in the target's devices or on its hosts.
func holdersOf(in line.Input, target line.Target) []string {
	var out []string
	for _, r := range in.Running {
		out = append(out, r.Owner)
	}
	return out
}

// judgeApart asserts that all targets can be had at once when everybody is gone.
func (c *crowd) judgeApart(t *testing.T, entries map[string]line.Entry, told string) {
	t.Helper()
	l := ledger.New(c.inv)
	for _, target := range c.last.Targets {
		e := entries[target.For]
		if target.Open {
			continue
		}
		if why := placement.Recheck(e.Gang, target.Decision, placement.World{Inventory: c.inv, Ledger: l}); why != nil {
			t.Fatalf("minute %d: %s\nthe target of %s overlaps: %v", c.minute, told, target.For, why)
		}
		for _, h := range holdings(target.For, target.Decision) {
			l.Take(h)
		}
		for _, ps := range target.Decision.PodSets {
			for rank, h := range ps.Hosts {
				l.Use(h, fmt.Sprint(target.For, rank), e.Gang.PodSets[0].Requests)
			}
		}
	}
}

// A large gang begins within a bounded time although smaller ones come for ever, in its own queue and in others.
func TestNobodyStarves(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := newCrowd(seed)
			small := max(1, len(c.classes)-1)
			crowded := 3 + c.rng.IntN(8)
			feed := func() {
				for len(c.waiting) < crowded {
					c.arrive(small, priority(int32(-c.rng.IntN(2))))
				}
			}
			for range c.rng.IntN(20) {
				feed()
				c.step(t)
			}
			c.comes("big", c.classes[len(c.classes)-1], queue("q0"), lending)
			older := len(c.waiting)
			// Each that came before waits at most for those who run when its turn comes, and may have to be recalled.
			bound := c.minute + older*(longest+2)
			for slices.ContainsFunc(c.waiting, func(e line.Entry) bool { return e.Gang.UID == "big" }) {
				if c.minute > bound {
					t.Fatalf("it waits since %d minutes behind %d: %s\n%s", c.minute-bound+older*(longest+2), older, c.pass(), c.debug())
				}
				feed()
				c.step(t)
			}
		})
	}
}

func (c *crowd) debug() string {
	text := ""
	for _, o := range c.last.Outcomes {
		if !o.Decision.Fits() {
			text += fmt.Sprintf("%s q%s %v %v %v\n", o.Entry.Gang.Key.Name, o.Entry.Queue, o.Entry.QueuedAt, o.Entry.Gang.PodSets[0], o.Decision.Refusal)
		}
	}
	for _, r := range c.running {
		text += fmt.Sprintf("%s on %s runs %v ends %v\n", r.Owner, where(r.decision), r.entry.Runs, r.ends)
	}
	return text
}
