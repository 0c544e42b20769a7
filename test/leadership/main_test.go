package leadership

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	berthv1alpha1 "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/test/cluster"
)

var shared = cluster.Shared{Options: cluster.Options{Without: cluster.OnlyAPIServer}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// The times of the tests. A lease counts in whole seconds, so these are near the shortest that leave a busy machine
// some slack.
const (
	leaseDuration = 4 * time.Second
	renewDeadline = 3 * time.Second
	writeTimeout  = time.Second
	// patience is for things that happen soon or never.
	patience = 30 * time.Second
)

// world is one test's share of the cluster: a namespace with its own Lease.
type world struct {
	cluster   *cluster.Cluster
	namespace string
	client    client.Client
	leases    kubernetes.Interface
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := shared.ForTest(t)
	root, err := cluster.FindRepository(".")
	must(t, err)
	must(t, c.Apply(t.Context(), filepath.Join(root, "config/crd")))
	scheme, err := controllers.NewScheme()
	must(t, err)
	admin, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	must(t, err)
	namespace, err := c.Client().CoreV1().Namespaces().Create(t.Context(), namespaceOf(t), metav1.CreateOptions{})
	must(t, err)
	w := &world{cluster: c, namespace: namespace.Name, client: admin, leases: c.Client()}
	t.Cleanup(func() {
		// There is no kube-controller-manager to empty the namespace, and a takeover looks at all of them.
		must(t, admin.DeleteAllOf(context.Background(), &resourcev1.ResourceClaim{}, client.InNamespace(w.namespace)))
	})
	return w
}

func (w *world) config() configv1alpha1.BerthConfiguration {
	config := configv1alpha1.Default()
	config.LeaderElection.Namespace = w.namespace
	config.LeaderElection.LeaseDuration.Duration = leaseDuration
	config.LeaderElection.RenewDeadline.Duration = renewDeadline
	config.LeaderElection.RetryPeriod.Duration = 200 * time.Millisecond
	config.LeaderElection.WriteTimeout.Duration = writeTimeout
	config.Metrics.BindAddress = configv1alpha1.Off
	config.Health.BindAddress = configv1alpha1.Off
	return config
}

// unhurried has so long a lease and so long writes that nothing which waits for their end is done within patience.
func unhurried(config *configv1alpha1.BerthConfiguration) {
	config.LeaderElection.LeaseDuration.Duration = 3 * patience
	config.LeaderElection.RenewDeadline.Duration = patience
	config.LeaderElection.WriteTimeout.Duration = 2 * patience
}

// candidate is a running controller without any of the real controllers.
type candidate struct {
	*controllers.Controller
	*shell.Dependencies
	stop context.CancelFunc
	done chan error
}

func (w *world) run(t *testing.T, name string, wrap func(client.WithWatch) client.WithWatch, configure ...func(*configv1alpha1.BerthConfiguration)) *candidate {
	t.Helper()
	config := w.config()
	for _, f := range configure {
		f(&config)
	}
	c := &candidate{done: make(chan error, 1)}
	var err error
	c.Controller, err = controllers.New(controllers.Options{
		REST:       w.cluster.RESTConfig(),
		Config:     config,
		Identity:   name,
		Logger:     testr.New(t).WithName(name),
		WrapClient: wrap,
		Setups: []controllers.Setup{func(_ manager.Manager, d *shell.Dependencies) error {
			c.Dependencies = d
			return nil
		}},
	})
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	go func() {
		err := c.Run(ctx)
		c.done <- err
		close(c.done)
	}()
	t.Cleanup(func() {
		stop()
		for range c.done { // closed when Run has returned
		}
	})
	return c
}

func (c *candidate) awaitLeading(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, c.Ready(ctx))
}

// awaitEnd returns what Run returned.
func (c *candidate) awaitEnd(t *testing.T) error {
	t.Helper()
	select {
	case err := <-c.done:
		return err
	case <-time.After(patience):
		t.Fatal("the controller runs on")
		return nil
	}
}

func (w *world) holder(t *testing.T) string {
	t.Helper()
	lease, err := w.leases.CoordinationV1().Leases(w.namespace).Get(t.Context(), "berth-controller", metav1.GetOptions{})
	must(t, err)
	return *lease.Spec.HolderIdentity
}

// hold makes the Lease that of a process which is no more, or takes it away from one that is.
func (w *world) hold(t *testing.T, holder string) {
	t.Helper()
	now, seconds := metav1.NowMicro(), int32(leaseDuration/time.Second)
	leases := w.leases.CoordinationV1().Leases(w.namespace)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "berth-controller"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	}
	_, err := leases.Create(t.Context(), lease, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		// In one write: a Lease that is missing for a moment is made anew by who held it.
		var patch []byte
		patch, err = json.Marshal(map[string]any{"spec": lease.Spec})
		must(t, err)
		_, err = leases.Patch(t.Context(), lease.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	must(t, err)
}

// claim creates a ResourceClaim; reservation empty: one that is not Berth's.
func (w *world) claim(t *testing.T, name, reservation string) *resourcev1.ResourceClaim {
	t.Helper()
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "tpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "tpu-4x4"},
		}}}},
	}
	if reservation != "" {
		claim.Labels = map[string]string{berthv1alpha1.LabelReservation: reservation}
		claim.Annotations = map[string]string{berthv1alpha1.AnnotationLeader: "predecessor"}
	}
	must(t, w.client.Create(t.Context(), claim))
	return claim
}

// allocate writes an allocation on the version of claim.
func (w *world) allocate(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "tpu", Driver: "tpu.example.com", Pool: "pod-a", Device: "slice-0"}},
	}}
	return w.client.Status().Update(ctx, claim)
}

func (w *world) current(t *testing.T, claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	t.Helper()
	var found resourcev1.ResourceClaim
	must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(claim), &found))
	return &found
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func namespaceOf(*testing.T) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "leadership-"}}
}
