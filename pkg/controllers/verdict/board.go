package verdict

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
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
	sources
)

// Board holds the verdicts on reservations that are served. It is safe for concurrent use.
type Board struct {
	mu      sync.Mutex
	lost    map[types.NamespacedName]*[sources]*reason.Refusal
	changed chan event.TypedGenericEvent[*berth.GangReservation]
}

// NewBoard is an empty board.
func NewBoard() *Board {
	return &Board{
		lost:    map[types.NamespacedName]*[sources]*reason.Refusal{},
		changed: make(chan event.TypedGenericEvent[*berth.GangReservation], 1024),
	}
}

// Changed delivers reservations whose verdict has changed.
func (b *Board) Changed() <-chan event.TypedGenericEvent[*berth.GangReservation] { return b.changed }

// Set replaces the verdict of one source; nil takes it back.
func (b *Board) Set(key types.NamespacedName, from Source, lost *reason.Refusal) {
	if b.set(key, from, lost) {
		obj := &berth.GangReservation{}
		obj.Namespace, obj.Name = key.Namespace, key.Name
		b.changed <- event.TypedGenericEvent[*berth.GangReservation]{Object: obj}
	}
}

func (b *Board) set(key types.NamespacedName, from Source, lost *reason.Refusal) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
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
