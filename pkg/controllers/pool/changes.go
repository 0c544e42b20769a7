package pool

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
)

// changes lets updates pass that can change what this controller says. Heartbeats of nodes cannot.
type changes struct{ predicate.Funcs }

// Update is predicate.Predicate.Update.
func (changes) Update(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*corev1.Node)
	if !ok {
		return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
	}
	now := e.ObjectNew.(*corev1.Node)
	return nodes.Ready(was) != nodes.Ready(now) || was.Spec.Unschedulable != now.Spec.Unschedulable ||
		nodes.OutOfService(was) != nodes.OutOfService(now)
}
