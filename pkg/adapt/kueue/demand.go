package kueue

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/util/admissioncheck"
	"sigs.k8s.io/kueue/pkg/workload"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reason"
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

// Of returns the state of our check on the Workload, or nil when none applies. Of several the one that sends the pods to a
// reservation stands for all, else the first: one gang needs one reservation.
func (c Checks) Of(wl *kueue.Workload) *kueue.AdmissionCheckState {
	ours := c.all(wl)
	for _, state := range ours {
		if NamedReservation(state) != "" {
			return state
		}
	}
	if len(ours) == 0 {
		return nil
	}
	return ours[0]
}

// Beside names our checks on the Workload other than the one that is given.
func (c Checks) Beside(wl *kueue.Workload, check kueue.AdmissionCheckReference) []kueue.AdmissionCheckReference {
	var names []kueue.AdmissionCheckReference
	for _, state := range c.all(wl) {
		if state.Name != check {
			names = append(names, state.Name)
		}
	}
	return names
}

// Several refuses a Workload to which more than one of our checks applies; nil otherwise. Kueue admits when all of them
// are Ready, and a gang has one reservation: whose it would be nobody has said.
func (c Checks) Several(wl *kueue.Workload) *reason.Refusal {
	ours := c.all(wl)
	if len(ours) < 2 {
		return nil
	}
	names := make([]string, 0, len(ours))
	for _, state := range ours {
		names = append(names, string(state.Name))
	}
	slices.Sort(names)
	last := len(names) - 1
	where := "its ClusterQueue"
	if wl.Status.Admission != nil {
		where = "ClusterQueue " + string(wl.Status.Admission.ClusterQueue)
	}
	all := "both"
	if len(names) > 2 {
		all = "all"
	}
	return &reason.Refusal{Code: reason.TooManyChecks, Message: fmt.Sprintf("checks %s and %s are %s Berth's and %s apply: leave one of them in %s",
		strings.Join(names[:last], ", "), names[last], all, all, where)}
}

func (c Checks) all(wl *kueue.Workload) []*kueue.AdmissionCheckState {
	var ours []*kueue.AdmissionCheckState
	for i := range wl.Status.AdmissionChecks {
		if _, is := c[wl.Status.AdmissionChecks[i].Name]; is {
			ours = append(ours, &wl.Status.AdmissionChecks[i])
		}
	}
	return ours
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
