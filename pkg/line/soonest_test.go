package line_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
)

// wait is what a dumb look at one device comes to.
type wait struct {
	unknown int
	latest  time.Time
}

func (w wait) before(o wait) bool {
	return w.unknown < o.unknown || w.unknown == o.unknown && w.latest.Before(o.latest)
}

// The target of a gang of one device is held against every device and every set of gangs that could go.
func TestSoonestAgainstEverySet(t *testing.T) {
	targets := 0
	for seed := range uint64(400) {
		c := newCrowd(seed)
		for range 3 + c.rng.IntN(4) {
			c.arrive(len(c.classes), func(e *line.Entry) { e.NoTarget = true })
		}
		c.pass()
		c.waiting = nil
		c.comes("big", c.classes[c.rng.IntN(len(c.classes))])
		c.pass()
		if len(c.last.Targets) == 0 {
			continue
		}
		targets++
		got := c.last.Targets[0]
		best := wait{unknown: 99}
		for _, d := range c.inv.Class(c.last.Outcomes[0].Entry.Gang.PodSets[0].Claims[0].Requests[0].Class).Devices {
			if w, ok := c.soonest(got, d.Name); ok && w.before(best) {
				best = w
			}
		}
		is := wait{}
		for _, h := range got.Holders {
			r := c.run(h)
			if r.Ends.IsZero() {
				is.unknown++
			} else if r.Ends.After(is.latest) {
				is.latest = r.Ends
			}
		}
		// Of several unknown ends it takes the first that will do, which need not be the fewest.
		if best.unknown == 0 && is != best || best.unknown > 0 && is.unknown < best.unknown {
			t.Fatalf("seed %d: %s drains by %+v, and it could by %+v\n%s", seed, got.String(), is, best, c.debug())
		}
		if (is.unknown == 0) != !got.Due.IsZero() || is.unknown == 0 && !got.Due.Equal(is.latest) {
			t.Fatalf("seed %d: it is due %v, and %+v", seed, got.Due, is)
		}
	}
	if targets < 200 {
		t.Errorf("only %d targets", targets)
	}
}

func (c *crowd) run(owner string) *runner {
	i := slices.IndexFunc(c.running, func(r *runner) bool { return r.Owner == owner })
	return c.running[i]
}

// soonest tries every set of gangs on a device: which of those after which it can be had ends first.
func (c *crowd) soonest(target line.Target, device string) (wait, bool) {
	e := c.waiting[0]
	decision := target.Decision
	d := c.inv.Device(decision.PodSets[0].Claims[0].Instances[0].Devices[0].Pool, device)
	if d == nil {
		return wait{}, false
	}
	decision.PodSets = []placement.PodSet{decision.PodSets[0]}
	set := &decision.PodSets[0]
	set.Hosts = d.Hosts
	set.Claims = slices.Clone(set.Claims)
	set.Claims[0].Instances = []placement.Instance{{Devices: []placement.Device{{Request: "slice", Pool: d.Pool, Name: d.Name, Hosts: d.Hosts}}}}
	best, found := wait{unknown: 99}, false
	for bits := range 1 << len(c.running) {
		left := *c.site
		left.running = nil
		var w wait
		for i, r := range c.running {
			switch {
			case bits&(1<<i) == 0:
				left.running = append(left.running, r)
			case r.Ends.IsZero():
				w.unknown++
			case r.Ends.After(w.latest):
				w.latest = r.Ends
			}
		}
		if w.before(best) && placement.Recheck(e.Gang, decision, placement.World{Inventory: c.inv, Ledger: left.ledger()}) == nil {
			best, found = w, true
		}
	}
	return best, found
}

// After one release only those are asked about whom it can help, however many wait.
func TestWakeUp(t *testing.T) {
	const waiting = 5000
	s := manyWait(waiting)
	first := s.last.Asked
	if len(s.running) != 16 || first > 40 {
		t.Errorf("%d gangs run, and the first pass asked %d times", len(s.running), first)
	}
	s.pass()
	if s.last.Asked != 0 {
		t.Errorf("nothing changed, and %d questions were asked", s.last.Asked)
	}
	if len(s.last.Outcomes) != waiting {
		t.Errorf("%d gangs were answered", len(s.last.Outcomes))
	}

	// Pool 2 is where four gangs hold a 4x4 each. What one leaves helps the first gang that asks for a 4x4 or less.
	s.ends("run-2-0")
	s.pass()
	var begun []string
	for _, o := range s.last.Outcomes {
		if o.Decision.Fits() {
			begun = append(begun, o.Entry.Gang.Key.Name)
		}
	}
	if len(begun) == 0 {
		t.Error("nobody has what became free")
	}
	// The four needs, each asked at most twice: for what is there, and beside what is kept. That is for the words, too, that
	// the first of each queue read: those who gained nothing are told who holds what now.
	if s.last.Asked > len(begun)+8 {
		t.Errorf("%d began and %d questions were asked", len(begun), s.last.Asked)
	}
}

// manyWait is four pools that are full, and n gangs of four needs that wait in three queues, after a first pass.
func manyWait(n int) *site {
	s := pools(4)
	for p := range 4 {
		for i := range 4 {
			s.comes(fmt.Sprintf("run-%d-%d", p, i), "tpu-4x4", on(s, fmt.Sprint("pool-", p)))
		}
	}
	s.pass()
	s.minute = 1
	classes := []string{"tpu-8x8", "tpu-4x8", "tpu-4x4", "tpu-2x2"}
	for i := range n {
		s.comes(fmt.Sprintf("g%05d", i), classes[i%len(classes)], queue(fmt.Sprint("q", i%3)))
	}
	s.pass()
	return s
}

// What is said near the head of a queue is true: whoever stands there is told what he would be told without memory.
func TestRefusalsAreFresh(t *testing.T) {
	s := manyWait(200)
	s.pass()
	for _, gone := range []string{"run-2-0", "run-0-1", "run-2-3"} {
		s.ends(gone)
		s.pass() // What became free is given out,
		in := s.input()
		in.Memory = nil
		anew := line.Pass(in)
		s.pass() // and then said.
		said := map[string]int{}
		for i, o := range s.last.Outcomes {
			queue := o.Entry.Queue
			if said[queue]++; said[queue] > line.Fresh {
				continue
			}
			if got, want := o.Decision.Refusal, anew.Outcomes[i].Decision.Refusal; got.Error() != want.Error() {
				t.Fatalf("after %s: %s is told\n     %s\nwant %s", gone, o.Entry.Gang.Key, got, want)
			}
		}
		for _, r := range s.running {
			if r.Owner == "ml/"+gone {
				t.Errorf("%s still runs", gone)
			}
		}
	}
}
