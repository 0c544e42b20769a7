package written

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// doubtAfter is how long the informer may fail to show an object that we wrote before we ask the API server whether it
// still exists: it can be deleted by others before the informer has shown it once. For as long an object that we removed
// is remembered.
const doubtAfter = 5 * time.Second

type key struct {
	gvk schema.GroupVersionKind
	types.NamespacedName
}

// entry is what we know of one object beyond the informer.
type entry struct {
	uid types.UID
	// obj is the object as the API server answered; nil when the write removed it.
	obj client.Object
	// deleting: we asked for deletion and could not read what remained, so the version is unknown and only the
	// deletionTimestamp tells that the informer has caught up.
	deleting bool
	at       time.Time
	// number tells entries apart.
	number uint64
}

type overlay struct {
	mu      sync.Mutex
	entries map[key]entry
	numbers uint64
	live    client.Reader
	now     func() time.Time
}

// put remembers e, unless what is known already came after it: of two writes under way at once the first may be answered
// last.
func (o *overlay) put(k key, e entry) {
	e.at = o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if have, known := o.entries[k]; known && have.after(e) {
		return
	}
	o.numbers++
	e.number = o.numbers
	o.entries[k] = e
}

// after reports whether e is what became of the object later than o.
func (e entry) after(o entry) bool {
	switch {
	case o.obj == nil:
		return false
	case e.obj == nil:
		return e.uid == o.uid
	case e.deleting && e.uid == o.uid:
		return o.obj.GetDeletionTimestamp() == nil
	default:
		return newer(e.obj, o.obj)
	}
}

// entry is what we know of one object. Who reads must ask for it before he asks the informer: another reader may find
// meanwhile that the informer has caught up and drop it, and then neither would show our write.
func (o *overlay) entry(k key) (entry, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, known := o.entries[k]
	return e, known
}

// merge returns what is to be seen under k when we know e and the informer showed cached (nil: nothing) after that. The
// result is cached itself or an object that is shared and must not be changed; nil means that there is none.
func (o *overlay) merge(ctx context.Context, k key, e entry, cached client.Object) client.Object {
	switch {
	case e.obj == nil && cached != nil && cached.GetUID() != e.uid:
		o.forget(k, e) // Removed, and the informer shows a successor.
		return cached
	case e.obj == nil:
		// Removed. The informer may show nothing because it does not know of the object's beginning yet.
		if cached == nil && o.now().Sub(e.at) >= doubtAfter {
			o.forget(k, e)
		}
		return nil
	case cached == nil:
		return o.unseen(ctx, k, e)
	case cached.GetUID() != e.uid:
		if newer(cached, e.obj) {
			o.forget(k, e)
			return cached
		}
		return e.obj
	case e.deleting && cached.GetDeletionTimestamp() != nil:
		o.forget(k, e)
		return cached
	case e.deleting:
		return e.obj
	case newer(e.obj, cached):
		return e.obj
	default:
		o.forget(k, e)
		return cached
	}
}

// unseen decides about an object that we wrote and the informer does not show (yet, or any more).
func (o *overlay) unseen(ctx context.Context, k key, e entry) client.Object {
	if o.now().Sub(e.at) < doubtAfter {
		return e.obj
	}
	fresh := e.obj.DeepCopyObject().(client.Object)
	switch err := o.live.Get(ctx, k.NamespacedName, fresh); {
	case apierrors.IsNotFound(err):
		o.forget(k, e)
		return nil
	case err != nil:
		return e.obj
	default:
		o.put(k, entry{uid: fresh.GetUID(), obj: fresh})
		return fresh
	}
}

// forget drops the entry unless a newer write replaced it meanwhile.
func (o *overlay) forget(k key, e entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entries[k].number == e.number {
		delete(o.entries, k)
	}
}

// pending is what we know of the objects of one kind in one namespace, or in all if it is empty. As for entry, it is asked
// before the informer.
func (o *overlay) pending(gvk schema.GroupVersionKind, namespace string) map[key]entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	var own map[key]entry
	for k, e := range o.entries {
		if k.gvk != gvk || (namespace != "" && namespace != k.Namespace) {
			continue
		}
		if own == nil {
			own = map[key]entry{}
		}
		own[k] = e
	}
	return own
}

// newer compares resource versions, which are ordered within one resource (KEP-5504). A version that does not parse is
// taken for older, so that the informer wins in the end.
func newer(a, b client.Object) bool {
	c, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && c > 0
}
