package mirror

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// store is what is read of an informer's indexer.
type store interface {
	List() []any
	GetByKey(key string) (any, bool, error)
}

// shelf is the list of one kind.
type shelf[T any, P interface {
	*T
	client.Object
}] struct {
	store  store
	synced func() bool

	news sync.Mutex
	// changed are keys of the store that may have changed since they were last looked at.
	changed map[string]struct{}

	mutex sync.Mutex
	// items are shared with whoever looked; they are copied before they change.
	items []P
	at    map[types.NamespacedName]int
	begun bool
}

func newShelf[T any, P interface {
	*T
	client.Object
}](of store, synced func() bool) *shelf[T, P] {
	return &shelf[T, P]{store: of, synced: synced, changed: map[string]struct{}{}, at: map[types.NamespacedName]int{}}
}

// touch is an indexer that indexes nothing. The store calls it with its lock held, with what is about to be replaced and
// with what replaces it, so whoever sees a change in the store finds it noted.
func (s *shelf[T, P]) touch(obj any) ([]string, error) {
	if key, err := toolscache.MetaNamespaceKeyFunc(obj); err == nil {
		s.note(key)
	}
	return nil, nil
}

func (s *shelf[T, P]) deleted(obj any) {
	if key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
		s.note(key)
	}
}

func (s *shelf[T, P]) note(key string) {
	s.news.Lock()
	defer s.news.Unlock()
	s.changed[key] = struct{}{}
}

func (s *shelf[T, P]) heard() map[string]struct{} {
	s.news.Lock()
	defer s.news.Unlock()
	out := s.changed
	s.changed = map[string]struct{}{}
	return out
}

// small lists are compared as a whole whenever something changed.
const small = 1024

// Look implements Shelf.
func (s *shelf[T, P]) Look(names []types.NamespacedName) (View, bool) {
	if !s.synced() {
		return nil, false
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch news := s.heard(); {
	case !s.begun, len(news) > 0 && len(s.items) < small, len(news) > len(s.items)/4:
		s.compare()
		s.begun = true
	case len(news) > 0:
		s.follow(news)
	}
	v := &view[T, P]{items: s.items, places: make([]int, len(names)), known: make([]client.Object, len(names))}
	for i, name := range names {
		v.places[i] = -1
		if at, known := s.at[name]; known {
			v.places[i], v.known[i] = at, s.items[at]
		}
	}
	return v, true
}

// follow looks at what changed.
func (s *shelf[T, P]) follow(news map[string]struct{}) {
	s.items = slices.Clone(s.items)
	for key := range news {
		namespace, name, err := toolscache.SplitMetaNamespaceKey(key)
		if err != nil {
			continue
		}
		obj, exists, err := s.store.GetByKey(key)
		if p, ok := obj.(P); err == nil && exists && ok {
			s.put(p)
		} else {
			s.remove(types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
}

// compare looks at everything and returns the names of what changed.
func (s *shelf[T, P]) compare() []types.NamespacedName {
	all := s.store.List()
	s.items = slices.Clone(s.items)
	there := make(map[types.NamespacedName]struct{}, len(all))
	var changed []types.NamespacedName
	for _, obj := range all {
		p, ok := obj.(P)
		if !ok {
			continue
		}
		name := client.ObjectKeyFromObject(p)
		there[name] = struct{}{}
		if s.put(p) {
			changed = append(changed, name)
		}
	}
	for name := range s.at {
		if _, is := there[name]; !is {
			changed = append(changed, name)
			s.remove(name)
		}
	}
	return changed
}

// put is false when the object is there already. items must be the shelf's own.
func (s *shelf[T, P]) put(p P) bool {
	name := client.ObjectKeyFromObject(p)
	at, known := s.at[name]
	switch {
	case !known:
		s.at[name] = len(s.items)
		s.items = append(s.items, p)
	case s.items[at] == p:
		return false
	default:
		s.items[at] = p
	}
	return true
}

// remove puts the last object at the place of the one that goes. items must be the shelf's own.
func (s *shelf[T, P]) remove(name types.NamespacedName) {
	at, known := s.at[name]
	if !known {
		return
	}
	last := len(s.items) - 1
	s.items[at] = s.items[last]
	s.at[client.ObjectKeyFromObject(s.items[at])] = at
	delete(s.at, name)
	s.items[last] = nil
	s.items = s.items[:last]
}

func (s *shelf[T, P]) check() error {
	if !s.synced() {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.begun {
		return nil
	}
	before := s.heard()
	changed := s.compare()
	for _, name := range changed {
		key := name.Name
		if name.Namespace != "" {
			key = name.String()
		}
		_, explained := before[key]
		// What changed while the store was listed is noted by now.
		s.news.Lock()
		_, later := s.changed[key]
		s.news.Unlock()
		if !explained && !later {
			return fmt.Errorf("%s changed and nothing was heard of it", key)
		}
	}
	return nil
}

// view is one look.
type view[T any, P interface {
	*T
	client.Object
}] struct {
	items  []P
	places []int
	known  []client.Object
}

// Items implements View.
func (v *view[T, P]) Items() any { return v.items }

// Known implements View.
func (v *view[T, P]) Known() []client.Object { return v.known }

// With implements View.
func (v *view[T, P]) With(objects []client.Object) any {
	out := slices.Clone(v.items)
	var holes []int
	for i, obj := range objects {
		p, _ := obj.(P)
		switch at := v.places[i]; {
		case at < 0 && p != nil:
			out = append(out, p)
		case at < 0:
		case p == nil:
			holes = append(holes, at)
		default:
			out[at] = p
		}
	}
	// From the last on, so that none of them is moved.
	slices.Sort(holes)
	for _, at := range slices.Backward(holes) {
		last := len(out) - 1
		out[at] = out[last]
		out[last] = nil
		out = out[:last]
	}
	return out
}
