package line

import (
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers/watch"
)

// relevant lets updates pass that can change a decision. Heartbeats of nodes and progress inside of pods are most of a
// cluster's updates and change none.
type relevant struct{ predicate.Funcs }

// Update is predicate.Predicate.Update.
func (relevant) Update(e event.TypedUpdateEvent[client.Object]) bool {
	switch now := e.ObjectNew.(type) {
	case *corev1.Node:
		was, ok := e.ObjectOld.(*corev1.Node)
		return !ok || nodeChanged(was, now)
	case *corev1.Pod:
		was, ok := e.ObjectOld.(*corev1.Pod)
		return !ok || podChanged(was, now)
	case *berth.CapacityFold: // Its status follows the hardware, and so does the line.
		return e.ObjectOld.GetGeneration() != now.Generation || (e.ObjectOld.GetDeletionTimestamp() == nil) != (now.DeletionTimestamp == nil)
	default:
		return watch.Changed(e.ObjectOld, e.ObjectNew)
	}
}

func nodeChanged(was, now *corev1.Node) bool {
	return nodes.Ready(was) != nodes.Ready(now) || was.Spec.Unschedulable != now.Spec.Unschedulable ||
		!reflect.DeepEqual(was.Labels, now.Labels) ||
		!equality.Semantic.DeepEqual(was.Spec.Taints, now.Spec.Taints) ||
		!equality.Semantic.DeepEqual(was.Status.Allocatable, now.Status.Allocatable)
}

// podChanged: where it stands, whether it still takes room and how much, and, of a gang's, whether the scheduler failed to bind
// it.
func podChanged(was, now *corev1.Pod) bool {
	return was.Spec.NodeName != now.Spec.NodeName || was.Status.Phase != now.Status.Phase ||
		(was.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
		now.Labels[berth.LabelReservation] != "" && failure(was) != failure(now) || !maps.Equal(nodes.Used(was), nodes.Used(now))
}

// failure is why the scheduler tried the pod in vain: Unschedulable when it found no place, SchedulerError when it found one
// and could not bind the pod to it. Empty when it did not try, or succeeded.
func failure(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
			(c.Reason == corev1.PodReasonUnschedulable || c.Reason == corev1.PodReasonSchedulerError) {
			return c.Reason
		}
	}
	return ""
}
