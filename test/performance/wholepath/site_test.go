package wholepath

import (
	"context"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/test/scene"
)

const (
	// cubes of 16 hosts each.
	cubes = 13
	hosts = 16 * cubes
	// wideHosts is how many hosts, the first ones, the device of wideDriver spans.
	wideHosts  = 200
	wideDriver = "wide.example.com"
	wideLabel  = "wide.example.com/rack"
)

// ClusterQueues, each with a quota of one share and one cpu a host.
const (
	// unchecked is admitted to by Kueue alone.
	unchecked = "unchecked"
	// checked has Berth's admission check.
	checked = "checked"
)

// site is a namespace on the cluster with the hardware, for the runs of one benchmark.
type site struct{ *scene.Scene }

// newSite makes the hardware and the queues, once for all sites, and a namespace whose LocalQueue leads to a ClusterQueue.
func newSite(b *testing.B, queue string) *site {
	b.Helper()
	c := shared.ForTest(b)
	scene.Install(b, c)
	s := &site{&scene.Scene{TB: b, Cluster: c, Client: scene.Admin(b, c), Namespace: "bench-" + rand.String(6)}}
	ctx := b.Context()
	all := append(hardware(), queues()...)
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, obj := range all {
		group.Go(func() error {
			if err := s.Client.Create(creating, obj); !apierrors.IsAlreadyExists(err) {
				return err
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	if err := c.AwaitNodes(ctx); err != nil {
		b.Fatal(err)
	}
	if err := c.CreateNamespace(ctx, s.Namespace, nil); err != nil {
		b.Fatal(err)
	}
	s.Create(&kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: scene.LocalQueue},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(queue)},
	})
	for _, class := range []string{single, four, wide} {
		s.Create(s.Template(class))
	}
	s.Eventually("ClusterQueue "+queue, func(ctx context.Context) error { return s.active(ctx, queue) })
	return s
}

// writers is how many requests of the benchmark are under way at once.
const writers = 16

// hardware is a pool of cubes, and a pool with one device over most of the same hosts.
func hardware() []client.Object {
	world := worlds.Cubes(cubes)("p")
	var out []client.Object
	for i, h := range world.Hosts {
		n := dratest.Node(h.Name)
		n.Annotations = map[string]string{"kwok.x-k8s.io/node": "fake"}
		n.Status.Capacity, n.Status.Conditions = n.Status.Allocatable, nil // KWOK makes it Ready
		if i < wideHosts {
			n.Labels[wideLabel] = "0"
		}
		out = append(out, n)
	}
	for _, s := range dratest.Publish(world.Slices) {
		out = append(out, s)
	}
	for _, class := range []string{single, four} {
		out = append(out, dratest.ByTopology(class, worlds.Driver, class))
	}
	return append(out,
		dratest.ByTopology(wide, wideDriver, wide),
		dratest.NewSlice(wide, wideDriver, wide).Device(dratest.NewDevice("rack-0", wide).Matching(
			corev1.NodeSelectorRequirement{Key: wideLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{"0"}},
		)).ResourceSlice,
	)
}

func queues() []client.Object {
	const flavor = "hosts"
	out := []client.Object{
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: flavor}},
		&kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: scene.Check}, Spec: kueue.AdmissionCheckSpec{ControllerName: berth.ControllerName}},
	}
	for _, name := range []string{unchecked, checked} {
		q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{corev1.ResourceCPU, shares},
				Flavors: []kueue.FlavorQuotas{{Name: flavor, Resources: []kueue.ResourceQuota{
					{Name: corev1.ResourceCPU, NominalQuota: *resource.NewQuantity(hosts, resource.DecimalSI)},
					{Name: shares, NominalQuota: *resource.NewQuantity(hosts, resource.DecimalSI)},
				}}},
			}},
		}}
		if name == checked {
			q.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: scene.Check}}}
		}
		out = append(out, q)
	}
	return out
}
