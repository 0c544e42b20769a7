package shapes

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

// Classes of the devices that the tests bring. The driver of each is the class before example.com.
const (
	gpu  = "gpu"  // one host each
	part = "part" // one host each, and many pods may have a share
	pair = "pair" // two hosts each
	nic  = "nic"  // one host each
)

// shares is the resource that Kueue charges for the devices of all classes.
const shares = "berth.dev/shares"

var shared = cluster.Shared{Options: cluster.Options{
	Audit: true,
	Kueue: cluster.KueueOptions{DeviceClasses: map[string][]string{
		shares: {"tpu-2x2", "tpu-4x4", "tpu-4x8", "tpu-8x8", gpu, part, pair, nic},
	}},
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// begin sets the scene with hardware of the test's own. The controller is not running yet.
func begin(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{Scene: scene.New(t, shared.ForTest(t))}
	t.Cleanup(f.remove)
	return f
}

// run starts the controller. At the end of the test, while it still runs, all Jobs are deleted and everything that Berth
// made for them must go.
func (f *fleet) run() {
	f.Helper()
	if err := f.Cluster.AwaitNodes(f.Context(), f.hosts...); err != nil {
		f.Fatal(err)
	}
	f.Run()
	f.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		err := f.Client.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(f.Namespace),
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil {
			f.Errorf("deleting the Jobs: %v", err)
		}
		for ctx.Err() == nil && !errors.Is(err, scene.ErrEnded) {
			if err = f.Await(ctx, f.NoTrace); err == nil {
				return
			}
		}
		f.Errorf("cleaning up: %v", err)
	})
}
