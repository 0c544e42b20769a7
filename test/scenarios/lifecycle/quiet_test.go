package lifecycle

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// TestToldOnceAfterAnEviction: Kueue owns podSetUpdates of a check that it has applied. A gang that waits anew is told why
// once all the same, and not in every pass, and its check names no slice.
func TestToldOnceAfterAnEviction(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("gang", "tpu-4x4", 4))
	s.AwaitSeated(job)
	s.awaitRunning(job)
	// Berth takes Ready back while Kueue cannot end the eviction yet.
	s.stop(cluster.ControllerManager)
	s.activate(job, false)
	s.awaitConditions(job, true, kueue.WorkloadEvicted)
	s.start(cluster.ControllerManager)
	s.awaitConditions(job, false, kueue.WorkloadQuotaReserved)
	s.AwaitNoTrace()

	blocker := s.Submit(scene.Gang("blocker", "tpu-8x8", 16))
	s.AwaitSeated(blocker)
	s.activate(job, true)
	s.Eventually("what "+job.Name+" waits for", func(ctx context.Context) error {
		said, err := s.Reserved(ctx, job)
		if err == nil && !strings.HasPrefix(said, "False NoFreeSlice: ") {
			err = fmt.Errorf("it says %s", said)
		}
		return err
	})
	check := s.workload(job).Status.AdmissionChecks[0]
	if name := adaptkueue.NamedReservation(&check); name != "" {
		t.Errorf("while it waits the check is %s and sends pods to reservation %s", check.State, name)
	}
	before := len(s.wrote("patch", "workloads/status"))
	for range 6 {
		for _, cordoned := range []bool{true, false} {
			node := &corev1.Node{}
			node.Name = "node-15"
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, cordoned))
			s.must(s.Client.Patch(s.Context(), node, patch), "changing a node")
		}
	}
	s.Finish(blocker)
	s.AwaitSeated(job)
	// Two conditions of the blocker, a new sentence or two and the Ready of the gang.
	if wrote := len(s.wrote("patch", "workloads/status")) - before; wrote > 8 {
		t.Errorf("%d writes to the status of two Workloads", wrote)
	}
	s.Finish(job)
	s.AwaitNoTrace()
}
