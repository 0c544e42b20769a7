package quota

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/controller/constants"
	"sigs.k8s.io/kueue/pkg/workload"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// TestBorrowingAndReclaim: two ClusterQueues divide the hardware; one borrows what the other does not use, and gives it back.
// A host is lost while both run: nobody is preempted because the number shrank, and nobody is let in for what is gone.
func TestBorrowingAndReclaim(t *testing.T) {
	s, _ := play(t)
	reclaims := func(cq *kueue.ClusterQueue) {
		cq.Spec.Preemption = &kueue.ClusterQueuePreemption{ReclaimWithinCohort: kueue.PreemptionPolicyAny}
	}
	s.queue("lends", "borrow", "0", reclaims, scene.Flavor)
	s.queue("borrows", "borrow", "0", reclaims, scene.Flavor)
	f := newFold("borrow", scene.Flavor, berth.FoldPhysical, "tpu-4x4")
	f.Spec.Targets = []berth.FoldTarget{{Kind: berth.FoldClusterQueue, Name: "lends"}, {Kind: berth.FoldClusterQueue, Name: "borrows"}}
	s.fold(f)
	s.awaitQuota(f, 8, 8)
	w := s.follow()

	// The one takes it all, the other takes its half back: Kueue evicts two gangs for it.
	var borrowing []*batchv1.Job
	for i := range 4 {
		borrowing = append(borrowing, s.Submit(through("borrows", fmt.Sprint("borrowing-", i))))
		s.AwaitSeated(borrowing[i])
	}
	lending := []*batchv1.Job{s.Submit(through("lends", "lending-0")), s.Submit(through("lends", "lending-1"))}
	s.AwaitSeated(lending[0])
	s.AwaitSeated(lending[1])
	s.Eventually("two preemptions", func(context.Context) error {
		n := 0
		for _, j := range borrowing {
			n += w.of(j.Name).preemptions
		}
		if n < 2 {
			return fmt.Errorf("there were %d", n)
		}
		return nil
	})
	var running []*batchv1.Job
	preempted := 0
	for _, j := range borrowing {
		of := w.of(j.Name)
		if preempted += of.preemptions; of.preemptions > 0 {
			s.awaitInsufficient(j)
			s.DeleteJob(j)
			continue
		}
		running = append(running, j)
	}
	if preempted != 2 || len(running) != 2 {
		t.Fatalf("%d gangs were preempted and %d run, want 2 and 2", preempted, len(running))
	}
	running = append(running, lending...)
	s.stillRun(w, running)

	// A host under a gang of the borrower is cordoned: 12 shares are left and 16 are in use.
	lost := s.hostOf(running[0])
	s.cordon(lost, true)
	s.awaitCondition(f, berth.FoldReady, "True Folded: …")
	s.awaitShares(f, 12)
	s.awaitQuota(f, 8, 8)
	s.stillRun(w, running)
	// What ends is not given out again.
	s.Finish(lending[0])
	s.awaitQuota(f, 4, 8)
	s.AwaitSeenByKueue("lends", "borrows")
	late := []*batchv1.Job{s.Submit(through("lends", "late-0")), s.Submit(through("borrows", "late-1"))}
	for _, j := range late {
		s.awaitInsufficient(j)
	}
	s.stillRun(w, append([]*batchv1.Job{lending[1]}, running[:2]...))
	// The host comes back, and one of them runs.
	s.cordon(lost, false)
	s.awaitQuota(f, 8, 8)
	s.AwaitSeated(late[0])
	s.awaitInsufficient(late[1])

	// Now its Node goes: that gang alone loses its slice, and waits until the host is there again.
	gone := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: lost}}
	s.Get(gone)
	s.DeleteJob(late[1])
	if err := s.Client.Delete(s.Context(), gone); err != nil {
		t.Fatal(err)
	}
	s.awaitShares(f, 12)
	s.Eventually("the gang on the lost host", func(context.Context) error {
		if of := w.of(running[0].Name); of.evictions == 0 {
			return fmt.Errorf("it was not sent back")
		}
		return nil
	})
	s.stillRun(w, []*batchv1.Job{running[1], lending[1], late[0]})
	s.again(gone)
	s.AwaitSeated(running[0])
	s.awaitQuota(f, 8, 8)
	s.stillRun(w, []*batchv1.Job{running[1], lending[1], late[0]})
	for _, j := range []*batchv1.Job{running[0], running[1], lending[1], late[0]} {
		s.Finish(j)
	}
	s.AwaitNoTrace()
}

// through is a gang that takes a 4x4, in a LocalQueue.
func through(queue, name string) *batchv1.Job {
	return scene.Gang(name, "tpu-4x4", 4, func(j *batchv1.Job) { j.Labels[kueueconstants.QueueLabel] = queue })
}

// stillRun fails the test when one of the gangs was ever evicted or does not run now.
func (s *stage) stillRun(w *waits, jobs []*batchv1.Job) {
	s.Helper()
	for _, j := range jobs {
		if of := w.of(j.Name); of.evictions > 0 {
			s.Errorf("%s was evicted %d times, %d of them for another gang", j.Name, of.evictions, of.preemptions)
		}
		if err := s.Seated(s.Context(), j); err != nil {
			s.Errorf("%s should run: %v", j.Name, err)
		}
	}
}

// awaitInsufficient waits until Kueue says that the gang's quota is not there.
func (s *stage) awaitInsufficient(job *batchv1.Job) {
	s.Helper()
	s.Eventually("what Kueue tells "+job.Name, func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, job)
		if err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
		for _, says := range []string{
			"insufficient unused quota for " + shares, "insufficient quota for " + shares, "no longer fits after processing another workload",
		} {
			if c != nil && !workload.HasQuotaReservation(wl) && strings.Contains(c.Message, says) {
				return nil
			}
		}
		return fmt.Errorf("it is told %v", c)
	})
}

// awaitShares waits until the fold divides this number.
func (s *stage) awaitShares(f *berth.CapacityFold, want int32) {
	s.Helper()
	s.Eventually("shares of "+f.Name, func(ctx context.Context) error {
		var now berth.CapacityFold
		if err := s.Client.Get(ctx, keyOf(f), &now); err != nil {
			return err
		}
		if now.Status.Shares != want {
			return fmt.Errorf("want %d, and it has %s", want, s.story(ctx, f.Name))
		}
		return nil
	})
}

// hostOf is the first host that a gang runs on.
func (s *stage) hostOf(job *batchv1.Job) string {
	s.Helper()
	res, err := s.ReservationOf(s.Context(), job)
	if err != nil {
		s.Fatal(err)
	}
	return res.Spec.PodSets[0].Hosts[0]
}

func (s *stage) cordon(host string, on bool) {
	s.Helper()
	change(s, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host}}, func(n *corev1.Node) { n.Spec.Unschedulable = on })
}

// again creates a Node that was deleted.
func (s *stage) again(was *corev1.Node) {
	s.Helper()
	n := node(was.Name)
	n.Labels, n.Status.Capacity, n.Status.Allocatable = was.Labels, was.Status.Capacity, was.Status.Allocatable
	s.Create(n)
	if err := s.Cluster.AwaitNodes(s.Context(), n.Name); err != nil {
		s.Fatal(err)
	}
}
