package invariants

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// moment is one name at one revision.
type moment struct {
	kind kind
	key  types.NamespacedName
	rv   uint64
}

// lookup returns the object at a revision. Without one, sure says whether there certainly was none: that no watch has
// shown it is not enough, because a watch that is behind may be about to show how it came and went.
func (w *Watcher) lookup(at moment) (obj client.Object, sure bool) {
	if obj := w.objects[at.kind][at.key].at(at.rv); obj != nil {
		return obj, true
	}
	obj, sure = w.recalled[at]
	return obj, sure
}

// recall asks the API server what was there at a past revision, which it knows until etcd is compacted (five minutes),
// and remembers the answer for lookup.
func (w *Watcher) recall(ctx context.Context, at moment) error {
	list := infos[at.kind].newList()
	err := w.client.List(ctx, list, &client.ListOptions{
		Namespace:     at.key.Namespace,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", at.key.Name),
		Raw: &metav1.ListOptions{
			ResourceVersion: formatRevision(at.rv), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		},
	})
	if err != nil && !absent(err) {
		return err
	}
	var found client.Object
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		found = item.(client.Object)
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recalled[at] = found
	return nil
}

// judged makes a settled judgement, as often as it depends on what must be recalled first.
func (w *Watcher) judged(ctx context.Context, judge suspicion) (*Breach, error) {
	for {
		w.mu.Lock()
		b := judge(true)
		w.mu.Unlock()
		if b == nil || b.unless == nil {
			return b, nil
		}
		err := w.recall(ctx, *b.unless)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			w.t.Logf("invariants: too late to confirm this, so it is no breach: %v", b)
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s at revision %d: %w", named(b.unless.kind, b.unless.key), b.unless.rv, err)
		}
	}
}
