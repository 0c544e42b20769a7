package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/controller/constants"
	"sigs.k8s.io/kueue/pkg/util/admissioncheck"
	"sigs.k8s.io/kueue/pkg/workload"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// approval is an AdmissionCheck of the test: it keeps admitted what Berth has reserved.
const approval = "approval"

// queueOf makes a ClusterQueue of the test's own, with a LocalQueue of the same name, behind the checks.
func (s *stage) queueOf(checks ...kueue.AdmissionCheckReference) string {
	s.Helper()
	cq := &kueue.ClusterQueue{}
	cq.Name = scene.ClusterQueue
	s.Get(cq)
	name := "queue-" + s.Namespace
	cq.ObjectMeta = metav1.ObjectMeta{Name: name}
	cq.Status = kueue.ClusterQueueStatus{}
	cq.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{}
	for _, check := range checks {
		cq.Spec.AdmissionChecksStrategy.AdmissionChecks = append(cq.Spec.AdmissionChecksStrategy.AdmissionChecks,
			kueue.AdmissionCheckStrategyRule{Name: check})
	}
	s.Create(cq)
	s.Cleanup(func() { _ = s.Client.Delete(context.Background(), cq) })
	s.Create(&kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(name)},
	})
	return name
}

func inQueue(name string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Labels[kueueconstants.QueueLabel] = name }
}

// withApproval makes the test's own AdmissionCheck, active.
func (s *stage) withApproval() kueue.AdmissionCheckReference {
	s.Helper()
	ac := &kueue.AdmissionCheck{
		ObjectMeta: metav1.ObjectMeta{Name: approval + "-" + s.Namespace},
		Spec:       kueue.AdmissionCheckSpec{ControllerName: "example.com/approval"},
	}
	s.Create(ac)
	s.Cleanup(func() { _ = s.Client.Delete(context.Background(), ac) })
	s.Eventually("activating the approval", func(ctx context.Context) error {
		s.Get(ac)
		apimeta.SetStatusCondition(&ac.Status.Conditions, metav1.Condition{
			Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue, Reason: "Active", Message: "played by a test",
		})
		return s.Client.Status().Update(ctx, ac)
	})
	return kueue.AdmissionCheckReference(ac.Name)
}

// approve gives the approval for a Job, as a controller of another check would.
func (s *stage) approve(job *batchv1.Job, check kueue.AdmissionCheckReference) {
	s.Helper()
	s.Eventually("approving "+job.Name, func(ctx context.Context) error { return s.tryApprove(ctx, job, check) })
}

func (s *stage) tryApprove(ctx context.Context, job *batchv1.Job, check kueue.AdmissionCheckReference) error {
	wl, err := s.WorkloadOf(ctx, job)
	if err != nil || strings.HasPrefix(checkState(wl, check), string(kueue.CheckStateReady)) {
		return err
	}
	return workload.PatchStatus(ctx, s.Client, wl, "approval", func(patch *kueue.Workload) (bool, error) {
		patch.Status.AdmissionChecks = []kueue.AdmissionCheckState{{
			Name: check, State: kueue.CheckStateReady, Message: "approved", LastTransitionTime: metav1.Now(),
		}}
		return true, nil
	})
}

// stop sets the stop policy of a ClusterQueue.
func (s *stage) stop(queue string, how kueue.StopPolicy) {
	s.Helper()
	s.Eventually(fmt.Sprintf("setting %s to %s", queue, how), func(ctx context.Context) error {
		cq := &kueue.ClusterQueue{}
		if err := s.Client.Get(ctx, client.ObjectKey{Name: queue}, cq); err != nil {
			return err
		}
		cq.Spec.StopPolicy = ptr.To(how)
		return s.Client.Update(ctx, cq)
	})
}

// awaitWorkload waits until the Workload of a Job is as check wants it.
func (s *stage) awaitWorkload(job *batchv1.Job, what string, check func(*kueue.Workload) bool) *kueue.Workload {
	s.Helper()
	var wl *kueue.Workload
	s.Eventually(what, func(ctx context.Context) (err error) {
		if wl, err = s.WorkloadOf(ctx, job); err != nil {
			return err
		}
		if !check(wl) {
			return fmt.Errorf("not yet: conditions %v, checks %v", wl.Status.Conditions, wl.Status.AdmissionChecks)
		}
		return nil
	})
	return wl
}

func checkState(wl *kueue.Workload, name kueue.AdmissionCheckReference) string {
	state := admissioncheck.FindAdmissionCheck(wl.Status.AdmissionChecks, name)
	if state == nil {
		return ""
	}
	return fmt.Sprintf("%s: %s", state.State, state.Message)
}

