package fold

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// soon is when a look that lost a race is made again.
const soon = 100 * time.Millisecond

// lookCloser reads targets from the API server.
func (r *reconciler) lookCloser(ctx context.Context, f *folded, targets []int) error {
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, i := range targets {
		k := f.target(nameOf(f.targets[i].FoldTarget))
		group.Go(func() error {
			live, err := r.live(ctx, f.targets[i].FoldTarget)
			if err == nil {
				f.targets[i].found, k.newest = live, live.version
			}
			return err
		})
	}
	return group.Wait()
}

// live reads a target from the API server.
func (r *reconciler) live(ctx context.Context, t berth.FoldTarget) (found, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kindOf(t.Kind))
	err := r.Live.Get(ctx, client.ObjectKey{Name: t.Name}, object)
	switch {
	case apierrors.IsNotFound(err):
		object = nil
	case err != nil:
		return found{}, fmt.Errorf("reading %s %s: %w", t.Kind, t.Name, err)
	}
	return foundLive(object)
}

// apply writes the status of one fold, and then its targets. What stands in the status is how a later look, perhaps of
// another process, tells Berth's numbers from others'; so without it nothing is written. The result is when to look again.
func (r *reconciler) apply(ctx context.Context, f *folded, d decision) (time.Duration, error) {
	object := f.object
	if !bound(object) {
		object = object.DeepCopy()
		object.Finalizers = append(object.Finalizers, berth.FinalizerFold)
		if err := r.Client.Update(ctx, object); err != nil {
			return retry(err, "binding CapacityFold "+object.Name)
		}
	}
	if d.write {
		changed := object.DeepCopy()
		changed.Status = d.status
		if err := r.Client.Status().Update(ctx, changed); err != nil {
			return retry(err, "writing the status of CapacityFold "+object.Name)
		}
		f.wrote = f.now
		for _, t := range d.tells {
			r.Recorder.Eventf(changed, nil, t.kind, t.reason, "Folding", "%s", t.note)
		}
		for _, l := range f.left {
			r.Recorder.Eventf(l.target, changed, corev1.EventTypeNormal, eventStays, "Folding",
				"CapacityFold %s is changed: %s stay, and do not follow it any more", changed.Name, l.number)
		}
	}
	if f.compiled.Problem == nil {
		f.wroteFlavor, f.wroteResource = f.compiled.Flavor, f.compiled.Resource
	}
	f.settled, f.known, f.looked = d.settled, d.known, f.looked || f.compiled.Problem == nil
	f.written, f.waits = &d.status, d.waits

	var group errgroup.Group
	group.SetLimit(parallel)
	var again soonest
	var failed failures
	for i, a := range d.aims {
		t := &f.targets[i]
		k := f.target(nameOf(t.FoldTarget))
		k.confirmed = -1
		if a.confirmed {
			k.confirmed, k.refused = a.want, nil
		}
		if a.write {
			group.Go(func() error {
				after, err := r.write(ctx, f, t, k, a)
				failed.add(err)
				again.in(after)
				return nil
			})
		}
	}
	_ = group.Wait() // no function of the group returns an error
	return again.after, failed.err()
}

// retry says what becomes of a failed write to a fold: who lost a race looks again.
func retry(err error, doing string) (time.Duration, error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return soon, nil
	}
	return 0, fmt.Errorf("%s: %w", doing, err)
}

// bound reports that a fold does not vanish before Berth has said that its numbers stay.
func bound(f *berth.CapacityFold) bool { return slices.Contains(f.Finalizers, berth.FinalizerFold) }
