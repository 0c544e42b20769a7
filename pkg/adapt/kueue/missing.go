package kueue

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reason"
)

// PoolMissing is why a Workload is kept back that asks for nothing managed but has waited for managed devices: their
// AcceleratorPool was deleted, perhaps to be replaced in a second, and a whole line of gangs would start unguarded. It is
// nil for every other Workload. What a Workload waited for is known from its condition alone.
func PoolMissing(wl *kueue.Workload, in Lookup) *reason.Refusal {
	said := apimeta.FindStatusCondition(wl.Status.Conditions, berth.ConditionGangReserved)
	if said == nil || !provesManaged(said.Reason) {
		return nil
	}
	return &reason.Refusal{Code: reason.PoolMissing, Message: fmt.Sprintf(
		"the gang waited for %s, which no AcceleratorPool matches any more: create the AcceleratorPool again; "+
			"to run the gang without Berth submit it again or take the check off its ClusterQueue", strings.Join(classes(wl, in), ", "))}
}

// provesManaged reports whether a reason of GangReserved is given only to gangs that ask for managed devices. A template
// that does not exist, or a class without devices, may turn out to be none of Berth's business, and of two checks in one
// ClusterQueue every Workload is told.
func provesManaged(why string) bool {
	switch why {
	case string(reason.ClaimMissing), string(reason.ShapeUnknown), string(reason.TooManyChecks), ReasonIgnored:
		return false
	default:
		return true
	}
}

// classes are the DeviceClasses that the pods of a Workload ask for, each once and in order.
func classes(wl *kueue.Workload, in Lookup) []string {
	var names []string
	for _, ps := range wl.Spec.PodSets {
		for _, entry := range ps.Template.Spec.ResourceClaims {
			spec, refusal := claimSpec(wl.Namespace, entry, in)
			if refusal != nil {
				continue
			}
			names = append(names, classesIn(&spec)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// classesIn are the DeviceClasses that a claim names.
func classesIn(spec *resourcev1.ResourceClaimSpec) []string {
	var names []string
	for _, r := range spec.Devices.Requests {
		if r.Exactly != nil {
			names = append(names, r.Exactly.DeviceClassName)
		}
		for _, sub := range r.FirstAvailable {
			names = append(names, sub.DeviceClassName)
		}
	}
	return names
}
