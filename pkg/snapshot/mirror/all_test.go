package mirror

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/snapshot"
)

// informers are real ones that never start.
type informers struct{ cache.Informers }

func (informers) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{}, obj.(runtime.Object), time.Hour, toolscache.Indexers{}), nil
}

// mirrorOnly can list nothing that is not mirrored.
type mirrorOnly struct {
	client.Reader
	*Mirror
	asked int
}

func (m *mirrorOnly) Items(_ context.Context, kind client.Object) (any, bool, error) {
	m.asked++
	s := m.Shelf(kind)
	if s == nil {
		return nil, false, errors.New("not mirrored")
	}
	if _, listed := s.Look(nil); listed {
		return nil, false, errors.New("listed before its informer was")
	}
	return s.(interface{ none() any }).none(), true, nil
}

func (s *shelf[T, P]) none() any { return []P{} }

func TestAllIsWhatReadLists(t *testing.T) {
	for _, taintRules := range []bool{false, true} {
		m, err := All(t.Context(), informers{}, taintRules)
		if err != nil {
			t.Fatal(err)
		}
		r := &mirrorOnly{Mirror: m}
		if _, err := snapshot.Read(t.Context(), r, taintRules); err != nil {
			t.Error(err)
		}
		if r.asked != len(m.shelves) {
			t.Errorf("%d kinds are read, %d mirrored", r.asked, len(m.shelves))
		}
		if err := m.Check(); err != nil {
			t.Error(err)
		}
	}
}
