package line

import (
	"context"
	"fmt"
	"testing"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// berthUser is who Berth is in the audit log.
const berthUser = "system:serviceaccount:berth-system:berth-controller"

// TestLentIsRecalled: a gang of low priority uses what is kept for one of high priority until the rest of it is free. Then
// it is evicted as a whole, and has its turn again when the large one has ended.
func TestLentIsRecalled(t *testing.T) {
	s, _ := play(t)
	queue, low, high := s.lendingQueue()
	running := s.Submit(scene.Gang("running", "tpu-4x4", 4))
	s.AwaitSeated(running)
	big := s.Submit(scene.Gang("big", "tpu-8x8", 16, through(queue, high)))
	target := s.awaitTarget(big, "tpu-8x8", fmt.Sprintf("waits for pod-a/tpu-8x8: drains when %s/%s ends", s.Namespace, s.reservation(running).Name))

	equal := s.Submit(scene.Gang("equal", "tpu-4x4", 4, through(queue, high)))
	s.AwaitReserved(equal, fmt.Sprintf("False WaitingTurn: what is free is kept for %s/%s", s.Namespace, target.Spec.WorkloadRef.Name))
	filler := s.Submit(scene.Gang("filler", "tpu-4x4", 4, through(queue, low)))
	s.AwaitSeated(filler)
	lent := s.reservation(filler)
	if !lent.Spec.Lent {
		t.Errorf("reservation %s is not marked as lent", lent.Name)
	}
	s.waitsStill(big, equal)

	s.Finish(running)
	s.AwaitSeated(big)
	s.waitsStill(equal, filler)
	s.Eventually("the eviction of filler", func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, filler)
		if err != nil {
			return err
		}
		if wl.Status.SchedulingStats == nil || len(wl.Status.SchedulingStats.Evictions) != 1 {
			return fmt.Errorf("evictions are %v", wl.Status.SchedulingStats)
		}
		return nil
	})
	s.Finish(big)
	s.AwaitSeated(filler)
	s.AwaitSeated(equal)
	if s.reservation(filler).Spec.Lent {
		t.Error("nothing is kept for anybody any more, and the slice of filler is marked as lent")
	}
	s.Finish(filler)
	s.Finish(equal)
	s.AwaitNoTrace()
}

// writes counts those of Berth in the stage's namespace.
func writes(s *stage, resource, verb string) int {
	s.Helper()
	made, err := s.Cluster.Writes(s.Context(), func(w cluster.Write) bool {
		return w.User == berthUser && w.Namespace == s.Namespace && w.Code < 300 && w.Verb == verb && w.Resource == resource
	})
	if err != nil {
		s.Fatalf("reading the audit log: %v", err)
	}
	return len(made)
}
