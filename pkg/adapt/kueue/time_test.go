package kueue

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func TestRemainingAndEnds(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, row := range []struct {
		name        string
		limit, used *int32
		admitted    int64 // second; 0 for not admitted
		assumed     time.Duration
		remaining   time.Duration
		ends        int64 // second; 0 for unknown
	}{
		{name: "no limit", admitted: 900},
		{name: "a limit counts from the admission", limit: ptr.To[int32](600), admitted: 900, remaining: 10 * time.Minute, ends: 1500},
		{name: "and from now before it", limit: ptr.To[int32](600), remaining: 10 * time.Minute, ends: 1600},
		{name: "what was used up is gone", limit: ptr.To[int32](600), used: ptr.To[int32](500), admitted: 900, remaining: 100 * time.Second, ends: 1000},
		{name: "a second is left at least", limit: ptr.To[int32](600), used: ptr.To[int32](700), admitted: 900, remaining: time.Second, ends: 901},
		{name: "assumed", assumed: time.Minute, admitted: 900, ends: 960},
		{name: "a limit is more than an assumption", limit: ptr.To[int32](600), assumed: time.Minute, admitted: 900, remaining: 10 * time.Minute, ends: 1500},
	} {
		t.Run(row.name, func(t *testing.T) {
			wl := &kueue.Workload{}
			wl.Spec.MaximumExecutionTimeSeconds, wl.Status.AccumulatedPastExecutionTimeSeconds = row.limit, row.used
			status := metav1.ConditionFalse
			if row.admitted > 0 {
				status = metav1.ConditionTrue
			}
			wl.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadAdmitted, Status: status, LastTransitionTime: metav1.Unix(row.admitted, 0)}}
			if got := Remaining(wl); got != row.remaining {
				t.Errorf("it runs for %v, want %v", got, row.remaining)
			}
			want := time.Time{}
			if row.ends > 0 {
				want = time.Unix(row.ends, 0)
			}
			if got := Ends(wl, row.assumed, now); !got.Equal(want) {
				t.Errorf("it ends %v, want %v", got, want)
			}
		})
	}
}
