package guard

import (
	"context"
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// stopping keeps a deleted pod there, as a container does that takes its time to end.
const stopping = "example.com/stopping"

// TestScenario36_SuccessorWaitsForItsSeat: the Job controller creates the successor of a rank while the predecessor still
// terminates. It stays behind its gate until the predecessor is gone, also over a restart of Berth, and then runs on the
// same host with the same claim.
func TestScenario36_SuccessorWaitsForItsSeat(t *testing.T) {
	s := begin(t)
	c := s.run()
	seats := s.watchSeats()
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	res, claim := s.reservation(job), s.claimOf(job)
	old, err := s.podOf(t.Context(), job, "3")
	s.must(err, "finding rank 3")
	slow := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["`+stopping+`"]}}`))
	s.must(s.Client.Patch(t.Context(), old, slow), "making rank 3 slow to stop")

	s.must(s.Client.Delete(t.Context(), old), "deleting rank 3")
	var next *corev1.Pod
	s.Eventually("the successor of rank 3", func(ctx context.Context) (err error) {
		next, err = s.podOf(ctx, job, "3")
		return err
	})
	s.awaitProgress(res, "Waiting: rank 3 waits for its predecessor to end")
	s.must(c.Stop(), "stopping Berth")
	s.run()
	// Rank 2 is replaced at once. When that has happened, rank 3 has been looked at again.
	quick, err := s.podOf(t.Context(), job, "2")
	s.must(err, "finding rank 2")
	s.must(s.Client.Delete(t.Context(), quick), "deleting rank 2")
	s.awaitRunning(job, "2", quick)
	s.Get(old)
	s.Get(next)
	if old.DeletionTimestamp == nil || !jobs.Gated(next) || next.Spec.NodeName != "" || seats.of(next) != "" {
		t.Errorf("the predecessor is deleted at %v; the successor has gates %v, node %q, seat %q",
			old.DeletionTimestamp, next.Spec.SchedulingGates, next.Spec.NodeName, seats.of(next))
	}

	s.release(old, stopping)
	s.AwaitSeated(job)
	s.Get(next)
	if next.Spec.NodeName != old.Spec.NodeName || *next.Spec.ResourceClaims[0].ResourceClaimName != claim.Name {
		t.Errorf("the successor runs on %s with claim %s, the predecessor on %s with %s", next.Spec.NodeName,
			*next.Spec.ResourceClaims[0].ResourceClaimName, old.Spec.NodeName, claim.Name)
	}
	if now := s.reservation(job); now.UID != res.UID {
		t.Errorf("the gang was moved from reservation %s to %s", res.Name, now.Name)
	}
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestScenario36_WholeGangReplaced: every pod is deleted at once and all of them stop slowly; each successor follows its
// own predecessor, in whatever order these end.
func TestScenario36_WholeGangReplaced(t *testing.T) {
	s := begin(t)
	s.run()
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	res := s.reservation(job)
	old, err := s.PodsOf(t.Context(), job)
	s.must(err, "listing pods")
	slow := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["`+stopping+`"]}}`))
	for i := range old {
		s.must(s.Client.Patch(t.Context(), &old[i], slow), "making a pod slow to stop")
		s.must(s.Client.Delete(t.Context(), &old[i]), "deleting a pod")
	}
	for i := range old {
		rank := old[len(old)-1-i].Labels[batchv1.JobCompletionIndexAnnotation]
		s.Eventually("the successor of rank "+rank, func(ctx context.Context) error {
			next, err := s.podOf(ctx, job, rank)
			if err == nil && !jobs.Gated(next) {
				t.Errorf("the successor of rank %s is not gated", rank)
			}
			return err
		})
		s.release(&old[len(old)-1-i], stopping)
		s.awaitRunning(job, rank, &old[len(old)-1-i])
	}
	s.AwaitSeated(job)
	if now := s.reservation(job); now.UID != res.UID {
		t.Errorf("the gang was moved from reservation %s to %s", res.Name, now.Name)
	}
	s.Finish(job)
	s.AwaitNoTrace()
}

// awaitRunning waits until a rank runs in another pod than the former.
func (s *stage) awaitRunning(job *batchv1.Job, rank string, former *corev1.Pod) {
	s.Helper()
	s.Eventually("replacing rank "+rank, func(ctx context.Context) error {
		next, err := s.podOf(ctx, job, rank)
		if err == nil && (next.UID == former.UID || next.Status.Phase != corev1.PodRunning) {
			err = fmt.Errorf("pod %s is %s with gates %v", next.Name, next.Status.Phase, next.Spec.SchedulingGates)
		}
		return err
	})
}

// awaitProgress waits until a reservation says "reason: message" about its progress.
func (s *stage) awaitProgress(res *berth.GangReservation, want string) {
	s.Helper()
	s.Eventually("the progress of "+res.Name, func(ctx context.Context) error {
		s.Get(res)
		c := apimeta.FindStatusCondition(res.Status.Conditions, berth.ReservationProgressing)
		if c == nil {
			return errors.New("nothing is said")
		}
		if have := c.Reason + ": " + c.Message; have != want {
			return fmt.Errorf("it reads\n  %s\nand should read\n  %s", have, want)
		}
		return nil
	})
}
