package scene

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/invariants"
)

// Patience is how long a condition is awaited before a test fails: long, because on a busy machine everything comes late.
const Patience = 2 * time.Minute

// Names of the objects that every scene shares.
const (
	Pool         = "tpus"
	Check        = "berth"
	Flavor       = "tpu-v5e"
	ClusterQueue = "research"
	LocalQueue   = "queue"
)

// Scene is one namespace on a test cluster that Berth is installed on.
type Scene struct {
	testing.TB
	Cluster *cluster.Cluster
	// Client is the administrator's, straight to the API server.
	Client    client.WithWatch
	Namespace string
	// Watcher fails the test at the first breach of an invariant.
	Watcher *invariants.Watcher
	// running are the controllers that Run started.
	running []*Controller
}

// New installs Berth and the scene's objects and makes a namespace with a queue and one template per shape. It may be
// called for several tests on one cluster: what exists stays. From then to the end of the test the whole cluster is
// watched; opts change how.
func New(t testing.TB, c *cluster.Cluster, opts ...invariants.Option) *Scene {
	t.Helper()
	s := &Scene{TB: t, Cluster: c, Client: Admin(t, c), Namespace: "ml-" + rand.String(6)}
	Install(t, c)
	s.Watcher = Watch(t, c, opts...)
	root := repository(t)
	s.ok(c.Ensure(t.Context(), filepath.Join(root, "test/testdata/kep4815-multihost.yaml")), "loading the KEP pool")
	s.ok(c.Ensure(t.Context(), filepath.Join(root, "test/testdata/queues.yaml")), "loading the queues")
	s.ok(c.CreateNamespace(t.Context(), s.Namespace, nil), "creating the namespace")
	s.queue()
	for _, class := range []string{"tpu-2x2", "tpu-4x4", "tpu-4x8", "tpu-8x8"} {
		s.Create(s.Template(class))
	}
	return s
}

// Install applies Berth's own manifests: the kinds, its permissions and the policies.
func Install(t testing.TB, c *cluster.Cluster) {
	t.Helper()
	root := repository(t)
	for _, part := range []string{"config/crd", "config/rbac", "config/policy"} {
		files, err := filepath.Glob(filepath.Join(root, part, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if filepath.Base(f) == "kustomization.yaml" {
				continue
			}
			if err := c.Ensure(t.Context(), f); err != nil {
				t.Fatalf("installing %s: %v", f, err)
			}
		}
	}
}

// Watch judges the cluster until the end of the test, with the names of writers if the cluster keeps an audit log.
func Watch(t testing.TB, c *cluster.Cluster, opts ...invariants.Option) *invariants.Watcher {
	t.Helper()
	if log := c.AuditLog(); log != "" {
		opts = append(opts, invariants.WithAuditLog(log))
	}
	return invariants.Watch(t, c.RESTConfig(), opts...)
}

// Admin is a client with all rights, for the kinds that Berth knows.
func Admin(t testing.TB, c *cluster.Cluster) client.WithWatch {
	t.Helper()
	scheme, err := controllers.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	cl, err := client.NewWithWatch(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

func repository(t testing.TB) string {
	t.Helper()
	root, err := cluster.FindRepository(".")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// Create creates an object or fails the test.
func (s *Scene) Create(obj client.Object) {
	s.Helper()
	s.ok(s.Client.Create(s.Context(), obj), fmt.Sprintf("creating %T %s", obj, obj.GetName()))
}

// Get reads an object or fails the test.
func (s *Scene) Get(obj client.Object) {
	s.Helper()
	s.ok(s.Client.Get(s.Context(), client.ObjectKeyFromObject(obj), obj), fmt.Sprintf("reading %T %s", obj, obj.GetName()))
}

func (s *Scene) ok(err error, doing string) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", doing, err)
	}
}

// Template is the ResourceClaimTemplate of a class; it is named after it.
func (s *Scene) Template(class string) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: class},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{
				Name:    "slice",
				Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
			}},
		}}},
	}
}

// Eventually waits until check returns nil, and fails with its last error.
func (s *Scene) Eventually(what string, check func(context.Context) error) {
	s.Helper()
	if err := s.Await(s.Context(), check); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// Await polls a condition on the API server until it holds or Patience ends. It gives up at once with ErrEnded, and what
// the last look found, when a controller of Run has ended that nobody stopped.
func (s *Scene) Await(ctx context.Context, check func(context.Context) error) error {
	// The last look may end after Patience: one that the client gives up would hide what the looks before it found.
	ctx, cancel := context.WithTimeout(ctx, Patience+10*time.Second)
	defer cancel()
	end := time.After(Patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if fallen := s.fallen(); fallen != nil {
			return fmt.Errorf("%w; until then: %w", fallen, err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-end:
			return err
		case <-tick.C:
		}
	}
}

// WorkloadOf is the Workload of a Job; an error when there is none (yet).
func (s *Scene) WorkloadOf(ctx context.Context, job *batchv1.Job) (*kueue.Workload, error) {
	var list kueue.WorkloadList
	if err := s.Client.List(ctx, &list, client.InNamespace(job.Namespace)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if ref := metav1.GetControllerOf(&list.Items[i]); ref != nil && ref.Name == job.Name && (job.UID == "" || ref.UID == job.UID) {
			return &list.Items[i], nil
		}
	}
	return nil, fmt.Errorf("Job %s has no Workload", job.Name)
}

// Reserved is the condition GangReserved of a Job's Workload as "status reason: message".
func (s *Scene) Reserved(ctx context.Context, job *batchv1.Job) (string, error) {
	wl, err := s.WorkloadOf(ctx, job)
	if err != nil {
		return "", err
	}
	c := apimeta.FindStatusCondition(wl.Status.Conditions, berth.ConditionGangReserved)
	if c == nil {
		return "", fmt.Errorf("Workload %s has no condition GangReserved; conditions are %v", wl.Name, conditions(wl))
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), nil
}

func conditions(wl *kueue.Workload) []string {
	var all []string
	for _, c := range wl.Status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	for _, ac := range wl.Status.AdmissionChecks {
		all = append(all, fmt.Sprintf("check %s=%s (%s)", ac.Name, ac.State, ac.Message))
	}
	return all
}

// PodsOf are the pods of a Job, those that have ended or are being deleted among them.
func (s *Scene) PodsOf(ctx context.Context, job *batchv1.Job) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := s.Client.List(ctx, &list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	return list.Items, err
}
