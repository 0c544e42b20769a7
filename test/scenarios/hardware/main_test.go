package hardware

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// Device classes of racks, by how many hosts their devices span. Kueue reads the mapping at its start and takes at most
// eight classes for one resource, so all racks share these four.
const (
	single = "rack-1"
	pair   = "rack-2"
	quad   = "rack-4"
	whole  = "rack-all"
)

var shared = cluster.Shared{Options: cluster.Options{
	Audit: true,
	// Short, for the sake of the tests that wait for a lost host, and long enough for a busy machine.
	NodeMonitorGracePeriod: 20 * time.Second,
	Kueue: cluster.KueueOptions{DeviceClasses: map[string][]string{
		"berth.dev/shares": {"tpu-2x2", "tpu-4x4", "tpu-4x8", "tpu-8x8", single, pair, quad, whole},
	}},
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// begin sets the scene. The controller is not running yet.
func begin(t *testing.T) *scene.Scene {
	t.Helper()
	return scene.New(t, shared.ForTest(t))
}

// run starts the controller. At the end of the test, while it still runs, all Jobs are deleted and everything that Berth
// made for them must go.
func run(s *scene.Scene, opts ...scene.RunOptions) *scene.Controller {
	s.Helper()
	c := s.Run(opts...)
	s.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		err := s.Client.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(s.Namespace),
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil {
			s.Errorf("deleting the Jobs: %v", err)
		}
		eventually(ctx, s, "cleaning up", s.NoTrace)
	})
	return c
}

// eventually is scene.Eventually with a context of the caller: for cleaning up, and for what takes longer than
// scene.Patience because Kubernetes takes longer.
func eventually(ctx context.Context, s *scene.Scene, what string, check func(context.Context) error) {
	s.Helper()
	var err error
	for ctx.Err() == nil && !errors.Is(err, scene.ErrEnded) {
		if err = s.Await(ctx, check); err == nil {
			return
		}
	}
	s.Errorf("%s: %v", what, err)
}
