package watch

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
)

// Health lets an update of a Node pass when its health changed: Ready, cordoned or out of service. Heartbeats, most of a
// cluster's updates, do not. Updates of other kinds pass when they are no mere resync.
func Health() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, isNode := e.ObjectOld.(*corev1.Node)
		if !isNode {
			return Changed(e.ObjectOld, e.ObjectNew)
		}
		now := e.ObjectNew.(*corev1.Node)
		return nodes.Ready(was) != nodes.Ready(now) || was.Spec.Unschedulable != now.Spec.Unschedulable ||
			nodes.OutOfService(was) != nodes.OutOfService(now)
	}}
}

// Changed tells an update from a resync.
func Changed(was, now client.Object) bool {
	return was.GetResourceVersion() != now.GetResourceVersion()
}
