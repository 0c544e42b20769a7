package e2e

import (
	"testing"

	"github.com/berth-dev/berth/test/scene"
)

// TestGangRunsWholeAndLeavesNoTrace is the main job: a gang of four gets a 4x4, runs by rank, ends and leaves nothing.
func TestGangRunsWholeAndLeavesNoTrace(t *testing.T) {
	s := scene.New(t, shared.ForTest(t))
	s.Run()
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	s.AwaitReserved(job, "True Reserved: tpu-4x4-00 (pod-a) on node-0, node-1, node-4, node-5")
	s.Finish(job)
	s.AwaitNoTrace()
}
