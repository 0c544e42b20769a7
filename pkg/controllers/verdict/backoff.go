package verdict

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/reason"
)

// Backoff remembers Workloads whose reservation the API server refused, or whose pods did not come, so that the next try
// is not at once. It is keyed by the Workload's UID: a new Workload starts afresh.
type Backoff struct {
	base, most time.Duration
	now        func() time.Time

	mu    sync.Mutex
	tries map[types.UID]try
}

type try struct {
	count int
	until time.Time
	why   *reason.Refusal
}

// remembered is how long failures count of a Workload that has not failed again. A try can take a day: so long may a gang
// wait for its pods.
const remembered = 48 * time.Hour

// NewBackoff doubles from base up to most.
func NewBackoff(base, most time.Duration, now func() time.Time) *Backoff {
	return &Backoff{base: base, most: most, now: now, tries: map[types.UID]try{}}
}

// Failed notes a failure. While the Workload waits nothing is tried, so what is noted then belongs to the failure before.
func (b *Backoff) Failed(uid types.UID, why *reason.Refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	// Most of those that were not heard of for so long are gone.
	maps.DeleteFunc(b.tries, func(other types.UID, t try) bool { return other != uid && now.Sub(t.until) >= remembered })
	t := b.tries[uid]
	t.why = why
	if !now.Before(t.until) {
		t.until = now.Add(min(b.base<<min(t.count, 16), b.most))
		t.count++
	}
	b.tries[uid] = t
}

// Waits returns how long the Workload has to wait still, and for what; zero when it may be tried.
func (b *Backoff) Waits(uid types.UID) (time.Duration, *reason.Refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, failed := b.tries[uid]
	if left := t.until.Sub(b.now()); failed && left > 0 {
		return left, t.why
	}
	return 0, nil
}

// Forget clears the count after a success.
func (b *Backoff) Forget(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.tries, uid)
}
