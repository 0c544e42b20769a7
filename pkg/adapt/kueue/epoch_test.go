package kueue

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func admittedAt(second int64) *kueue.Workload {
	wl := &kueue.Workload{}
	wl.UID = "uid"
	wl.Status.Conditions = []metav1.Condition{{
		Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Unix(second, 0),
	}}
	wl.Status.Admission = &kueue.Admission{ClusterQueue: "queue", PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: ptr.To[int32](4)}}}
	wl.Status.AdmissionChecks = []kueue.AdmissionCheckState{
		{Name: "berth", State: kueue.CheckStateReady}, {Name: "other", State: kueue.CheckStatePending},
	}
	return wl
}

// Whatever makes an admission another one makes another epoch; what Kueue may write while it lasts does not.
func TestEpoch(t *testing.T) {
	epoch := Epoch(admittedAt(1), "berth")
	if len(epoch) != 10 {
		t.Fatalf("epoch %q", epoch)
	}
	for _, tc := range []struct {
		name   string
		change func(*kueue.Workload)
		same   bool
	}{
		{"another Workload", func(wl *kueue.Workload) { wl.UID = "other" }, false},
		{"quota reserved later", func(wl *kueue.Workload) { wl.Status.Conditions[0].LastTransitionTime = metav1.Unix(2, 0) }, false},
		{"evicted once more", func(wl *kueue.Workload) {
			wl.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Count: 1}}}
		}, false},
		{"another queue", func(wl *kueue.Workload) { wl.Status.Admission.ClusterQueue = "other" }, false},
		{"another count", func(wl *kueue.Workload) { wl.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](3) }, false},
		{"the check tried again", func(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].RetryCount = ptr.To[int32](1) }, false},
		{"another check tried again", func(wl *kueue.Workload) { wl.Status.AdmissionChecks[1].RetryCount = ptr.To[int32](1) }, true},
		{"the check pending", func(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].State = kueue.CheckStatePending }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wl := admittedAt(1)
			tc.change(wl)
			if same := Epoch(wl, "berth") == epoch; same != tc.same {
				t.Errorf("the epoch is the same: %v", same)
			}
		})
	}
	unreserved := admittedAt(1)
	unreserved.Status.Conditions[0].Status = metav1.ConditionFalse
	if got := Epoch(unreserved, "berth"); got != "" {
		t.Errorf("without quota: %q", got)
	}
}

// Quota can be unset and reserved again within the second that times on a Workload count. Taking Ready back counts.
func TestTakenBackReadyEndsTheEpoch(t *testing.T) {
	wl := admittedAt(1)
	before := Epoch(wl, "berth")
	state := func(a Answer) *kueue.AdmissionCheckState {
		a.Check = "berth"
		state := a.checkState(wl, a.Check, time.Unix(1, 0))
		return &state
	}
	if again := state(Answer{State: kueue.CheckStateReady, Message: "other words"}); again.RetryCount != nil {
		t.Errorf("Ready again counts: %d", *again.RetryCount)
	}
	back := state(Answer{State: kueue.CheckStatePending})
	if ptr.Deref(back.RetryCount, 0) != 1 {
		t.Fatalf("taken back, the count is %v", back.RetryCount)
	}
	wl.Status.AdmissionChecks[0] = *back
	if Epoch(wl, "berth") == before {
		t.Error("the epoch is the same as before")
	}
	if pending := state(Answer{State: kueue.CheckStatePending, Message: "other words"}); *pending.RetryCount != 1 {
		t.Errorf("Pending again counts: %d", *pending.RetryCount)
	}
}
