package controllers

import (
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// trimmed is what the cache keeps of the kinds of which there are most. Nobody writes to the API server what was left out:
// Berth writes to its own gangs' pods only, and of nodes nothing but their taints.
func trimmed() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}:  {Transform: trimPod(&nodes.Bare{})},
		&corev1.Node{}: {Transform: trimNode},
	}
}

func trimPod(bare *nodes.Bare) toolscache.TransformFunc {
	strip := cache.TransformStripManagedFields()
	return func(obj any) (any, error) {
		if p, ok := obj.(*corev1.Pod); ok && p.Labels[berth.LabelReservation] == "" {
			return bare.Of(p), nil
		}
		return strip(obj)
	}
}

func trimNode(obj any) (any, error) {
	if n, ok := obj.(*corev1.Node); ok {
		n.ManagedFields = nil
		n.Status.Images, n.Status.VolumesInUse, n.Status.VolumesAttached = nil, nil, nil
	}
	return obj, nil
}
