package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/util/admissioncheck"

	"github.com/berth-dev/berth/test/scene"
)

// TestScenario18_CheckTakenOffAndPutBack: an administrator takes the check off the ClusterQueue under a running gang and
// puts it back. The gang keeps what it has and its ranks are replaced, with the check and without; with the check back
// the answer is the same as before. The admission is a gang's second one, so the check has counted a retry, and Kueue
// forgets that count.
func TestScenario18_CheckTakenOffAndPutBack(t *testing.T) {
	s := play(t)
	queue := s.flavors()
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4, onTwoFlavors))
	s.AwaitSeated(job)
	first := s.reservation(job)
	claims, err := s.claimsOf(t.Context(), first.Name)
	s.must(err, "listing claims")
	s.must(s.Client.Delete(t.Context(), &claims[0]), "deleting the claim")
	r := s.moved(job, first)
	s.awaitGone(first)
	before := admissioncheck.FindAdmissionCheck(s.workload(job).Status.AdmissionChecks, scene.Check)
	if before.RetryCount == nil || *before.RetryCount == 0 {
		t.Fatalf("the check counts no retry: %v", before)
	}

	s.check(queue, false)
	s.awaitChecks(job, 0)
	s.replace(job, "2")
	s.must(s.held(t.Context(), r), "while the check is off")

	s.check(queue, true)
	s.Eventually("the same answer as before", func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, job)
		if err != nil {
			return err
		}
		now := admissioncheck.FindAdmissionCheck(wl.Status.AdmissionChecks, scene.Check)
		if now == nil || now.State != kueue.CheckStateReady || now.Message != before.Message ||
			!equality.Semantic.DeepEqual(now.PodSetUpdates, before.PodSetUpdates) {
			return fmt.Errorf("the check was %v and is %v", before, now)
		}
		return nil
	})
	s.replace(job, "1")
	s.AwaitReserved(job, "True Reserved: "+before.Message)

	// Without the check the gang comes to its end like any other.
	s.check(queue, false)
	s.awaitChecks(job, 0)
	s.must(s.held(t.Context(), r), "while the check is off again")
	if now := s.reservation(job); now.UID != r.UID {
		t.Errorf("the gang was moved from reservation %s to %s", r.Name, now.Name)
	}
	if n := len(s.wrote("create", "gangreservations")); n != 2 {
		t.Errorf("Berth made %d reservations, want 2", n)
	}
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestScenario18_PodsOfTheOldAdmissionRun: the gang is assigned a flavor to which Berth's check does not apply while a pod
// of its last admission still ends. The slice is held until then.
func TestScenario18_PodsOfTheOldAdmissionRun(t *testing.T) {
	s := play(t)
	queue := s.flavors(firstFlavor)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4, onTwoFlavors))
	s.AwaitSeated(job)
	r, pods := s.reservation(job), s.podsNow(job)
	s.prolong(pods[:1])

	s.reassign(job, queue)
	s.awaitConditions(job, true, kueue.WorkloadAdmitted)
	s.awaitChecks(job, 0)
	s.awaitWaiting(r, "Waiting: 1 of the gang's pods may still run: "+names(pods[:1]))
	s.must(s.held(t.Context(), r), "while a pod of the old admission ends")

	s.shutDown(pods[0])
	s.awaitGone(r)
	s.AwaitNoTrace()
	s.awaitConditions(job, true, kueue.WorkloadAdmitted)
	s.DeleteJob(job)
}

// check puts Berth's check into a ClusterQueue, or takes it out.
func (s *stage) check(queue *kueue.ClusterQueue, on bool) {
	s.Helper()
	s.Eventually("changing the checks of the ClusterQueue", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(queue), queue); err != nil {
			return err
		}
		queue.Spec.AdmissionChecksStrategy = nil
		if on {
			queue.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{
				AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: scene.Check}},
			}
		}
		return s.Client.Update(ctx, queue)
	})
}

// awaitChecks waits until as many checks are on the Workload of a Job.
func (s *stage) awaitChecks(job *batchv1.Job, n int) {
	s.Helper()
	s.Eventually("the checks of "+job.Name, func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, job)
		if err == nil && len(wl.Status.AdmissionChecks) != n {
			err = fmt.Errorf("it has %v", wl.Status.AdmissionChecks)
		}
		return err
	})
}

// replace deletes the pod of a rank and waits until its successor runs.
func (s *stage) replace(job *batchv1.Job, rank string) {
	s.Helper()
	of := func(ctx context.Context) (*corev1.Pod, error) {
		pods, err := s.pods(ctx, job)
		if err != nil {
			return nil, err
		}
		if pods[rank] == nil {
			return nil, errors.New("rank " + rank + " has no pod")
		}
		return pods[rank], nil
	}
	old, err := of(s.Context())
	s.must(err, "finding rank "+rank)
	s.must(s.Client.Delete(s.Context(), old), "deleting rank "+rank)
	s.Eventually("replacing rank "+rank, func(ctx context.Context) error {
		next, err := of(ctx)
		if err == nil && (next.UID == old.UID || next.Status.Phase != corev1.PodRunning) {
			err = fmt.Errorf("pod %s is %s with gates %v", next.Name, next.Status.Phase, next.Spec.SchedulingGates)
		}
		return err
	})
}
