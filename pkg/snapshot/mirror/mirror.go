package mirror

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mirror lists the kinds that were added to it. It is safe for concurrent use once they are.
type Mirror struct {
	shelves map[reflect.Type]Shelf
}

// New returns a Mirror of no kind.
func New() *Mirror { return &Mirror{shelves: map[reflect.Type]Shelf{}} }

// Shelf is one kind.
type Shelf interface {
	// Look returns the objects as they are now, with those of these names at hand. It is false while the informer has not
	// listed them all once.
	Look(names []types.NamespacedName) (View, bool)
	// check holds the lists against the informer's.
	check() error
}

// View is one look at a kind *T.
type View interface {
	// Items are a []*T, which is shared and must not be changed, nor must what it points to.
	Items() any
	// Known are the objects of the names asked for; nil where there is none.
	Known() []client.Object
	// With are Items with other objects instead of the known ones, which stay at their places: added where there was none,
	// taken out where there is none now.
	With(objects []client.Object) any
}

// Shelf of a kind, or nil.
func (m *Mirror) Shelf(kind client.Object) Shelf {
	s, known := m.shelves[reflect.TypeOf(kind)]
	if !known {
		return nil
	}
	return s
}

// Check compares all lists with what the informers hold. Differences that no event explains are an error: a bug, or an
// informer that changed how it keeps its objects. They are mended by finding them.
func (m *Mirror) Check() error {
	var failed []error
	for kind, s := range m.shelves {
		if err := s.check(); err != nil {
			failed = append(failed, fmt.Errorf("list of %s: %w", kind.Elem().Name(), err))
		}
	}
	return errors.Join(failed...)
}

// touched is the name of the indexer.
const touched = "berth.dev/touched"

// Add mirrors a kind of the cache, and starts its informer if nobody did. Add all kinds before the cache starts.
func Add[T any, P interface {
	*T
	client.Object
}](ctx context.Context, m *Mirror, of cache.Informers) error {
	informer, err := of.GetInformer(ctx, P(new(T)), cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return fmt.Errorf("the informer of %T is a %T, which shows no store", P(new(T)), informer)
	}
	s := newShelf[T, P](shared.GetIndexer(), shared.HasSynced)
	if err := shared.AddIndexers(toolscache.Indexers{touched: s.touch}); err != nil {
		return err
	}
	if _, err := shared.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: s.deleted}); err != nil {
		return err
	}
	m.shelves[reflect.TypeFor[P]()] = s
	return nil
}
