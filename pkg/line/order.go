package line

import (
	"cmp"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/gang"
)

// Entry is one waiting gang.
type Entry struct {
	Gang gang.Gang
	// Queue is the ClusterQueue.
	Queue string
	// Priority of the Workload; higher goes first.
	Priority int32
	// QueuedAt is since when the gang stands in line; it survives evictions.
	QueuedAt time.Time
}

// before orders two entries of one queue. Name and namespace make the order total, so that a pass is reproducible.
func (e Entry) before(o Entry) int {
	return cmp.Or(
		cmp.Compare(o.Priority, e.Priority),
		e.QueuedAt.Compare(o.QueuedAt),
		cmp.Compare(e.Gang.Key.Namespace, o.Gang.Key.Namespace),
		cmp.Compare(e.Gang.Key.Name, o.Gang.Key.Name),
	)
}

// turns hands out entries one by one.
type turns struct {
	queues map[string][]Entry
	held   map[string]int
}

// newTurns sorts the entries into their queues. held counts the hosts that the gangs of each ClusterQueue hold now.
func newTurns(entries []Entry, held map[string]int) *turns {
	t := &turns{queues: map[string][]Entry{}, held: map[string]int{}}
	for q, n := range held {
		t.held[q] = n
	}
	for _, e := range entries {
		t.queues[e.Queue] = append(t.queues[e.Queue], e)
	}
	for _, q := range t.queues {
		slices.SortFunc(q, Entry.before)
	}
	return t
}

// next takes the head of the queue that holds the fewest hosts; ties go to the head that would come first in one queue.
func (t *turns) next() (Entry, bool) {
	best, found := "", false
	for name := range t.queues {
		if !found || t.less(name, best) {
			best, found = name, true
		}
	}
	if !found {
		return Entry{}, false
	}
	head := t.queues[best][0]
	if rest := t.queues[best][1:]; len(rest) > 0 {
		t.queues[best] = rest
	} else {
		delete(t.queues, best)
	}
	return head, true
}

func (t *turns) less(a, b string) bool {
	return cmp.Or(
		cmp.Compare(t.held[a], t.held[b]),
		t.queues[a][0].before(t.queues[b][0]),
		cmp.Compare(a, b),
	) < 0
}
