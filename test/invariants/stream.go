package invariants

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// retryEvery is how long to wait for an API server or a kind that is not there.
const retryEvery = 200 * time.Millisecond

// follow lists and watches one kind until ctx ends. synced is called once the first list is in, or when the kind turned
// out not to exist (yet).
func (w *Watcher) follow(ctx context.Context, k kind, synced func()) {
	first := true
	var reached uint64 // everything up to this revision has been delivered
	for ctx.Err() == nil {
		list := infos[k].newList()
		if err := w.client.List(ctx, list); err != nil { // no resourceVersion: from quorum
			if absent(err) {
				first = false // what appears later has appeared under our eyes
				synced()
			}
			pause(ctx)
			continue
		}
		w.replace(k, list, reached, first)
		reached, first = revision(list.GetResourceVersion()), false
		synced()
		reached = w.watchFrom(ctx, k, reached)
	}
}

// watchFrom delivers events until the API server no longer knows the revision, and returns how far it came.
func (w *Watcher) watchFrom(ctx context.Context, k kind, reached uint64) uint64 {
	for ctx.Err() == nil {
		from := &client.ListOptions{Raw: &metav1.ListOptions{
			ResourceVersion: formatRevision(reached), AllowWatchBookmarks: true,
		}}
		events, err := w.client.Watch(ctx, infos[k].newList(), from)
		if err != nil {
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || absent(err) {
				return reached
			}
			pause(ctx)
			continue
		}
		for event := range events.ResultChan() {
			obj, ok := event.Object.(client.Object)
			if event.Type == watch.Error || !ok {
				events.Stop()
				return reached
			}
			rv := revision(obj.GetResourceVersion())
			reached = max(reached, rv)
			if event.Type != watch.Bookmark {
				w.apply(k, version{since: rv, rv: rv, seen: time.Now(), gone: event.Type == watch.Deleted, obj: obj})
			}
		}
		events.Stop()
	}
	return reached
}

// replace takes over a list. reached is how far the watch before it came: what is new happened after that.
func (w *Watcher) replace(k kind, list client.ObjectList, reached uint64, initial bool) {
	listed := revision(list.GetResourceVersion())
	now := time.Now()
	present := map[types.NamespacedName]bool{}
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		obj := item.(client.Object)
		present[client.ObjectKeyFromObject(obj)] = true
		w.apply(k, version{
			since: reached + 1, rv: revision(obj.GetResourceVersion()), seen: now, initial: initial, obj: obj,
		})
		return nil
	})
	for key, last := range w.present(k) {
		if !present[key] && last.rv <= listed {
			w.apply(k, version{since: reached + 1, rv: listed, seen: now, gone: true, obj: last.obj})
		}
	}
}

// apply enters one version, judges it, and tells those who wait for it.
func (w *Watcher) apply(k kind, v version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := client.ObjectKeyFromObject(v.obj)
	h := w.objects[k][key]
	prev, known := h.last()
	if known && v.rv <= prev.rv {
		return // a list repeats what the watch had delivered
	}
	w.objects[k][key] = h.add(v)
	var before *version
	if known && !prev.gone {
		before = &prev
	}
	w.judgeEvent(k, key, before, v)
	w.forget(v.seen)
	close(w.changed)
	w.changed = make(chan struct{})
}

// forget drops, now and then, what has been gone for so long that no judgement asks for it. The caller holds mu.
func (w *Watcher) forget(now time.Time) {
	if now.Sub(w.forgot) < keepFor {
		return
	}
	w.forgot = now
	for k := range w.objects {
		for key, h := range w.objects[k] {
			if last, _ := h.last(); last.gone && now.Sub(last.seen) > keepFor {
				delete(w.objects[k], key)
			}
		}
	}
}

// present returns the objects that exist as far as the watcher knows.
func (w *Watcher) present(k kind) map[types.NamespacedName]version {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[types.NamespacedName]version{}
	for key, h := range w.objects[k] {
		if last, ok := h.last(); ok && !last.gone {
			all[key] = last
		}
	}
	return all
}

// absent reports whether err says that the API server does not serve the kind.
func absent(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retryEvery):
	}
}
