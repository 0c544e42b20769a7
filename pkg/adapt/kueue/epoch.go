package kueue

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/util/admissioncheck"
)

// Epoch identifies one admission of one Workload in 10 hexadecimal digits: eight over the Workload's UID, the time at
// which its quota was reserved, the number of its evictions and the admission itself, and two that count (modulo 256) how
// often the check began anew. It is empty while no quota is reserved.
//
// The time counts seconds, and quota that is unset without an eviction (ClusterQueue on hold) can be back within one; then
// the check's count tells the two apart, see Answer. resourceUsage is left out: it is the one part of an admission that
// Kueue may restate without deciding anew.
func Epoch(wl *kueue.Workload, check kueue.AdmissionCheckReference) string {
	return epoch(admission(wl), wl, check)
}

func epoch(admission string, wl *kueue.Workload, check kueue.AdmissionCheckReference) string {
	if admission == "" {
		return ""
	}
	return fmt.Sprintf("%s%02x", admission, uint8(retries(wl, check)))
}

// serves reports whether a reservation of the epoch is for the admission that stands. Kueue takes a check off the Workload
// when it leaves the ClusterQueue and puts it on again without its count, and neither is another admission.
func serves(wl *kueue.Workload, check *kueue.AdmissionCheckState, epoch string) bool {
	if check != nil && check.RetryCount != nil {
		return epoch != "" && Epoch(wl, check.Name) == epoch
	}
	admission := admission(wl)
	return admission != "" && len(epoch) > len(admission) && epoch[:len(admission)] == admission
}

// admission is the part of an epoch that the check has no part in; empty while no quota is reserved.
func admission(wl *kueue.Workload) string {
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
	return hex.EncodeToString(sum[:4])
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

func retries(wl *kueue.Workload, check kueue.AdmissionCheckReference) int32 {
	state := admissioncheck.FindAdmissionCheck(wl.Status.AdmissionChecks, check)
	if state == nil {
		return 0
	}
	return ptr.Deref(state.RetryCount, 0)
}
