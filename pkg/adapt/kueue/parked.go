package kueue

import (
	"context"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"
)

// Parked reports that Kueue does not move the Workload any more although nothing keeps it back, or for how long it still is
// kept back. After an eviction by an admission check Kueue notes on the Workload that it is not queued (Requeued False), and
// notes the end of that once the back-off is over. Of a Workload with ResourceClaimTemplates Kueue 0.17 forgets the latter: the
// reconciler removes the condition from its own copy when it reads the claims, and so finds nothing to be changed. If the
// Workload does not get quota at the first try, it then waits for ever among those that are not to be tried again.
func Parked(wl *kueue.Workload, now time.Time) (parked bool, left time.Duration) {
	c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadRequeued)
	switch {
	case c == nil || c.Status != "False" || c.Reason != kueue.WorkloadEvictedByAdmissionCheck && c.Reason != kueue.WorkloadEvictedByPodsReadyTimeout:
		return false, 0
	case !wl.DeletionTimestamp.IsZero() || workload.HasQuotaReservation(wl) || workload.IsFinished(wl) || !workload.IsActive(wl):
		return false, 0
	case !slices.ContainsFunc(wl.Spec.PodSets, func(ps kueue.PodSet) bool { return len(ps.Template.Spec.ResourceClaims) > 0 }):
		return false, 0
	}
	if state := wl.Status.RequeueState; state != nil && state.RequeueAt != nil && state.RequeueAt.After(now) {
		return false, state.RequeueAt.Sub(now)
	}
	return true, 0
}

// Unpark notes the end of the back-off in Kueue's words and in its name, as Kueue itself does of other Workloads. The error is a
// Conflict when somebody wrote in between.
func Unpark(ctx context.Context, c client.Client, wl *kueue.Workload) error {
	return workload.PatchAdmissionStatus(ctx, c, wl, clock.RealClock{}, func(wl *kueue.Workload) (bool, error) {
		return workload.SetRequeuedCondition(wl, kueue.WorkloadBackoffFinished, "The workload backoff was finished", true), nil
	})
}
