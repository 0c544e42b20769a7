package line

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/gang"
)

// Entry is one waiting gang.
type Entry struct {
	Gang gang.Gang
	// Owner names the gang as a holder in the ledger and in what others are told; empty for its namespace/name.
	Owner string
	// Queue is the ClusterQueue.
	Queue string
	// Priority of the Workload; higher goes first.
	Priority int32
	// QueuedAt is since when the gang stands in line; it survives evictions.
	QueuedAt time.Time
	// Runs is for how long the gang runs at the most, from now on; zero when nobody knows.
	Runs time.Duration
	// NoTarget: no target is ever kept for the gang.
	NoTarget bool
	// Lends: gangs of lower priority may be let into the gang's target, to be recalled when the rest of it is free.
	Lends bool
}

// holder is the name under which the gang's devices are booked.
func (e Entry) holder() string {
	if e.Owner != "" {
		return e.Owner
	}
	return e.Gang.Key.String()
}

// before orders two entries of one queue. Name and namespace make the order total, so that a pass is reproducible.
func (e Entry) before(o Entry) int {
	return cmp.Or(
		cmp.Compare(o.Priority, e.Priority),
		e.older(o),
	)
}

// older orders two entries by who stands in line for longer.
func (e Entry) older(o Entry) int {
	return cmp.Or(
		e.QueuedAt.Compare(o.QueuedAt),
		cmp.Compare(e.Gang.Key.Namespace, o.Gang.Key.Namespace),
		cmp.Compare(e.Gang.Key.Name, o.Gang.Key.Name),
	)
}

// places are the entries whose time in line counts for a target, by the UID of the gang: its own, or that of the youngest
// gang that comes before it in its queue and may have a target.
//
// Were it always its own, three gangs could go round in a circle for ever: of A and B in one queue A comes first by priority,
// C of another queue stands in line for longer than A, and B for longer than C.
type places map[string]Entry

// newPlaces has a place for each entry of queues that are in order.
func newPlaces(queues map[string][]Entry) places {
	p := places{}
	for _, entries := range queues {
		var last *Entry
		for i := range entries {
			place := &entries[i]
			if last != nil && last.older(*place) > 0 {
				place = last
			}
			p[entries[i].Gang.UID] = *place
			if !entries[i].NoTarget {
				last = place
			}
		}
	}
	return p
}

// compare orders two entries of any queues by who has the target that both need.
func (p places) compare(a, b Entry) int {
	return cmp.Or(p[a.Gang.UID].older(p[b.Gang.UID]), a.before(b))
}

// turns hands out entries one by one.
type turns struct {
	// queues are complete and in order; from is how many of each have had their turn.
	queues map[string][]Entry
	from   map[string]int
	held   map[string]int
	names  []string
}

// newTurns sorts the entries into their queues. held counts the hosts that the gangs of each ClusterQueue hold now.
func newTurns(entries []Entry, held map[string]int) *turns {
	t := &turns{queues: map[string][]Entry{}, from: map[string]int{}, held: map[string]int{}}
	for q, n := range held {
		t.held[q] = n
	}
	for _, e := range entries {
		t.queues[e.Queue] = append(t.queues[e.Queue], e)
	}
	for _, q := range t.queues {
		slices.SortFunc(q, Entry.before)
	}
	t.names = slices.Sorted(maps.Keys(t.queues))
	return t
}

// next takes the head of the queue that holds the fewest hosts; ties go to the head that would come first in one queue.
func (t *turns) next() (Entry, bool) {
	best := ""
	found := false
	for _, name := range t.names {
		if t.from[name] < len(t.queues[name]) && (!found || t.less(name, best)) {
			best, found = name, true
		}
	}
	if !found {
		return Entry{}, false
	}
	t.from[best]++
	return t.queues[best][t.from[best]-1], true
}

func (t *turns) less(a, b string) bool {
	return cmp.Or(
		cmp.Compare(t.held[a], t.held[b]),
		t.queues[a][t.from[a]].before(t.queues[b][t.from[b]]),
		cmp.Compare(a, b),
	) < 0
}

// heads are the entries whose turn comes next in their queues.
func (t *turns) heads() []Entry {
	var heads []Entry
	for _, name := range t.names {
		if t.from[name] < len(t.queues[name]) {
			heads = append(heads, t.queues[name][t.from[name]])
		}
	}
	return heads
}
