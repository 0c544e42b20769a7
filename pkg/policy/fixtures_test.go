package policy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/test/cluster"
)

var shared = cluster.Shared{Options: cluster.Options{Without: cluster.OnlyAPIServer}}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(shared.Main(m))
}

// Who writes, under the names of a real installation.
const (
	berth     = "system:serviceaccount:berth-system:berth-controller"
	editor    = "erin"  // the built-in edit role (its source: kube-controller-manager is not there to aggregate)
	carla     = "carla" // cluster-admin by RBAC
	admin     = "admin" // a member of system:masters
	scheduler = "system:kube-scheduler"
	claimsCtl = "system:serviceaccount:kube-system:resource-claim-controller"
	jobCtl    = "system:serviceaccount:kube-system:job-controller"
	jobSetCtl = "system:serviceaccount:jobset-system:jobset-controller-manager"
	gc        = "system:serviceaccount:kube-system:generic-garbage-collector"
)

const users = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-edit}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:aggregate-to-edit"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: erin}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-cluster-admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: carla}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: test-jobset-controller}
rules: [{apiGroups: [batch], resources: [jobs], verbs: [create, update, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-jobset-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: test-jobset-controller}
subjects: [{kind: ServiceAccount, namespace: jobset-system, name: jobset-controller-manager}]
`

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(s)
	_ = v1alpha1.AddToScheme(s)
	return s
}()

// world is a cluster with Berth's manifests, whose policies are known to be in force.
type world struct {
	*cluster.Cluster
	admin client.Client // system:masters
	berth client.Client // with a token of its service account
}

var installed = sync.OnceValues(func() (*world, error) { return install(context.Background(), theCluster) })

var theCluster *cluster.Cluster

// fenced returns the package's world.
func fenced(t *testing.T) *world {
	t.Helper()
	theCluster = shared.ForTest(t)
	w, err := installed()
	must(t, err)
	return w
}

func install(ctx context.Context, c *cluster.Cluster) (*world, error) {
	config := filepath.Join("..", "..", "config")
	if err := c.Apply(ctx, filepath.Join(config, "crd")); err != nil {
		return nil, err
	}
	if err := c.CreateNamespace(ctx, "berth-system", nil); err != nil {
		return nil, err
	}
	if err := c.Apply(ctx, filepath.Join(config, "rbac"), filepath.Join(config, "policy")); err != nil {
		return nil, err
	}
	if err := c.ApplyYAML(ctx, users); err != nil {
		return nil, err
	}
	w := &world{Cluster: c}
	var err error
	if w.admin, err = client.New(c.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	cfg, err := c.ServiceAccountConfig(ctx, "berth-system", "berth-controller")
	if err != nil {
		return nil, err
	}
	if w.berth, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	return w, w.awaitProbe(ctx)
}

// awaitProbe returns when every policy and every fence is in force.
func (w *world) awaitProbe(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		var pools v1alpha1.AcceleratorPoolList
		if last = w.admin.List(ctx, &pools); last != nil {
			return false, nil
		}
		last = policy.Probe(ctx, w.berth, "berth-system", pools.Items).Err()
		return last == nil, nil
	})
	if last != nil {
		return last
	}
	return err
}

// as acts as a user by impersonation; RBAC says what the user may do.
func (w *world) as(t *testing.T, user string) client.Client {
	t.Helper()
	switch user {
	case berth:
		return w.berth
	case admin:
		return w.admin
	}
	var groups []string
	if parts := strings.Split(user, ":"); len(parts) == 4 && parts[1] == "serviceaccount" {
		groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + parts[2]}
	}
	return newClient(t, w.RESTConfigFor(user, groups...))
}

func newClient(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	must(t, err)
	return c
}

// namespace makes one for the test, with the service account that pods need.
func (w *world) namespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	must(t, w.CreateNamespace(t.Context(), name, nil))
	return name
}

// create creates an object as a user. The status of a ResourceClaim is written by Berth if it is Berth's claim and
// otherwise by an administrator, because those who may create claims may not allocate.
func (w *world) create(t *testing.T, user string, object client.Object) {
	t.Helper()
	claim, ok := object.(*resourcev1.ResourceClaim)
	if !ok {
		must(t, w.as(t, user).Create(t.Context(), object))
		return
	}
	status := claim.Status
	must(t, w.as(t, user).Create(t.Context(), claim))
	if status.Allocation == nil {
		return
	}
	claim.Status = status
	writer := w.admin
	if user == berth {
		writer = w.berth
	}
	must(t, writer.Status().Update(t.Context(), claim))
}

// expect checks the outcome of a write: want is empty if it is allowed, and otherwise the whole message of the policy.
func expect(t *testing.T, err error, byPolicy, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("allowed, want %q", want)
	case want != "":
		full := "ValidatingAdmissionPolicy '" + byPolicy + "' with binding '" + byPolicy + "' denied request: " + want
		if !strings.HasSuffix(err.Error(), full) {
			t.Errorf("got  %v\nwant … %s", err, full)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func claim(namespace, name string, change ...func(*resourcev1.ResourceClaim)) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "tpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "tpu-4x4"}},
		}}},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// pinned makes a claim what Berth makes of it: held, allocated and reserved for the Workload.
func pinned(driver, pool string) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		c.Labels = map[string]string{v1alpha1.LabelReservation: "gang-1"}
		c.Annotations = map[string]string{v1alpha1.AnnotationEpoch: "0123456789"}
		c.Finalizers = []string{v1alpha1.FinalizerHold}
		allocated(driver, pool)(c)
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{workloadEntry()}
	}
}

func allocated(driver, pool string) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		c.Status.Allocation = &resourcev1.AllocationResult{
			AllocationTimestamp: ptr.To(metav1.Now()),
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "tpu", Driver: driver, Pool: pool, Device: "slice-4x4-a"},
			}},
		}
	}
}

func workloadEntry() resourcev1.ResourceClaimConsumerReference {
	return resourcev1.ResourceClaimConsumerReference{
		APIGroup: "kueue.x-k8s.io", Resource: "workloads", Name: "job-train", UID: "workload-uid",
	}
}

func podEntry(name string) resourcev1.ResourceClaimConsumerReference {
	return resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: name, UID: types.UID("uid-of-" + name)}
}

func pod(namespace, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "main"}},
		},
	}
	for _, f := range change {
		f(p)
	}
	return p
}
