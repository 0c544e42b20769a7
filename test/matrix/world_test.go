package matrix

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// patience is how long a condition is awaited before a cell fails.
const patience = 2 * time.Minute

// world is the cluster with the lanes on it.
type world struct {
	// t is the test that processes of Berth live as long as; batches are its subtests.
	t       *testing.T
	cluster *cluster.Cluster
	client  client.Client
	// seen is a cache of what the tests look at again and again. It may be a moment late.
	seen client.Reader
}

// newWorld starts a cluster and puts n lanes up. Berth's manifests are installed, no controller runs.
func newWorld(t *testing.T, n int) *world {
	t.Helper()
	c := cluster.ForTest(t, options)
	scene.Install(t, c)
	admin := scene.Admin(t, c)
	w := &world{t: t, cluster: c, client: admin}
	objects := common()
	for i := range n {
		objects = append(objects, lane(i).objects()...)
	}
	for _, obj := range objects {
		must(t, admin.Create(t.Context(), obj))
	}
	must(t, c.AwaitNodes(t.Context()))
	w.look(t, admin)
	return w
}

// look starts the cache.
func (w *world) look(t *testing.T, admin client.Client) {
	t.Helper()
	caches, err := cache.New(w.cluster.RESTConfig(), cache.Options{Scheme: admin.Scheme(), DefaultTransform: cache.TransformStripManagedFields()})
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = caches.Start(ctx) // it returns an error only when it is started twice
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	for _, kind := range []client.Object{
		&corev1.Namespace{}, &corev1.Pod{}, &batchv1.Job{}, &resourcev1.ResourceClaim{}, &kueue.Workload{}, &berth.GangReservation{},
	} {
		_, err := caches.GetInformer(t.Context(), kind)
		must(t, err)
	}
	w.seen = caches
}

// await polls until check returns nil, and returns its last error when patience ends.
func await(ctx context.Context, what string, check func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-limited.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-tick.C:
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
