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
// still exists: it can be deleted by others before the informer has shown it once.
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
}

type overlay struct {
	mu      sync.Mutex
	entries map[key]entry
	live    client.Reader
	now     func() time.Time
}

func (o *overlay) put(k key, e entry) {
	e.at = o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entries[k] = e
}

// merge returns what is to be seen under k when the informer shows cached (nil: nothing). The result is cached itself or
// an object that nobody else changes; nil means that there is none.
func (o *overlay) merge(ctx context.Context, k key, cached client.Object) client.Object {
	o.mu.Lock()
	e, known := o.entries[k]
	o.mu.Unlock()
	if !known {
		return cached
	}
	switch {
	case e.obj == nil && (cached == nil || cached.GetUID() != e.uid):
		// Removed, and the informer agrees or shows a successor.
		o.forget(k, e)
		return cached
	case e.obj == nil:
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
	if now, ok := o.entries[k]; ok && now.at.Equal(e.at) && now.uid == e.uid {
		delete(o.entries, k)
	}
}

// pending lists the keys of one kind that the overlay still holds.
func (o *overlay) pending(gvk schema.GroupVersionKind) []key {
	o.mu.Lock()
	defer o.mu.Unlock()
	var keys []key
	for k := range o.entries {
		if k.gvk == gvk {
			keys = append(keys, k)
		}
	}
	return keys
}

// newer compares resource versions, which are ordered within one resource (KEP-5504). A version that does not parse is
// taken for older, so that the informer wins in the end.
func newer(a, b client.Object) bool {
	c, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && c > 0
}
