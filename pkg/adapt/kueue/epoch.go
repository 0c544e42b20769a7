package kueue

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Epoch identifies one admission of one Workload: 10 hexadecimal digits over the Workload's UID, the time at which its
// quota was reserved, the number of its evictions and the admission itself. It is empty while no quota is reserved.
//
// resourceUsage is left out: it is the one part of an admission that Kueue may restate without deciding anew.
func Epoch(wl *kueue.Workload) string {
	quota := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	if quota == nil || quota.Status != "True" || wl.Status.Admission == nil {
		return ""
	}
	type assignment struct {
		Name    kueue.PodSetReference
		Flavors any
		Count   *int32
	}
	identity := struct {
		UID          string
		ReservedAt   string
		Evictions    int32
		ClusterQueue kueue.ClusterQueueReference
		PodSets      []assignment
	}{
		UID:          string(wl.UID),
		ReservedAt:   quota.LastTransitionTime.UTC().Format(time.RFC3339),
		Evictions:    evictions(wl),
		ClusterQueue: wl.Status.Admission.ClusterQueue,
	}
	for _, psa := range wl.Status.Admission.PodSetAssignments {
		identity.PodSets = append(identity.PodSets, assignment{psa.Name, psa.Flavors, psa.Count})
	}
	// Maps are marshalled with sorted keys, so equal admissions give equal bytes; none of these types can fail.
	raw, err := json.Marshal(identity)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:5])
}

func evictions(wl *kueue.Workload) int32 {
	if wl.Status.SchedulingStats == nil {
		return 0
	}
	var n int32
	for _, e := range wl.Status.SchedulingStats.Evictions {
		n += e.Count
	}
	return n
}
