package line

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/berth-dev/berth/test/scene"
)

// TestSmallGangsDoNotStarveALargeOne: an 8x8 waits for one 4x4 to end while 4x4s keep arriving. It runs at its first turn,
// before all of them; a controller that is restarted in between keeps the same target.
func TestSmallGangsDoNotStarveALargeOne(t *testing.T) {
	s, first := play(t)
	running := s.Submit(scene.Gang("running", "tpu-4x4", 4))
	s.AwaitSeated(running)
	held := s.reservation(running)

	big := s.Submit(scene.Gang("big", "tpu-8x8", 16))
	drains := fmt.Sprintf("waits for pod-a/tpu-8x8: drains when %s/%s ends", s.Namespace, held.Name)
	target := s.awaitTarget(big, "tpu-8x8", drains)
	s.Eventually("what "+big.Name+" is told", func(ctx context.Context) error {
		have, err := s.Reserved(ctx, big)
		want := fmt.Sprintf("False NoFreeSlice: no tpu-8x8 is free: 1 of 1 is held by %s/%s; %s", s.Namespace, held.Name, drains)
		if err == nil && have != want {
			err = fmt.Errorf("it reads\n  %s\nand should read\n  %s", have, want)
		}
		return err
	})

	kept := fmt.Sprintf("False WaitingTurn: what is free is kept for %s/%s", s.Namespace, target.Spec.WorkloadRef.Name)
	var small []*batchv1.Job
	for i := range 3 {
		small = append(small, s.Submit(scene.Gang(fmt.Sprint("small-", i), "tpu-4x4", 4)))
		s.AwaitReserved(small[i], kept)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	s.Run()
	late := s.Submit(scene.Gang("late", "tpu-4x4", 4))
	s.AwaitReserved(late, kept)
	if again := s.awaitTarget(big, "tpu-8x8", drains); again.UID != target.UID {
		t.Errorf("after the restart the target is %s %s, and it was %s %s", again.Name, again.UID, target.Name, target.UID)
	}
	small = append(small, late)
	s.waitsStill(small...)

	s.Finish(running)
	s.AwaitSeated(big)
	s.waitsStill(small...)
	s.Finish(big)
	for _, job := range small {
		s.AwaitSeated(job)
	}
	for _, job := range small {
		s.Finish(job)
	}
	s.AwaitNoTrace()
	if made := writes(s, "gangreservations/status", "update"); made > 60 {
		t.Errorf("%d writes of status", made)
	}
}

// TestWhoEndsInTimeIsLetIn: what is free in a target is used by a gang that ends before it is due, and not by others.
func TestWhoEndsInTimeIsLetIn(t *testing.T) {
	s, _ := play(t)
	running := s.Submit(scene.Gang("running", "tpu-4x4", 4, ends(1200)))
	s.AwaitSeated(running)
	big := s.Submit(scene.Gang("big", "tpu-8x8", 16))
	target := s.awaitTarget(big, "tpu-8x8", fmt.Sprintf("waits for pod-a/tpu-8x8: drains when %s/%s ends", s.Namespace, s.reservation(running).Name))

	kept := fmt.Sprintf("False WaitingTurn: what is free is kept for %s/%s", s.Namespace, target.Spec.WorkloadRef.Name)
	long := s.Submit(scene.Gang("long", "tpu-4x4", 4, ends(3600)))
	unknown := s.Submit(scene.Gang("unknown", "tpu-4x4", 4))
	s.AwaitReserved(long, kept)
	s.AwaitReserved(unknown, kept)
	short := s.Submit(scene.Gang("short", "tpu-4x4", 4, ends(60)))
	s.AwaitSeated(short)
	s.waitsStill(long, unknown)
	if s.reservation(short).Spec.Lent {
		t.Error("short ends in time, and its slice is marked as lent")
	}

	s.Finish(running)
	s.Finish(short)
	s.AwaitSeated(big)
	s.waitsStill(long, unknown)
	// A target goes with its Job.
	s.awaitTarget(long, "tpu-4x4-00", fmt.Sprintf("waits for pod-a/tpu-4x4-00: drains when %s/%s ends", s.Namespace, s.reservation(big).Name))
	s.DeleteJob(long)
	s.awaitTarget(unknown, "tpu-4x4-00", fmt.Sprintf("waits for pod-a/tpu-4x4-00: drains when %s/%s ends", s.Namespace, s.reservation(big).Name))
	s.DeleteJob(unknown)
	s.Finish(big)
	s.AwaitNoTrace()
}
