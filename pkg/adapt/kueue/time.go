package kueue

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Remaining is for how long the Workload runs at the most when it is admitted now: its maximumExecutionTimeSeconds less
// what former admissions used up. Zero when it has no limit. Kueue deactivates a Workload whose time is over.
func Remaining(wl *kueue.Workload) time.Duration {
	if wl.Spec.MaximumExecutionTimeSeconds == nil {
		return 0
	}
	left := *wl.Spec.MaximumExecutionTimeSeconds - ptr.Deref(wl.Status.AccumulatedPastExecutionTimeSeconds, 0)
	return time.Duration(max(left, 1)) * time.Second
}

// Ends is when the Workload will have ended at the latest: its remaining time from its admission on, or from now on while
// it is not admitted. A Workload without a limit is taken to run for as long as assumed; zero when that is zero, too.
func Ends(wl *kueue.Workload, assumed time.Duration, now time.Time) time.Time {
	lasts := Remaining(wl)
	if lasts == 0 {
		lasts = assumed
	}
	if lasts == 0 {
		return time.Time{}
	}
	begun := now
	if c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadAdmitted); c != nil && c.Status == metav1.ConditionTrue {
		begun = c.LastTransitionTime.Time
	}
	return begun.Add(lasts)
}
