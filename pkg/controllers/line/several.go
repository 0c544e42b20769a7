package line

import (
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reason"
)

// several answers a Workload to which more than one of our checks applies: all of them say so and none is Ready, so that
// no slice is held for a gang that Kueue could not admit. It reports whether the Workload is done with.
//
// A gang that runs is left alone. Kueue does not take an admission back for a check that came later, and neither does
// Berth.
func (v *view) several(wl *kueue.Workload, check *kueue.AdmissionCheckState, s *steps) bool {
	why := v.unclear(wl)
	if why == nil || !adaptkueue.Wants(wl, check) {
		return false
	}
	s.waiting[string(why.Code)]++
	answer := adaptkueue.Refused(check.Name, kueue.CheckStatePending, why)
	answer.ForAll = true
	for i := range wl.Status.AdmissionChecks {
		state := &wl.Status.AdmissionChecks[i]
		if _, ours := v.checks[state.Name]; ours && (state.State == kueue.CheckStateRetry || state.State == kueue.CheckStateRejected) {
			return true // Kueue is about to evict, and sets all checks back
		}
	}
	v.answer(wl, answer, s)
	return true
}

// unclear is why a Workload that is not admitted can have no reservation, however it looks; nil for most.
func (v *view) unclear(wl *kueue.Workload) *reason.Refusal {
	if workload.IsAdmitted(wl) {
		return nil
	}
	return v.checks.Several(wl)
}

// unclearFor is unclear for the Workload that a reservation serves.
func (v *view) unclearFor(res *berth.GangReservation, byUID map[types.UID]*kueue.Workload) *reason.Refusal {
	if wl := byUID[res.Spec.WorkloadRef.UID]; wl != nil {
		return v.unclear(wl)
	}
	return nil
}