func hasQuota(wl *kueue.Workload) bool { return workload.HasQuotaReservation(wl) }

// awaitSuccessor waits until the gang runs by rank under a reservation that came after the given one.
func (s *stage) awaitSuccessor(job *batchv1.Job, former *berth.GangReservation) {
	s.Helper()
	s.Eventually("moving "+job.Name, func(ctx context.Context) error {
		res, err := s.ReservationOf(ctx, job)
		if err == nil && res.UID == former.UID {
			err = errors.New("it still has its former reservation")
		}
		if err != nil {
			return err
		}
		return s.Seated(ctx, job)
	})
	s.gone(former)
}

// TestScenario35_AdmittedGangOnHold: Hold leaves an admitted gang alone. HoldAndDrain ends it as a whole, nothing is
// reserved while it lasts, and afterwards the gang is admitted on a reservation of its own.
func TestScenario35_AdmittedGangOnHold(t *testing.T) {
	s := begin(t)
	s.run()
	queue := s.queueOf(scene.Check)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4, inQueue(queue)))
	s.AwaitSeated(job)
	first := s.reservation(job)

	s.stop(queue, kueue.Hold)
	cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queue}}
	s.Eventually("Kueue's notice of the hold", func(ctx context.Context) error {
		s.Get(cq)
		if apimeta.IsStatusConditionTrue(cq.Status.Conditions, kueue.ClusterQueueActive) {
			return errors.New("the ClusterQueue is still active")
		}
		return nil
	})
	// Kueue treats another Workload of the queue as on hold, and Berth replaces a rank: both have looked since.
	other := s.Submit(scene.Gang("other", "tpu-4x4", 4, inQueue(queue)))
	s.awaitWorkload(other, "holding the other gang", func(wl *kueue.Workload) bool {
		c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
		return c != nil && c.Status == metav1.ConditionFalse && c.Message == fmt.Sprintf("ClusterQueue %s is inactive", queue)
	})
	old, err := s.podOf(t.Context(), job, "1")
	s.must(err, "finding rank 1")
	s.must(s.Client.Delete(t.Context(), old), "deleting rank 1")
	s.awaitRunning(job, "1", old)
	s.DeleteJob(other)
	s.must(s.Seated(t.Context(), job), "looking after the gang on hold")
	if now := s.reservation(job); now.UID != first.UID {
		t.Errorf("the gang was moved from reservation %s to %s", first.Name, now.Name)
	}
	if stats := s.workload(job).Status.SchedulingStats; stats != nil && len(stats.Evictions) > 0 {
		t.Errorf("the gang was evicted: %v", stats.Evictions)
	}

	s.stop(queue, kueue.HoldAndDrain)
	s.awaitWorkload(job, "draining", func(wl *kueue.Workload) bool { return !hasQuota(wl) && !workload.IsAdmitted(wl) })
	s.AwaitNoTrace()
	wl := s.workload(job)
	if state := checkState(wl, scene.Check); strings.HasPrefix(state, "Ready") {
		t.Errorf("while on hold the check reads %q", state)
	}

	s.stop(queue, kueue.None)
	s.awaitSuccessor(job, first)
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestScenario35_ReadyGangOnHold: our check is Ready and admission waits for another check when the queue is put on hold.
// Kueue unsets the quota and leaves the checks as they are, so Berth takes its Ready back before it lets the slice go.
func TestScenario35_ReadyGangOnHold(t *testing.T) {
	for _, how := range []kueue.StopPolicy{kueue.Hold, kueue.HoldAndDrain} {
		t.Run(string(how), func(t *testing.T) {
			s := begin(t)
			s.run()
			second := s.withApproval()
			queue := s.queueOf(scene.Check, second)
			job := s.Submit(scene.Gang("train", "tpu-4x4", 4, inQueue(queue)))
			s.AwaitReserved(job, "True Reserved: tpu-4x4-00 (pod-a) on node-0, node-1, node-4, node-5")
			first := s.reservation(job)
			if workload.IsAdmitted(s.workload(job)) {
				t.Fatal("admitted without approval")
			}

			s.stop(queue, how)
			s.awaitWorkload(job, "taking Ready back", func(wl *kueue.Workload) bool {
				return !hasQuota(wl) && strings.HasPrefix(checkState(wl, scene.Check), "Pending: ")
			})
			s.AwaitNoTrace()
			const released = "released: tpu-4x4-00 (pod-a) on node-0, node-1, node-4, node-5"
			s.AwaitReserved(job, "False Released: "+released)
			if state := checkState(s.workload(job), scene.Check); state != "Pending: "+released {
				t.Errorf("the check reads %q", state)
			}

			// From here on only our check keeps Kueue from admitting.
			s.approve(job, second)
			s.stop(queue, kueue.None)
			s.Eventually("moving "+job.Name, func(ctx context.Context) error {
				// Kueue's scheduler writes back the checks that it knows, and that may be those from before the approval.
				return cmp.Or(s.tryApprove(ctx, job, second), s.Seated(ctx, job))
			})
			s.awaitSuccessor(job, first)
			s.Finish(job)
			s.AwaitNoTrace()
		})
	}
}

