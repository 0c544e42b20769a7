package line

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// What was sent back and has no quota is queued when its back-off is over, once; a Workload without Berth's check never.
func TestParkedWorkloadsAreQueued(t *testing.T) {
	s := newSite()
	w := s.waits("a")
	w.Status.Admission = nil
	w.Status.Conditions = []metav1.Condition{
		{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue, Reason: kueue.WorkloadEvictedByAdmissionCheck},
		{Type: kueue.WorkloadRequeued, Status: metav1.ConditionFalse, Reason: kueue.WorkloadEvictedByAdmissionCheck},
	}
	w.Status.RequeueState = &kueue.RequeueState{RequeueAt: ptr.To(metav1.NewTime(now.Add(time.Second)))}
	s.passes(t, "again in 1s")
	w.Status.RequeueState = nil
	s.passes(t, "a is queued")
	w.Status.Conditions[1].Status = metav1.ConditionTrue
	s.passes(t, "")
	w.Status.Conditions[1].Status, w.Status.AdmissionChecks = metav1.ConditionFalse, nil
	s.passes(t, "")
}
