package fold

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/fold"
)

// leave lets go of a fold that is being deleted. What it wrote stays: a quota that vanished would stop every gang. Its targets
// say so.
func (r *reconciler) leave(ctx context.Context, f *berth.CapacityFold, v *view) error {
	of := folded{object: f, compiled: fold.Compiled{Fold: fold.Fold{
		Flavor: f.Spec.Flavor, Resource: cmp.Or(f.Spec.Resource, adaptkueue.DefaultFoldResource),
	}}}
	for _, s := range f.Status.Targets {
		wanted := berth.FoldTarget{Kind: s.Kind, Name: s.Name}
		t := target{FoldTarget: wanted, found: cached(v.snapshot, wanted)}
		seen := of.seen(t)
		if !seen.HasEntry || s.State == berth.TargetNotReady && s.Quota == 0 {
			continue
		}
		r.Recorder.Eventf(objectOf(v, wanted), f, corev1.EventTypeNormal, eventStays, "Folding",
			"CapacityFold %s is deleted: %s %s of flavor %s stay, and follow nothing any more", f.Name, milli(seen.Milli), of.compiled.Resource, of.compiled.Flavor)
	}
	changed := f.DeepCopy()
	changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(name string) bool { return name == berth.FinalizerFold })
	if err := r.Client.Update(ctx, changed); err != nil {
		_, err = retry(err, "letting go of CapacityFold "+f.Name)
		return err
	}
	return nil
}

// objectOf is a target that was found in the snapshot.
func objectOf(v *view, t berth.FoldTarget) runtime.Object {
	if t.Kind == berth.FoldCohort {
		return v.snapshot.Cohorts[slices.IndexFunc(v.snapshot.Cohorts, func(c *kueue.Cohort) bool { return c.Name == t.Name })]
	}
	return v.snapshot.ClusterQueues[slices.IndexFunc(v.snapshot.ClusterQueues, func(q *kueue.ClusterQueue) bool { return q.Name == t.Name })]
}
