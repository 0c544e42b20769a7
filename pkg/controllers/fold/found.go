package fold

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// found is what was found of a Cohort or ClusterQueue.
type found struct {
	exists bool
	version
	labels, annotations map[string]string
	groups              []kueue.ResourceGroup
	// stale is true when the cache may be behind what Berth wrote.
	stale bool
	// live is true when it comes from the API server; object is then all of it, nil when there is none.
	live   bool
	object *unstructured.Unstructured
}

func kindOf(kind berth.FoldTargetKind) schema.GroupVersionKind {
	return kueue.GroupVersion.WithKind(string(kind))
}

// cached finds a target in a snapshot.
func cached(s *snapshot.Snapshot, t berth.FoldTarget) found {
	switch t.Kind {
	case berth.FoldCohort:
		if i := slices.IndexFunc(s.Cohorts, func(c *kueue.Cohort) bool { return c.Name == t.Name }); i >= 0 {
			return foundIn(s.Cohorts[i], s.Cohorts[i].Spec.ResourceGroups)
		}
	case berth.FoldClusterQueue:
		if i := slices.IndexFunc(s.ClusterQueues, func(q *kueue.ClusterQueue) bool { return q.Name == t.Name }); i >= 0 {
			return foundIn(s.ClusterQueues[i], s.ClusterQueues[i].Spec.ResourceGroups)
		}
	}
	return found{}
}

func foundIn(object metav1.Object, groups []kueue.ResourceGroup) found {
	return found{
		exists: true, version: version{object.GetUID(), object.GetGeneration()},
		labels: object.GetLabels(), annotations: object.GetAnnotations(), groups: groups,
	}
}

// foundLive reads a Cohort or ClusterQueue as it came from the API server; nil for none. The quota is where it is in both.
func foundLive(object *unstructured.Unstructured) (found, error) {
	if object == nil {
		return found{live: true}, nil
	}
	var read struct {
		Spec struct {
			ResourceGroups []kueue.ResourceGroup `json:"resourceGroups"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
		return found{}, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	f := foundIn(object, read.Spec.ResourceGroups)
	f.live, f.object = true, object
	return f, nil
}

// seen is what the core needs to know of a target.
func (f *folded) seen(t target) fold.Seen {
	s := fold.Seen{
		Exists: t.exists, LendingLimit: -1,
		// A Cohort that is not there is Berth's to make.
		Owned: t.Kind == berth.FoldCohort && (!t.exists || t.labels[berth.LabelFold] != ""),
	}
	own, theirs := f.object.Annotations[berth.AnnotationFoldPaused], t.annotations[berth.AnnotationFoldPaused]
	if own != "" || theirs != "" {
		s.Paused = own + "|" + theirs
	}
	s.Stops = pauses(own) || pauses(theirs)
	if q := adaptkueue.QuotaIn(t.groups, f.compiled.Flavor, f.compiled.Resource); q != nil {
		s.HasEntry, s.Milli = true, q.NominalQuota.MilliValue()
		// Kueue lets a Cohort lend more than it has.
		if t.Kind == berth.FoldClusterQueue && q.LendingLimit != nil {
			s.LendingLimit = q.LendingLimit.MilliValue()
		}
	}
	return s
}

func pauses(annotation string) bool { return annotation != "" && annotation != "false" }
