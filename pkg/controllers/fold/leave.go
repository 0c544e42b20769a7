package fold

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// stay is a number that a target holds and that follows its fold no more.
type stay struct {
	target runtime.Object
	number string
}

// stays is what a target still holds of a fold's quota; false when it holds none, or the fold never wrote any.
func stays(s *snapshot.Snapshot, f *berth.CapacityFold, was berth.FoldTargetStatus, flavor, resource string) (stay, bool) {
	wanted := berth.FoldTarget{Kind: was.Kind, Name: was.Name}
	of := folded{object: &berth.CapacityFold{}, compiled: fold.Compiled{Fold: fold.Fold{Flavor: flavor, Resource: resource}}}
	seen := of.seen(target{FoldTarget: wanted, found: cached(s, wanted)})
	if !seen.HasEntry || was.State == berth.TargetNotReady && was.Quota == 0 && f.Status.Shares == 0 {
		return stay{}, false
	}
	return stay{objectOf(s, wanted), fmt.Sprintf("%s %s of flavor %s", milli(seen.Milli), resource, flavor)}, true
}

// leave lets go of a fold that is being deleted. What it wrote stays: a quota that vanished would stop every gang. Its targets
// say so.
func (r *reconciler) leave(ctx context.Context, f *berth.CapacityFold, v *view) error {
	for _, s := range f.Status.Targets {
		if left, holds := stays(v.snapshot, f, s, f.Spec.Flavor, cmp.Or(f.Spec.Resource, adaptkueue.DefaultFoldResource)); holds {
			r.Recorder.Eventf(left.target, f, corev1.EventTypeNormal, eventStays, "Folding",
				"CapacityFold %s is deleted: %s stay, and follow nothing any more", f.Name, left.number)
		}
	}
	changed := f.DeepCopy()
	changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(name string) bool { return name == berth.FinalizerFold })
	if err := r.Client.Update(ctx, changed); err != nil {
		_, err = retry(err, "letting go of CapacityFold "+f.Name)
		return err
	}
	return nil
}

// leftBehind are the numbers that a fold wrote before its spec changed and will write no more: those of targets that it names no
// longer, and all of them when it names another flavor or resource. What it named before a restart of the controller is known
// of targets only.
func leftBehind(s *snapshot.Snapshot, f *folded) []stay {
	if f.object.Status.ObservedGeneration == f.object.Generation {
		return nil
	}
	flavor, resource := cmp.Or(f.wroteFlavor, f.compiled.Flavor), cmp.Or(f.wroteResource, f.compiled.Resource)
	same := flavor == f.compiled.Flavor && resource == f.compiled.Resource
	var out []stay
	for _, was := range f.object.Status.Targets {
		named := slices.ContainsFunc(f.targets, func(t target) bool { return t.Kind == was.Kind && t.Name == was.Name })
		if same && named {
			continue
		}
		if left, holds := stays(s, f.object, was, flavor, resource); holds {
			out = append(out, left)
		}
	}
	return out
}

// objectOf is a target that was found in the snapshot.
func objectOf(s *snapshot.Snapshot, t berth.FoldTarget) runtime.Object {
	if t.Kind == berth.FoldCohort {
		return s.Cohorts[slices.IndexFunc(s.Cohorts, func(c *kueue.Cohort) bool { return c.Name == t.Name })]
	}
	return s.ClusterQueues[slices.IndexFunc(s.ClusterQueues, func(q *kueue.ClusterQueue) bool { return q.Name == t.Name })]
}
