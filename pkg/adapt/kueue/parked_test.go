package kueue_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
)

// TestParked: only what Kueue has let go of, and forgotten to say so.
func TestParked(t *testing.T) {
	now := kueuetest.Start
	for name, test := range map[string]struct {
		change func(kueuetest.Workload)
		parked bool
		left   time.Duration
	}{
		"sent back by a check":           {func(kueuetest.Workload) {}, true, 0},
		"sent back for pods not ready":   {func(w kueuetest.Workload) { w.Status.Conditions[0].Reason = kueue.WorkloadEvictedByPodsReadyTimeout }, true, 0},
		"preempted":                      {func(w kueuetest.Workload) { w.Status.Conditions[0].Reason = kueue.WorkloadEvictedByPreemption }, false, 0},
		"the end is noted":               {func(w kueuetest.Workload) { w.Status.Conditions[0].Status = metav1.ConditionTrue }, false, 0},
		"never evicted":                  {func(w kueuetest.Workload) { w.Status.Conditions = nil }, false, 0},
		"has quota":                      {func(w kueuetest.Workload) { w.QuotaReserved(now) }, false, 0},
		"has ended":                      {func(w kueuetest.Workload) { w.Condition(kueue.WorkloadFinished, true, now) }, false, 0},
		"is not active":                  {func(w kueuetest.Workload) { w.Spec.Active = ptr.To(false) }, false, 0},
		"is being deleted":               {func(w kueuetest.Workload) { w.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }, false, 0},
		"Kueue does not read its claims": {func(w kueuetest.Workload) { w.Spec.PodSets[0].Template.Spec.ResourceClaims = nil }, false, 0},
		"backs off": {func(w kueuetest.Workload) {
			w.Status.RequeueState = &kueue.RequeueState{RequeueAt: ptr.To(metav1.NewTime(now.Add(time.Minute)))}
		}, false, time.Minute},
		"has backed off": {func(w kueuetest.Workload) {
			w.Status.RequeueState = &kueue.RequeueState{RequeueAt: ptr.To(metav1.NewTime(now))}
		}, true, 0},
	} {
		w := kueuetest.NewWorkload(kueuetest.NewJob("a", "tpu-4x4", 4))
		w.Status.Conditions = []metav1.Condition{{
			Type: kueue.WorkloadRequeued, Status: metav1.ConditionFalse, Reason: kueue.WorkloadEvictedByAdmissionCheck,
		}}
		test.change(w)
		if parked, left := adaptkueue.Parked(w.Workload, now); parked != test.parked || left != test.left {
			t.Errorf("%s: parked %v, %v are left, want %v and %v", name, parked, left, test.parked, test.left)
		}
	}
}
