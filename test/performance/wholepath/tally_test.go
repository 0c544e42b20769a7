package wholepath

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// limit is how long one run may take.
const limit = 10 * time.Minute

// tally counts objects of the namespace that have come so far. It watches, because polling would cost what it measures.
type tally struct {
	site   *site
	events watch.Interface
	passed func(client.Object) bool
	seen   sets.Set[types.UID]
}

// tally begins to count, from what is there now. list has the kind.
func (s *site) tally(list client.ObjectList, passed func(client.Object) bool) *tally {
	s.Helper()
	events, err := s.Client.Watch(s.Context(), list, client.InNamespace(s.Namespace))
	if err != nil {
		s.Fatal(err)
	}
	return &tally{s, events, passed, sets.New[types.UID]()}
}

// await returns when n have passed.
func (t *tally) await(n int) {
	t.site.Helper()
	if err := t.count(n); err != nil {
		t.site.Fatalf("%d of %d have come so far: %v", t.seen.Len(), n, err)
	}
}

func (t *tally) count(n int) error {
	defer t.events.Stop()
	ctx, cancel := context.WithTimeout(t.site.Context(), limit)
	defer cancel()
	for t.seen.Len() < n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-t.events.ResultChan():
			if !open {
				return errors.New("the watch ended")
			}
			if obj, is := e.Object.(client.Object); is && t.passed(obj) {
				t.seen.Insert(obj.GetUID())
			}
		}
	}
	return nil
}
