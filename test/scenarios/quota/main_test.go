package quota

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

const (
	shares = "berth.dev/shares"
	// half is a class that selects slices of 4 hosts wherever they stand.
	half = "half"
	// berthUser is who Berth is in the audit log.
	berthUser = "system:serviceaccount:berth-system:berth-controller"
)

var shared = cluster.Shared{Options: cluster.Options{
	Audit: true,
	// Short, for the sake of the tests that wait for a lost host, and long enough for a busy machine.
	NodeMonitorGracePeriod: 20 * time.Second,
	Kueue: cluster.KueueOptions{DeviceClasses: map[string][]string{
		shares: {"tpu-2x2", "tpu-4x4", "tpu-4x8", "tpu-8x8", half},
	}},
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// stage is a scene and what these scenarios ask of it.
type stage struct{ *scene.Scene }

// play sets the scene and starts a controller. What the test makes goes with it, folds while the controller runs.
func play(t *testing.T, opts ...scene.RunOptions) (*stage, *scene.Controller) {
	t.Helper()
	s := &stage{scene.New(t, shared.ForTest(t))}
	return s, s.begin(opts...)
}

// begin starts a controller. At the end of the test, while it still runs, its gangs end.
func (s *stage) begin(opts ...scene.RunOptions) *scene.Controller {
	s.Helper()
	c := s.Run(opts...)
	s.Cleanup(s.endJobs)
	return c
}

// endJobs deletes all Jobs and waits until nothing is left of them.
func (s *stage) endJobs() {
	s.Helper()
	// The test's own context has ended when this is the clean-up.
	ctx := context.Background()
	if err := s.Client.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(s.Namespace), client.PropagationPolicy("Background")); err != nil {
		s.Errorf("deleting the Jobs: %v", err)
	}
	if err := s.Await(ctx, s.NoTrace); err != nil {
		s.Errorf("cleaning up: %v", err)
	}
}

// make creates an object that goes with the test.
func (s *stage) make(obj client.Object) {
	s.Helper()
	s.Create(obj)
	s.Cleanup(func() { s.drop(obj) })
}

// drop deletes an object and waits until it is gone; it may be gone already.
func (s *stage) drop(obj client.Object) {
	s.Helper()
	// The test's own context has ended when this is the clean-up.
	ctx := context.Background()
	if err := s.Client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		s.Errorf("deleting %T %s: %v", obj, obj.GetName(), err)
	}
	left := obj.DeepCopyObject().(client.Object)
	if err := s.Await(ctx, func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(obj), left); err != nil {
			return client.IgnoreNotFound(err)
		}
		return fmt.Errorf("it is still there, with finalizers %v", left.GetFinalizers())
	}); err != nil {
		s.Errorf("deleting %T %s: %v", obj, obj.GetName(), err)
	}
}

// observe takes the fence off the scene's pool until the end of the test, so that others can hold devices of it.
func (s *stage) observe() {
	s.Helper()
	s.fence(berth.FenceObserve)
	s.Cleanup(func() { s.fence(berth.FenceEnforce) })
}

func (s *stage) fence(mode berth.FenceMode) {
	s.Helper()
	pool := &berth.AcceleratorPool{}
	pool.Name = scene.Pool
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"fence":%q}}`, mode))
	if err := s.Client.Patch(context.Background(), pool, patch); err != nil {
		s.Fatalf("setting the fence: %v", err)
	}
}