// TestScenario35_HeldAndReleasedWhileBerthIsDown: nobody takes Ready back, so Kueue admits on it. The slice is still held
// then; Berth, when it is back, has the gang evicted as a whole, and no pod was seated for an admission that is over.
func TestScenario35_HeldAndReleasedWhileBerthIsDown(t *testing.T) {
	s := begin(t)
	c := s.run()
	seats := s.watchSeats()
	second := s.withApproval()
	queue := s.queueOf(scene.Check, second)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4, inQueue(queue)))
	s.AwaitReserved(job, "True Reserved: tpu-4x4-00 (pod-a) on node-0, node-1, node-4, node-5")
	first := s.reservation(job)
	reserved := apimeta.FindStatusCondition(s.workload(job).Status.Conditions, kueue.WorkloadQuotaReserved).LastTransitionTime
	s.must(c.Stop(), "stopping Berth")

	s.stop(queue, kueue.Hold)
	s.awaitWorkload(job, "unsetting quota", func(wl *kueue.Workload) bool { return !hasQuota(wl) })
	s.approve(job, second)
	// Times on a Workload count seconds; the next admission must be told from the last.
	s.Eventually("the next second", func(context.Context) error {
		if time.Since(reserved.Time) < 1100*time.Millisecond {
			return errors.New("it is still the same")
		}
		return nil
	})
	s.stop(queue, kueue.None)
	s.Eventually("admitting on the stale Ready", func(ctx context.Context) error {
		if err := s.tryApprove(ctx, job, second); err != nil { // again, as above
			return err
		}
		if wl, err := s.WorkloadOf(ctx, job); err != nil || !workload.IsAdmitted(wl) {
			return cmp.Or(err, errors.New("it is not admitted"))
		}
		return nil
	})
	wl := s.workload(job)
	if now := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved).LastTransitionTime; now.Equal(&reserved) {
		t.Fatalf("quota was reserved at %v both times", now)
	}
	s.Eventually("the pods of that admission", func(ctx context.Context) error {
		pods, err := s.PodsOf(ctx, job)
		if err == nil && len(pods) < 4 {
			err = fmt.Errorf("%d of 4 pods exist", len(pods))
		}
		return err
	})
	stale, err := s.PodsOf(t.Context(), job)
	s.must(err, "listing pods")

	s.run()
	s.gone(first)
	// The eviction has reset the other check as well.
	s.awaitWorkload(job, "reserving anew", func(wl *kueue.Workload) bool {
		return strings.HasPrefix(checkState(wl, scene.Check), "Ready") && strings.HasPrefix(checkState(wl, second), "Pending")
	})
	s.approve(job, second)
	s.awaitSuccessor(job, first)
	for i := range stale {
		if claim := seats.of(&stale[i]); claim != "" {
			t.Errorf("pod %s of the stale admission stood in claim %s", stale[i].Name, claim)
		}
	}
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestScenario35_HoldFlaps: hold and release without waiting for anybody, approved in between: whichever of Kueue and Berth
// is faster, the watcher sees no gang admitted without its slice, and the gang runs in the end.
func TestScenario35_HoldFlaps(t *testing.T) {
	s := begin(t)
	s.run()
	second := s.withApproval()
	queue := s.queueOf(scene.Check, second)
	for round := range 4 {
		job := s.Submit(scene.Gang(fmt.Sprintf("train-%d", round), "tpu-4x4", 4, inQueue(queue)))
		s.awaitWorkload(job, "reserving", func(wl *kueue.Workload) bool {
			return apimeta.IsStatusConditionTrue(wl.Status.Conditions, berth.ConditionGangReserved)
		})
		s.stop(queue, kueue.Hold)
		if round%2 == 1 {
			s.awaitWorkload(job, "unsetting quota", func(wl *kueue.Workload) bool { return !hasQuota(wl) })
		}
		s.approve(job, second)
		s.stop(queue, kueue.None)
		// If the gang was admitted too early, its eviction has reset the approval.
		s.Eventually("seating "+job.Name, func(ctx context.Context) error {
			if err := s.tryApprove(ctx, job, second); err != nil {
				return err
			}
			return s.Seated(ctx, job)
		})
		s.Finish(job)
		s.AwaitNoTrace()
	}
}
