package line_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

var start = time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)

// site is hardware with gangs that come, run and end. Times are in minutes.
type site struct {
	inv     *inventory.Inventory
	placer  placement.Placer
	minute  int
	waiting []line.Entry
	running []*runner
	targets []line.Target
	memory  *line.Memory
	// foreign books what is no gang's.
	foreign func(*ledger.Ledger)
	// barred is a pool of which nothing may be given out.
	barred string
	// last is the last result.
	last line.Result
}

// runner is a gang that runs.
type runner struct {
	line.Running
	entry    line.Entry
	decision placement.Decision
	ends     int // 0: when the test says so
}

func newSite(s *worlds.Site) *site {
	return &site{inv: s.Inventory(), placer: placement.NewScored(0), memory: &line.Memory{}, foreign: func(*ledger.Ledger) {}}
}

func kep() *site { return newSite(worlds.KEP8x8("pod")) }

// span is how many hosts the devices of a class stand on.
func (s *site) span(class string) int { return len(s.inv.Class(class).Devices[0].Hosts) }

// ask makes a gang for one slice.
func (s *site) ask(name, class string) line.Entry {
	return line.Entry{
		Gang: gang.Gang{Key: gang.Key{Namespace: "ml", Name: name}, UID: name, PodSets: []gang.PodSet{{
			Name: "main", Count: s.span(class), Requests: map[string]int64{"cpu": 1000},
			Claims: []gang.Claim{{PodClaim: "tpu", Requests: []gang.Request{{Name: "slice", Class: class, Count: 1}}}},
		}}},
		Queue: "q", QueuedAt: start.Add(time.Duration(s.minute) * time.Minute),
	}
}

type option func(*line.Entry)

func queue(name string) option { return func(e *line.Entry) { e.Queue = name } }
func priority(p int32) option  { return func(e *line.Entry) { e.Priority = p } }
func runs(minutes int) option {
	return func(e *line.Entry) { e.Runs = time.Duration(minutes) * time.Minute }
}
func lending(e *line.Entry) { e.Lends = true }
func since(minute int) option {
	return func(e *line.Entry) { e.QueuedAt = start.Add(time.Duration(minute) * time.Minute) }
}
func pods(f func(*gang.PodSet)) option { return func(e *line.Entry) { f(&e.Gang.PodSets[0]) } }

// comes puts a gang into the line.
func (s *site) comes(name, class string, options ...option) {
	e := s.ask(name, class)
	for _, o := range options {
		o(&e)
	}
	s.waiting = append(s.waiting, e)
}

// ends takes running gangs away.
func (s *site) ends(names ...string) {
	s.running = slices.DeleteFunc(s.running, func(r *runner) bool { return slices.Contains(names, r.entry.Gang.Key.Name) })
}

// goes takes waiting gangs away.
func (s *site) goes(names ...string) {
	s.waiting = slices.DeleteFunc(s.waiting, func(e line.Entry) bool { return slices.Contains(names, e.Gang.Key.Name) })
}

// ledger is built anew from those that run, as a restarted controller would.
func (s *site) ledger() *ledger.Ledger {
	l := ledger.New(s.inv)
	s.foreign(l)
	for _, r := range s.running {
		for _, h := range holdings(r.Owner, r.decision) {
			l.Take(h)
		}
		for _, ps := range r.decision.PodSets {
			for rank, h := range ps.Hosts {
				l.Use(h, r.Pods[rank], r.entry.Gang.PodSets[0].Requests)
			}
		}
	}
	return l
}

// holdings are what a decision takes.
func holdings(owner string, d placement.Decision) []ledger.Holding {
	var all []ledger.Holding
	for _, ps := range d.PodSets {
		for _, c := range ps.Claims {
			for i, in := range c.Instances {
				for _, dev := range in.Devices {
					h := ledger.Holding{Owner: owner, Reservation: owner, Pool: dev.Pool, Device: dev.Name, Charge: dev.Charge, Hosts: dev.Hosts, Capacity: dev.Capacity}
					if dev.Share {
						h.Share = fmt.Sprint(c.PodClaim, i)
					}
					all = append(all, h)
				}
			}
		}
	}
	return all
}

func (s *site) now() time.Time { return start.Add(time.Duration(s.minute) * time.Minute) }

func (s *site) input() line.Input {
	in := line.Input{
		Now: s.now(), World: placement.World{Inventory: s.inv, Ledger: s.ledger()}, Placer: s.placer,
		Waiting: slices.Clone(s.waiting), Held: map[string]int{}, Memory: s.memory,
		Barred: func(id inventory.PoolID) bool { return id.Name == s.barred },
	}
	for _, t := range s.targets {
		in.Targets = append(in.Targets, line.Target{For: t.For, Decision: t.Decision}) // What is written down, and no more.
	}
	for _, r := range s.running {
		in.Running = append(in.Running, r.Running)
		in.Held[r.entry.Queue] += r.decision.Shares()
	}
	return in
}

// pass makes one pass and carries it out. It tells what was given out, what is kept, and what is recalled.
func (s *site) pass() string {
	s.last = line.Pass(s.input())
	s.targets = s.last.Targets
	var told []string
	for _, o := range s.last.Outcomes {
		name := o.Entry.Gang.Key.Name
		if !o.Decision.Fits() {
			continue
		}
		s.goes(name)
		r := &runner{entry: o.Entry, decision: o.Decision, Running: line.Running{
			Owner: o.Entry.Gang.Key.String(), Priority: o.Entry.Priority, Since: s.now(), Lent: o.Lent,
		}}
		if o.Entry.Runs > 0 {
			r.Ends = s.now().Add(o.Entry.Runs)
		}
		for rank := range o.Decision.PodSets[0].Hosts {
			r.Pods = append(r.Pods, fmt.Sprintf("ml/%s-%d", name, rank))
		}
		s.running = append(s.running, r)
		lent := ""
		if o.Lent {
			lent = " (lent)"
		}
		told = append(told, name+" on "+where(o.Decision)+lent)
	}
	for _, t := range s.last.Targets {
		due := ""
		if !t.Due.IsZero() {
			due = " by " + t.Due.Format("15:04")
		}
		told = append(told, fmt.Sprintf("%s %s%s", t.For, t.String(), due))
	}
	for _, r := range s.last.Recalls {
		told = append(told, fmt.Sprintf("recall %s for %s", r.Owner, r.For.Gang.Key.Name))
	}
	return strings.Join(told, "; ")
}

// where names the devices of a decision.
func where(d placement.Decision) string {
	var names []string
	for _, ps := range d.PodSets {
		for _, c := range ps.Claims {
			for _, in := range c.Instances {
				for _, dev := range in.Devices {
					names = append(names, dev.Name)
				}
			}
		}
	}
	return strings.Join(names, ", ")
}

// passes makes a pass and holds it against what is expected.
func (s *site) passes(t *testing.T, want string) {
	t.Helper()
	if got := s.pass(); got != want {
		t.Errorf("minute %d\n got %s\nwant %s", s.minute, got, want)
	}
}

// refused is what a waiting gang was told.
func (s *site) refused(name string) string {
	for _, o := range s.last.Outcomes {
		if o.Entry.Gang.Key.Name == name && !o.Decision.Fits() {
			return o.Decision.Refusal.Error()
		}
	}
	return "not refused"
}

func pools(n int) *site { return newSite(worlds.Times(n, worlds.KEP8x8)) }
