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

// stays is what a target, as it was found, still holds of a fold's quota; false when it holds none, or the fold never wrote
// any.
func stays(now found, f *berth.CapacityFold, was berth.FoldTargetStatus, flavor, resource string) (number string, holds bool) {
	of := folded{object: &berth.CapacityFold{}, compiled: fold.Compiled{Fold: fold.Fold{Flavor: flavor, Resource: resource}}}
	seen := of.seen(target{FoldTarget: targetOf(was), found: now})
	if !seen.HasEntry || was.State == berth.TargetNotReady && was.Quota == 0 && f.Status.Shares == 0 {
		return "", false
	}
	return fmt.Sprintf("%s %s of flavor %s", milli(seen.Milli), resource, flavor), true
}

// leave lets go of a fold that is being deleted. What it wrote stays: a quota that vanished would stop every gang. Its targets
// say so, and that once: so it is read from the API server, because a cache may be behind Berth's own last write.
func (r *reconciler) leave(ctx context.Context, f *berth.CapacityFold) error {
	for _, was := range f.Status.Targets {
		now, err := r.live(ctx, targetOf(was))
		if err != nil {
			return err
		}
		if number, holds := stays(now, f, was, f.Spec.Flavor, cmp.Or(f.Spec.Resource, adaptkueue.DefaultFoldResource)); holds {
			r.Recorder.Eventf(now.object, f, corev1.EventTypeNormal, eventStays, "Folding",
				"CapacityFold %s is deleted: %s stay, and follow nothing any more", f.Name, number)
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
		wanted := targetOf(was)
		if number, holds := stays(cached(s, wanted), f.object, was, flavor, resource); holds {
			out = append(out, stay{objectOf(s, wanted), number})
		}
	}
	return out
}

func targetOf(was berth.FoldTargetStatus) berth.FoldTarget {
	return berth.FoldTarget{Kind: was.Kind, Name: was.Name}
}

// objectOf is a target that was found in the snapshot.
func objectOf(s *snapshot.Snapshot, t berth.FoldTarget) runtime.Object {
	if t.Kind == berth.FoldCohort {
		return s.Cohorts[slices.IndexFunc(s.Cohorts, func(c *kueue.Cohort) bool { return c.Name == t.Name })]
	}
	return s.ClusterQueues[slices.IndexFunc(s.ClusterQueues, func(q *kueue.ClusterQueue) bool { return q.Name == t.Name })]
}
