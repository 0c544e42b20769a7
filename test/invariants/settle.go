package invariants

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settle is the quorum read. It lists every kind without a resourceVersion and returns once the watches have delivered
// what is in the lists and have let go of what is not.
//
// Why that is enough: a list is later than any event seen before it began. The newest event of an object that exists is
// the version in the list; of one that the watcher knew and the list does not, it is the deletion. So all events of
// objects that it knew or that exist are in, up to the list. Only an object that came and went unseen is missing; a rule
// that concludes from an object's absence asks for it in particular, see recall.
func (w *Watcher) settle(ctx context.Context) error {
	for k := range kind(kinds) {
		list := &metav1.PartialObjectMetadataList{}
		gvk := infos[k].gvk
		gvk.Kind += "List"
		list.SetGroupVersionKind(gvk)
		if err := w.client.List(ctx, list); err != nil {
			if absent(err) {
				continue
			}
			return fmt.Errorf("listing %s: %w", infos[k].resource, err)
		}
		if err := w.awaitCovered(ctx, k, list); err != nil {
			return err
		}
	}
	return nil
}

func (w *Watcher) awaitCovered(ctx context.Context, k kind, list *metav1.PartialObjectMetadataList) error {
	listed := map[types.NamespacedName]uint64{}
	for i := range list.Items {
		listed[client.ObjectKeyFromObject(&list.Items[i])] = revision(list.Items[i].ResourceVersion)
	}
	at := revision(list.ResourceVersion)
	for {
		missing, changed := w.uncovered(k, listed, at)
		if missing == "" {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the watch of %s has not delivered %s: %w", infos[k].resource, missing, context.Cause(ctx))
		}
	}
}

// uncovered names one object of which the watch is behind the list, and returns a channel closed at the next event.
func (w *Watcher) uncovered(k kind, listed map[types.NamespacedName]uint64, at uint64) (string, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, rv := range listed {
		if last, ok := w.objects[k][key].last(); !ok || last.rv < rv {
			return key.String(), w.changed
		}
	}
	for key, h := range w.objects[k] {
		if last, _ := h.last(); !last.gone && last.rv <= at {
			if _, ok := listed[key]; !ok {
				return "the deletion of " + key.String(), w.changed
			}
		}
	}
	return "", nil
}

func formatRevision(rv uint64) string { return strconv.FormatUint(rv, 10) }
