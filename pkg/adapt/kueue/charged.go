package kueue

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/reason"
)

// NotCharged is why a gang is not served that Kueue admitted without charging its shares; nil when it is charged, or when its
// ClusterQueue charges for no shares at all. Kueue 0.17 can lose the charge for claims when it queues a Workload again after a
// back-off; then the same hardware is promised to another gang as well.
//
// What should be charged is known from the CapacityFolds: one of a fold's resource for each device of its classes that a pod
// asks for.
func NotCharged(wl *kueue.Workload, g gang.Gang, in Lookup) *reason.Refusal {
	if wl.Status.Admission == nil || in.ClusterQueue == nil {
		return nil
	}
	queue := in.ClusterQueue(string(wl.Status.Admission.ClusterQueue))
	if queue == nil {
		return nil
	}
	for _, set := range g.PodSets {
		assigned := assignment(wl, kueue.PodSetReference(set.Name))
		if assigned == nil || assigned.Count == nil {
			continue
		}
		for i := range in.Folds {
			f := &in.Folds[i]
			class, devices := asks(set, f)
			if f.Problem != nil || devices == 0 || !covers(queue, f.Resource) {
				continue
			}
			due := devices * int64(*assigned.Count)
			usage := assigned.ResourceUsage[corev1.ResourceName(f.Resource)]
			if charged := usage.Value(); charged < due {
				return &reason.Refusal{Code: reason.NotCharged, Message: fmt.Sprintf(
					"Kueue charges pod set %s %d of %d %s and is asked again; if that does not help, its deviceClassMappings do not give DeviceClass %s that resource",
					set.Name, charged, due, f.Resource, class)}
			}
		}
	}
	return nil
}

// asks counts the devices of the fold's classes that one pod of the set asks for, and names the first class. The resource
// pods counts pods, whatever they ask for.
func asks(set gang.PodSet, f *fold.Compiled) (class string, devices int64) {
	for _, c := range set.Claims {
		for _, r := range c.Requests {
			if slices.Contains(f.Classes, r.Class) {
				if class == "" {
					class = r.Class
				}
				devices += int64(r.Count)
			}
		}
	}
	if f.Resource == string(corev1.ResourcePods) {
		devices = min(devices, 1)
	}
	return class, devices
}

func covers(queue *kueue.ClusterQueue, resource string) bool {
	return slices.ContainsFunc(queue.Spec.ResourceGroups, func(g kueue.ResourceGroup) bool {
		return slices.Contains(g.CoveredResources, corev1.ResourceName(resource))
	})
}
