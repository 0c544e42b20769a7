package fold

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers/watch"
)

// relevant lets pass what can change a number or who holds one. Kueue counts in the status of its queues whatever happens,
// claims are written for every pod that is seated, and nodes are alive: none of that is.
type relevant struct{ predicate.Funcs }

// Create is predicate.Predicate.Create. A Workload is charged nothing until it is admitted.
func (relevant) Create(e event.TypedCreateEvent[client.Object]) bool {
	wl, is := e.Object.(*kueue.Workload)
	return !is || wl.Status.Admission != nil
}

// Update is predicate.Predicate.Update.
func (relevant) Update(e event.TypedUpdateEvent[client.Object]) bool {
	switch now := e.ObjectNew.(type) {
	case *corev1.Node:
		was, ok := e.ObjectOld.(*corev1.Node)
		return !ok || nodeChanged(was, now)
	case *kueue.Workload:
		was, ok := e.ObjectOld.(*kueue.Workload)
		return !ok || chargeChanged(was, now)
	case *berth.GangReservation:
		was, ok := e.ObjectOld.(*berth.GangReservation)
		return !ok || was.Status.Phase != now.Status.Phase || !equality.Semantic.DeepEqual(was.Status.Quarantine, now.Status.Quarantine)
	case *resourcev1.ResourceClaim:
		was, ok := e.ObjectOld.(*resourcev1.ResourceClaim)
		return !ok || (was.Status.Allocation == nil) != (now.Status.Allocation == nil) || !maps.Equal(was.Annotations, now.Annotations)
	case *berth.CapacityFold, *berth.AcceleratorPool, *kueue.ClusterQueue, *kueue.Cohort, *kueue.ResourceFlavor:
		return specChanged(e.ObjectOld, e.ObjectNew)
	default:
		return watch.Changed(e.ObjectOld, e.ObjectNew)
	}
}

func nodeChanged(was, now *corev1.Node) bool {
	return nodes.Ready(was) != nodes.Ready(now) || was.Spec.Unschedulable != now.Spec.Unschedulable ||
		(was.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
		!maps.Equal(was.Labels, now.Labels) || !equality.Semantic.DeepEqual(was.Spec.Taints, now.Spec.Taints)
}

// chargeChanged: what Kueue charges, and whether it means the gang to run.
func chargeChanged(was, now *kueue.Workload) bool {
	for _, kind := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadEvicted, kueue.WorkloadFinished} {
		if apimeta.IsStatusConditionTrue(was.Status.Conditions, kind) != apimeta.IsStatusConditionTrue(now.Status.Conditions, kind) {
			return true
		}
	}
	return !equality.Semantic.DeepEqual(was.Status.Admission, now.Status.Admission) ||
		!equality.Semantic.DeepEqual(was.Status.ReclaimablePods, now.Status.ReclaimablePods)
}

func specChanged(was, now client.Object) bool {
	return was.GetUID() != now.GetUID() || was.GetGeneration() != now.GetGeneration() ||
		!maps.Equal(was.GetAnnotations(), now.GetAnnotations()) || !maps.Equal(was.GetLabels(), now.GetLabels()) ||
		!slices.Equal(was.GetFinalizers(), now.GetFinalizers()) ||
		(was.GetDeletionTimestamp() == nil) != (now.GetDeletionTimestamp() == nil)
}
