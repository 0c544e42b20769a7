package kueue

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/util/admissioncheck"
	"sigs.k8s.io/kueue/pkg/workload"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reservation"
)

// Checks is the set of AdmissionChecks that Berth serves, by name.
type Checks map[kueue.AdmissionCheckReference]*kueue.AdmissionCheck

// OurChecks picks the checks whose controller is Berth.
func OurChecks(all []*kueue.AdmissionCheck) Checks {
	ours := Checks{}
	for _, ac := range all {
		if ac.Spec.ControllerName == berth.ControllerName {
			ours[kueue.AdmissionCheckReference(ac.Name)] = ac
		}
	}
	return ours
}

// Of returns the state of our check on the Workload, or nil when none applies. When a ClusterQueue names several of our
// checks the first one stands for all: one gang needs one reservation.
func (c Checks) Of(wl *kueue.Workload) *kueue.AdmissionCheckState {
	for i := range wl.Status.AdmissionChecks {
		if _, ours := c[wl.Status.AdmissionChecks[i].Name]; ours {
			return &wl.Status.AdmissionChecks[i]
		}
	}
	return nil
}

// Wants reports whether Kueue waits for our answer or counts on it: quota reserved, not on its way out, check applies.
func Wants(wl *kueue.Workload, check *kueue.AdmissionCheckState) bool {
	return check != nil && wl.DeletionTimestamp.IsZero() && workload.HasQuotaReservation(wl) &&
		!workload.IsEvicted(wl) && !workload.IsFinished(wl) && workload.IsActive(wl)
}

// NamedReservation is the reservation that the check's podSetUpdates send the pods to; empty when there is none.
func NamedReservation(check *kueue.AdmissionCheckState) string {
	if check == nil {
		return ""
	}
	for _, u := range check.PodSetUpdates {
		if name := u.Labels[berth.LabelReservation]; name != "" {
			return name
		}
	}
	return ""
}

// DemandFor is what Kueue wants of one reservation. wl is nil when the Workload is gone.
func DemandFor(res *berth.GangReservation, wl *kueue.Workload) reservation.Demand {
	if wl == nil || wl.UID != res.Spec.WorkloadRef.UID {
		return reservation.Demand{Gone: true}
	}
	name := kueue.AdmissionCheckReference(res.Spec.Check)
	check := admissioncheck.FindAdmissionCheck(wl.Status.AdmissionChecks, name)
	owner := metav1.GetControllerOf(wl)
	d := reservation.Demand{
		Deleting: !wl.DeletionTimestamp.IsZero(),
		Orphaned: owner == nil || owner.UID != res.Spec.Owner.UID,
		Finished: workload.IsFinished(wl),
		Evicted:  workload.IsEvicted(wl),
		Quota:    workload.HasQuotaReservation(wl),
		Admitted: workload.IsAdmitted(wl),
		Active:   workload.IsActive(wl),
		Current:  serves(wl, check, res.Spec.Epoch),
	}
	if check != nil {
		d.Check = reservation.CheckState(check.State)
		d.Named = NamedReservation(check) == res.Name
	}
	return d
}
