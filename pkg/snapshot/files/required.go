package files

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// required faults what an API server would refuse and what no later step can make sense of. Everything that a driver can
// do wrong with a pool is left to the inventory: a broken pool is refused, not the files.
func (r *reader) required(object any, at string) {
	missing := func(value, field string) {
		if value == "" {
			r.fault(join(at, field), "is missing")
		}
	}
	switch o := object.(type) {
	case *resourcev1.ResourceSlice:
		missing(o.Spec.Driver, "spec.driver")
		missing(o.Spec.Pool.Name, "spec.pool.name")
		for i := range o.Spec.Devices {
			missing(o.Spec.Devices[i].Name, fmt.Sprintf("spec.devices[%d].name", i))
		}
	case *berth.AcceleratorPool:
		r.acceleratorPool(o, at)
	case *berth.CapacityFold:
		r.capacityFold(o, at)
	case *berth.GangReservation:
		missing(o.Spec.WorkloadRef.Name, "spec.workloadRef.name")
		if len(o.Spec.PodSets) == 0 {
			r.fault(join(at, "spec.podSets"), "is missing")
		}
	case *kueue.LocalQueue:
		missing(string(o.Spec.ClusterQueue), "spec.clusterQueue")
	case *kueue.AdmissionCheck:
		missing(o.Spec.ControllerName, "spec.controllerName")
	case *resourcev1.ResourceClaim:
		r.claimSpec(&o.Spec, join(at, "spec"))
	case *resourcev1.ResourceClaimTemplate:
		r.claimSpec(&o.Spec.Spec, join(at, "spec.spec"))
	case *corev1.Node:
		r.amounts(o.Status.Allocatable, join(at, "status.allocatable"))
		r.amounts(o.Status.Capacity, join(at, "status.capacity"))
	case *corev1.Pod:
		r.podSpec(&o.Spec, join(at, "spec"))
	case *batchv1.Job:
		r.jobName(o, at)
		r.podSpec(&o.Spec.Template.Spec, join(at, "spec.template.spec"))
	case *JobSet:
		for i := range o.Spec.ReplicatedJobs {
			r.podSpec(&o.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec, fmt.Sprintf("%s[%d].template.spec.template.spec", join(at, "spec.replicatedJobs"), i))
		}
	case *kueue.Workload:
		for i := range o.Spec.PodSets {
			r.podSpec(&o.Spec.PodSets[i].Template.Spec, fmt.Sprintf("%s[%d].template.spec", join(at, "spec.podSets"), i))
			if o.Spec.PodSets[i].Name == "" {
				o.Spec.PodSets[i].Name = kueue.DefaultPodSetName
			}
		}
	}
}

// warn tells what was not looked at.
func (r *reader) warn(documents int) {
	o := r.objects
	if documents == 0 {
		o.Warnings = append(o.Warnings, "the input holds no object")
	}
	if len(r.skipped) > 0 {
		var what []string
		for _, name := range slices.Sorted(maps.Keys(r.skipped)) {
			what = append(what, fmt.Sprintf("%d %s", r.skipped[name], name))
		}
		o.Warnings = append(o.Warnings, "not read: "+strings.Join(what, ", "))
	}
	if len(r.newer) > 0 {
		o.Warnings = append(o.Warnings, "not read, because this release does not know the fields: "+strings.Join(slices.Sorted(maps.Keys(r.newer)), ", "))
	}
	if len(o.ResourceSlices) > 0 && len(o.Nodes) == 0 {
		o.Warnings = append(o.Warnings, "the input holds no Node: every device stands on hosts that do not exist")
	}
	if documents > 0 && len(o.ResourceSlices) == 0 {
		o.Warnings = append(o.Warnings, "the input holds no ResourceSlice: there is no hardware to place anything on")
	}
}
