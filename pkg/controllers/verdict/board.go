package verdict

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/berth-dev/berth/pkg/reason"
)

// Source is who found it out. The verdict of the lowest source counts.
type Source int

// Sources.
const (
	// Hardware: the pass over the world saw that the slice can no longer be used.
	Hardware Source = iota
	// Seating: the gang did not appear in time.
	Seating
	// Recalled: the slice was lent, and who lent it needs it.
	Recalled
	sources
)

// Board holds the verdicts on reservations that are served. It is safe for concurrent use.
type Board struct {
	mu   sync.Mutex
	lost map[types.NamespacedName]*[sources]*reason.Refusal
	// queue is that of the controller that acts on verdicts; nil until it starts.
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// NewBoard is an empty board.
func NewBoard() *Board {
	return &Board{lost: map[types.NamespacedName]*[sources]*reason.Refusal{}}
}

// Changes asks for a look at every reservation whose verdict changes, and at those that have one when the controller
// starts. Who posts never waits for the controller.
func (b *Board) Changes() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.queue = queue
		for key := range b.lost {
			queue.Add(reconcile.Request{NamespacedName: key})
		}
		return nil
	})
}

// Set replaces the verdict of one source; nil takes it back.
func (b *Board) Set(key types.NamespacedName, from Source, lost *reason.Refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.set(key, from, lost) && b.queue != nil {
		b.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

func (b *Board) set(key types.NamespacedName, from Source, lost *reason.Refusal) (changed bool) {
	have, known := b.lost[key]
	if !known {
		if lost == nil {
			return false
		}
		have = &[sources]*reason.Refusal{}
		b.lost[key] = have
	}
	old := have[from]
	have[from] = lost
	if *have == [sources]*reason.Refusal{} {
		delete(b.lost, key)
	}
	return (old == nil) != (lost == nil)
}

// Lost is the verdict on a reservation; nil when its slice is well.
func (b *Board) Lost(key types.NamespacedName) *reason.Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	if have, known := b.lost[key]; known {
		for _, lost := range have {
			if lost != nil {
				return lost
			}
		}
	}
	return nil
}

// Forget drops what is known of a reservation that is gone.
func (b *Board) Forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.lost, key)
}
