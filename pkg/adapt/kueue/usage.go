package kueue

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

// Quota is one resource of one flavor: what a nominalQuota is of.
type Quota struct{ Flavor, Resource string }

// Usage is what Kueue charges to a Workload now, in whole units. Pods that have succeeded are charged for no more, and an
// eviction charges until the quota is gone. Nil without quota.
func Usage(wl *kueue.Workload) map[Quota]int64 {
	if wl.Status.Admission == nil || !workload.HasQuotaReservation(wl) || workload.IsFinished(wl) {
		return nil
	}
	usage := map[Quota]int64{}
	for of, n := range workload.NewInfo(charged(wl)).FlavorResourceUsage() {
		if of.Resource == corev1.ResourceCPU {
			n = (n + 999) / 1000 // Kueue counts it in thousandths.
		}
		usage[Quota{string(of.Flavor), string(of.Resource)}] += n
	}
	return usage
}

// charged is the Workload without what Kueue's arithmetic cannot bear, and what does not change the charge: more pods given
// back than there are would be divided by zero, and where pods stand is of no interest here.
func charged(wl *kueue.Workload) *kueue.Workload {
	out := &kueue.Workload{Spec: kueue.WorkloadSpec{PodSets: wl.Spec.PodSets}}
	out.Status.Admission = &kueue.Admission{
		ClusterQueue: wl.Status.Admission.ClusterQueue, PodSetAssignments: slices.Clone(wl.Status.Admission.PodSetAssignments),
	}
	for i := range out.Status.Admission.PodSetAssignments {
		out.Status.Admission.PodSetAssignments[i].TopologyAssignment = nil
	}
	for _, back := range wl.Status.ReclaimablePods {
		at := slices.IndexFunc(wl.Spec.PodSets, func(ps kueue.PodSet) bool { return ps.Name == back.Name })
		if at >= 0 {
			back.Count = min(max(back.Count, 0), max(wl.Spec.PodSets[at].Count, 0))
			out.Status.ReclaimablePods = append(out.Status.ReclaimablePods, back)
		}
	}
	return out
}

// Running reports whether Kueue means the Workload to run: it has quota, and is neither on its way out nor done.
func Running(wl *kueue.Workload) bool {
	return workload.HasQuotaReservation(wl) && !workload.IsEvicted(wl) && !workload.IsFinished(wl)
}

// QuotaIn is the quota of one resource of one flavor; nil when there is none.
func QuotaIn(groups []kueue.ResourceGroup, flavor, resource string) *kueue.ResourceQuota {
	for g := range groups {
		for f := range groups[g].Flavors {
			if groups[g].Flavors[f].Name != kueue.ResourceFlavorReference(flavor) {
				continue
			}
			for q := range groups[g].Flavors[f].Resources {
				if groups[g].Flavors[f].Resources[q].Name == corev1.ResourceName(resource) {
					return &groups[g].Flavors[f].Resources[q]
				}
			}
		}
	}
	return nil
}
