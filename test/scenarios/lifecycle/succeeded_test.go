package lifecycle

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// TestAllSucceedWhileTheGangIsEvicted: the Job controller has not yet taken the pods of the suspended Job away when they come
// to their end. Kueue admits the gang anew with no pod at all, and only then the Job can complete.
func TestAllSucceedWhileTheGangIsEvicted(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("gang", "tpu-4x4", 4))
	s.AwaitSeated(job)
	s.awaitRunning(job)
	s.stop(cluster.ControllerManager)
	s.activate(job, false)
	s.awaitConditions(job, true, kueue.WorkloadEvicted)
	s.Finish(job)
	s.Eventually("the end of all pods", func(ctx context.Context) error {
		pods, err := s.pods(ctx, job)
		for rank, p := range pods {
			if p.Status.Phase != corev1.PodSucceeded {
				return fmt.Errorf("rank %s is %s", rank, p.Status.Phase)
			}
		}
		return err
	})
	s.start(cluster.ControllerManager)
	s.awaitConditions(job, false, kueue.WorkloadQuotaReserved)
	s.activate(job, true)
	s.awaitConditions(job, true, kueue.WorkloadFinished)
	s.AwaitNoTrace()
	if made := s.wrote("create", "gangreservations"); len(made) != 1 {
		t.Errorf("Berth made %d reservations: %v", len(made), made)
	}
	s.AwaitReserved(job, "False NothingManaged: the pods of the gang have all succeeded, and none comes any more")
}
