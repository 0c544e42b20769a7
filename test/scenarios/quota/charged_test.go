package quota

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/util/admissioncheck"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// TestNotChargedIsSentBack: Kueue 0.17 queues a Workload a second time when its back-off is over, without what it charges for
// claims. One that was not admitted in between, here because another gang has its quota, is admitted for nothing. Berth sends
// it back, and it comes again with its charge.
func TestNotChargedIsSentBack(t *testing.T) {
	s, _ := play(t)
	f := newFold("charged", scene.Flavor, berth.FoldPhysical, "tpu-4x4")
	f.Spec.Targets[0].Max = ptr.To[int32](4)
	s.fold(f)
	other := kueue.AdmissionCheckReference("other-" + s.Namespace)
	s.make(&kueue.AdmissionCheck{ObjectMeta: named(string(other)), Spec: kueue.AdmissionCheckSpec{ControllerName: "test/other"}})
	s.Eventually("activating the other check", func(ctx context.Context) error {
		ac := &kueue.AdmissionCheck{ObjectMeta: named(string(other))}
		if err := s.Client.Get(ctx, keyOf(ac), ac); err != nil {
			return err
		}
		apimeta.SetStatusCondition(&ac.Status.Conditions, metav1.Condition{Type: kueue.AdmissionCheckActive, Status: "True", Reason: "Test"})
		return s.Client.Status().Update(ctx, ac)
	})
	queue := s.queue("charged", f.Name, "0", func(cq *kueue.ClusterQueue) {
		cq.Spec.AdmissionChecksStrategy.AdmissionChecks = append(cq.Spec.AdmissionChecksStrategy.AdmissionChecks, kueue.AdmissionCheckStrategyRule{Name: other})
	}, scene.Flavor)
	s.awaitQuota(f, 4)
	st := s.told()
	job := s.Submit(through(queue.Name, "gang"))
	s.quotaReserved(job)
	rival := s.Submit(through(queue.Name, "rival"))
	s.awaitInsufficient(rival)
	s.answers(job, other, kueue.CheckStateRetry, ptr.To[int32](1))
	s.answers(rival, other, kueue.CheckStateReady, nil)
	s.AwaitSeated(rival)
	s.Eventually("what is said of the charge", func(context.Context) error {
		return st.said("GangReserved False NotCharged: Kueue charges pod set main 0 of 4 berth.dev/shares and is asked again; …")
	})
	s.awaitInsufficient(job)
	s.Finish(rival)
	s.answers(job, other, kueue.CheckStateReady, nil)
	s.AwaitSeated(job)
	s.charged(job, shares, 4)
	s.Finish(job)
	s.AwaitNoTrace()
}

// quotaReserved waits until Kueue has reserved quota for a Job.
func (s *stage) quotaReserved(job *batchv1.Job) {
	s.Helper()
	s.Eventually("quota of "+job.Name, func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, job)
		if err == nil && !apimeta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadQuotaReserved) {
			err = fmt.Errorf("it has none: %v", wl.Status.Conditions)
		}
		return err
	})
}

// answers has the other check's controller answer the next admission of a Job.
func (s *stage) answers(job *batchv1.Job, check kueue.AdmissionCheckReference, state kueue.CheckState, after *int32) {
	s.Helper()
	s.Eventually(fmt.Sprintf("answering %s for %s", state, job.Name), func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, job)
		if err != nil {
			return err
		}
		of := admissioncheck.FindAdmissionCheck(wl.Status.AdmissionChecks, check)
		if of == nil || of.State != kueue.CheckStatePending || !apimeta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadQuotaReserved) ||
			apimeta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadEvicted) {
			return fmt.Errorf("Kueue does not ask: %+v %v", of, wl.Status.Conditions)
		}
		if state == kueue.CheckStateReady && wl.Status.Admission != nil {
			// The answer is for an admission that is charged; one that is not is about to be taken back.
			if usage := wl.Status.Admission.PodSetAssignments[0].ResourceUsage[shares]; usage.Value() == 0 {
				return fmt.Errorf("it is admitted without a charge")
			}
		}
		of.State, of.RequeueAfterSeconds, of.LastTransitionTime = state, after, metav1.NewTime(time.Now())
		return s.Client.Status().Update(ctx, wl)
	})
}

// told collects every condition GangReserved that the watch shows.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (s *stage) told() *told {
	s.Helper()
	t := &told{}
	ctx, stop := context.WithCancel(context.Background())
	events, err := s.Client.Watch(ctx, &kueue.WorkloadList{}, client.InNamespace(s.Namespace))
	if err != nil {
		s.Fatal(err)
	}
	go func() {
		for e := range events.ResultChan() {
			wl, is := e.Object.(*kueue.Workload)
			if !is {
				continue
			}
			if c := apimeta.FindStatusCondition(wl.Status.Conditions, berth.ConditionGangReserved); c != nil {
				t.mu.Lock()
				if line := sentence(c); !slices.Contains(t.lines, line) {
					t.lines = append(t.lines, line)
				}
				t.mu.Unlock()
			}
		}
	}()
	s.Cleanup(func() {
		stop()
		events.Stop()
	})
	return t
}

// said returns nil when a line was told that is the one wanted, or begins like it before "…".
func (t *told) said(want string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	begin, open := strings.CutSuffix(want, "…")
	if slices.ContainsFunc(t.lines, func(l string) bool { return l == want || open && strings.HasPrefix(l, begin) }) {
		return nil
	}
	return fmt.Errorf("it was not said:\n  %s\nbut\n  %s", want, strings.Join(t.lines, "\n  "))
}
