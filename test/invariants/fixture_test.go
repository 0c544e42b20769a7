package invariants_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/faults"
	"github.com/berth-dev/berth/test/invariants"
)

var shared = cluster.Shared{Options: cluster.Options{Without: cluster.OnlyAPIServer, Audit: true}}

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(shared.Main(m))
}

const (
	limit  = 20 * time.Second
	driver = "tpu.example.com"
	check  = "berth"
)

// recorder stands in for the test that a watcher fails.
type recorder struct {
	testing.TB // the real one, for what is not recorded

	mu       sync.Mutex
	errors   []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// finish does what the end of a test does.
func (r *recorder) finish() []string {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	r.cleanups = nil
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errors
}

// fixture is a namespace, a pool of the same name, and a watcher over them.
//
// The pool has hosts h0 and h1, one counter each; devices: whole takes both, left h0, right h1, solo none.
type fixture struct {
	t       *testing.T
	ctx     context.Context
	c       *cluster.Cluster
	client  client.Client
	ns      string
	rec     *recorder
	lag     *faults.Lag // of the watcher
	watcher *invariants.Watcher
}

var install sync.Once

func newFixture(t *testing.T, opts ...invariants.Option) *fixture {
	t.Helper()
	c := shared.ForTest(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	_, name, sub := strings.Cut(t.Name(), "/")
	if !sub {
		name = t.Name()
	}
	f := &fixture{t: t, ctx: ctx, c: c, ns: strings.ToLower(strings.ReplaceAll(name, "_", "-"))}
	install.Do(func() { f.install() })
	f.client = f.as(c.RESTConfig())
	f.must(c.CreateNamespace(ctx, f.ns, nil))
	t.Cleanup(f.clean)
	f.publish(1, "1", "whole", "left", "right", "solo")
	f.watch(append([]invariants.Option{invariants.WithAuditLog(filepath.Join(c.Dir, "audit.log"))}, opts...)...)
	return f
}

// install puts the kinds in that the watcher knows; nobody serves them here but the tests.
func (f *fixture) install() {
	f.t.Helper()
	root, err := cluster.FindRepository(".")
	f.must(err)
	module := exec.CommandContext(f.ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue")
	module.Dir = root
	dir, err := module.Output()
	f.must(err)
	bases := filepath.Join(strings.TrimSpace(string(dir)), "config", "components", "crd", "bases")
	f.must(f.c.Apply(f.ctx, filepath.Join(root, "config", "crd"),
		filepath.Join(bases, "kueue.x-k8s.io_workloads.yaml"), filepath.Join(bases, "kueue.x-k8s.io_admissionchecks.yaml")))
	f.must(f.as(f.c.RESTConfig()).Create(f.ctx, &kueue.AdmissionCheck{
		ObjectMeta: metav1.ObjectMeta{Name: check}, Spec: kueue.AdmissionCheckSpec{ControllerName: v1alpha1.ControllerName},
	}))
}

func (f *fixture) as(cfg *rest.Config) client.Client {
	f.t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, batchv1.AddToScheme, resourcev1.AddToScheme, kueue.AddToScheme, v1alpha1.AddToScheme,
	} {
		f.must(add(scheme))
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	f.must(err)
	return client.WithFieldOwner(c, "planter")
}

func (f *fixture) watch(opts ...invariants.Option) {
	f.t.Helper()
	f.lag = faults.NewLag()
	f.rec = &recorder{TB: f.t}
	f.t.Cleanup(func() { f.lag.Release(); f.rec.finish() })
	f.watcher = invariants.Watch(f.rec, f.lag.Config(f.c.RESTConfig()), opts...)
}

// clean leaves nothing that the next test's watcher could take offence at.
func (f *fixture) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &resourcev1.ResourceClaimList{}, &v1alpha1.GangReservationList{}, &kueue.WorkloadList{},
		&corev1.NodeList{}, &resourcev1.ResourceSliceList{}, &v1alpha1.AcceleratorPoolList{},
	} {
		f.must(f.client.List(ctx, list))
		f.must(meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			if len(obj.GetFinalizers()) > 0 {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				if err := f.client.Patch(ctx, obj, patch); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
			return client.IgnoreNotFound(f.client.Delete(ctx, obj, client.GracePeriodSeconds(0)))
		}))
	}
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// publish writes the pool at a generation: two counters with a value, and some of the devices.
func (f *fixture) publish(generation int64, value string, devices ...string) {
	f.t.Helper()
	spec := resourcev1.ResourceSliceSpec{
		Driver: driver, AllNodes: ptr.To(true),
		Pool: resourcev1.ResourcePool{Name: f.ns, Generation: generation, ResourceSliceCount: 2},
	}
	counters, published := *spec.DeepCopy(), *spec.DeepCopy()
	counter := resourcev1.Counter{Value: resource.MustParse(value)}
	counters.AllNodes = ptr.To(true)
	counters.SharedCounters = []resourcev1.CounterSet{{Name: "hosts", Counters: map[string]resourcev1.Counter{"h0": counter, "h1": counter}}}
	one := resourcev1.Counter{Value: resource.MustParse("1")}
	takes := map[string]map[string]resourcev1.Counter{
		"whole": {"h0": one, "h1": one}, "left": {"h0": one}, "right": {"h1": one},
	}
	for _, name := range devices {
		d := resourcev1.Device{Name: name}
		if charge := takes[name]; charge != nil {
			d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "hosts", Counters: charge}}
		}
		published.Devices = append(published.Devices, d)
	}
	for name, spec := range map[string]resourcev1.ResourceSliceSpec{"-counters": counters, "-devices": published} {
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: f.ns + name}}
		err := f.client.Get(f.ctx, client.ObjectKeyFromObject(slice), slice)
		f.must(client.IgnoreNotFound(err))
		slice.Spec = spec
		if err != nil {
			f.must(f.client.Create(f.ctx, slice))
		} else {
			f.must(f.client.Update(f.ctx, slice))
		}
	}
}

// gang is a Workload with a reservation of devices, one claim each, and one pod per claim.
type gang struct {
	f           *fixture
	workload    *kueue.Workload
	reservation *v1alpha1.GangReservation
	claims      []*resourcev1.ResourceClaim
}

// workload creates a Workload with quota.
func (f *fixture) workload(name string) *kueue.Workload {
	f.t.Helper()
	workload := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name},
		Spec: kueue.WorkloadSpec{PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "none"}}},
		}}}},
	}
	f.must(f.client.Create(f.ctx, workload))
	meta.SetStatusCondition(&workload.Status.Conditions, metav1.Condition{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue, Reason: "Test"})
	f.must(f.client.Status().Update(f.ctx, workload))
	return workload
}

// reserve creates a reservation and its claims, not yet allocated, one for each device.
func (f *fixture) reserve(workload *kueue.Workload, epoch string, devices ...string) *gang {
	f.t.Helper()
	prefix := v1alpha1.ClaimNamePrefix + workload.Name + "." + epoch
	set := v1alpha1.ReservedPodSet{
		Name: "main", Count: int32(len(devices)),
		Claims: []v1alpha1.ReservedClaim{{PodClaim: "tpu", Prefix: prefix, PodsPerClaim: 1}},
	}
	for i, device := range devices {
		set.Hosts = append(set.Hosts, fmt.Sprintf("h%d", i))
		set.Claims[0].Devices = append(set.Claims[0].Devices, v1alpha1.ReservedDevice{
			Instance: int32(i), Request: "r", Driver: driver, Pool: f.ns, Generation: 1, Device: device, Hosts: []string{fmt.Sprintf("h%d", i)},
		})
	}
	r := &v1alpha1.GangReservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: workload.Name + "-" + epoch, Finalizers: []string{v1alpha1.FinalizerReservation}},
		Spec: v1alpha1.GangReservationSpec{
			WorkloadRef: v1alpha1.WorkloadReference{Name: workload.Name, UID: workload.UID},
			Owner:       v1alpha1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: workload.Name, UID: jobUID(workload)},
			Check:       check, Epoch: epoch, QueuedAt: metav1.Now(), PodSets: []v1alpha1.ReservedPodSet{set},
		},
	}
	f.must(f.client.Create(f.ctx, r))
	g := &gang{f: f, workload: workload, reservation: r}
	for i := range devices {
		story, err := json.Marshal(set.Claims[0].Devices[i : i+1])
		f.must(err)
		claim := f.claim(fmt.Sprintf("%s-%d", prefix, i))
		claim.Labels = map[string]string{v1alpha1.LabelReservation: r.Name}
		claim.Finalizers = []string{v1alpha1.FinalizerHold}
		claim.Annotations = map[string]string{
			v1alpha1.AnnotationReservationUID: string(r.UID), v1alpha1.AnnotationEpoch: epoch,
			v1alpha1.AnnotationWorkload: workload.Name, v1alpha1.AnnotationWorkloadUID: string(workload.UID),
			v1alpha1.AnnotationDevices: string(story),
		}
		f.must(f.client.Create(f.ctx, claim))
		g.claims = append(g.claims, claim)
	}
	return g
}

// jobUID is the same for every Workload of one name, as Kueue names a Workload after its Job and may make it again.
func jobUID(workload *kueue.Workload) types.UID { return types.UID("job-" + workload.Name) }

func (f *fixture) claim(name string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "tpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		}}}},
	}
}

// allocate writes a device and reservedFor entries into a claim's status.
func (f *fixture) allocate(claim *resourcev1.ResourceClaim, device string, entries ...resourcev1.ResourceClaimConsumerReference) {
	f.t.Helper()
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: driver, Pool: f.ns, Device: device}},
	}}
	claim.Status.ReservedFor = entries
	f.must(f.client.Status().Update(f.ctx, claim))
}

func (g *gang) hold() resourcev1.ResourceClaimConsumerReference {
	return resourcev1.ResourceClaimConsumerReference{
		APIGroup: kueue.GroupVersion.Group, Resource: "workloads", Name: g.workload.Name, UID: g.workload.UID,
	}
}

// allocate allocates and holds claims of the gang; none named: all.
func (g *gang) allocate(instances ...int) *gang {
	g.f.t.Helper()
	for i, claim := range g.claims {
		if len(instances) == 0 || contains(instances, i) {
			g.f.allocate(claim, g.reservation.Spec.PodSets[0].Claims[0].Devices[i].Device, g.hold())
		}
	}
	return g
}

func contains(all []int, one int) bool {
	for _, i := range all {
		if i == one {
			return true
		}
	}
	return false
}

// state writes the check's state; Ready comes with the reservation's name.
func (g *gang) state(state kueue.CheckState) *gang {
	g.f.t.Helper()
	s := kueue.AdmissionCheckState{Name: check, State: state, LastTransitionTime: metav1.Now()}
	if state == kueue.CheckStateReady {
		s.PodSetUpdates = []kueue.PodSetUpdate{{Name: "main", Labels: map[string]string{v1alpha1.LabelReservation: g.reservation.Name}}}
	}
	g.workload.Status.AdmissionChecks = []kueue.AdmissionCheckState{s}
	g.f.must(g.f.client.Status().Update(g.f.ctx, g.workload))
	return g
}

func (g *gang) phase(phase v1alpha1.ReservationPhase) *gang {
	g.f.t.Helper()
	g.reservation.Status.Phase = phase
	g.f.must(g.f.client.Status().Update(g.f.ctx, g.reservation))
	return g
}

// pod creates the pod of a rank and seats it; node may be empty.
func (g *gang) pod(name string, rank int, node string) *corev1.Pod {
	g.f.t.Helper()
	claim := g.claims[rank]
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.f.ns, Name: name,
			Labels: map[string]string{
				v1alpha1.LabelReservation: g.reservation.Name, batchv1.JobCompletionIndexAnnotation: fmt.Sprint(rank),
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: g.workload.Name, UID: jobUID(g.workload), Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "none"}},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "tpu", ResourceClaimName: &claim.Name}},
		},
	}
	g.f.must(g.f.client.Create(g.f.ctx, pod))
	g.f.must(g.f.client.Get(g.f.ctx, client.ObjectKeyFromObject(claim), claim))
	claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: name, UID: pod.UID})
	g.f.must(g.f.client.Status().Update(g.f.ctx, claim))
	return pod
}

func (f *fixture) podPhase(pod *corev1.Pod, phase corev1.PodPhase) {
	f.t.Helper()
	pod.Status.Phase = phase
	f.must(f.client.Status().Update(f.ctx, pod))
}

func (f *fixture) delete(obj client.Object) {
	f.t.Helper()
	f.must(f.client.Delete(f.ctx, obj, client.GracePeriodSeconds(0)))
}

// clear ends a claim's allocation.
func (g *gang) clear(instance int) {
	g.f.t.Helper()
	claim := g.claims[instance]
	g.f.must(g.f.client.Get(g.f.ctx, client.ObjectKeyFromObject(claim), claim))
	claim.Status = resourcev1.ResourceClaimStatus{}
	g.f.must(g.f.client.Status().Update(g.f.ctx, claim))
}

// unfinalize takes all finalizers off.
func (f *fixture) unfinalize(obj client.Object) {
	f.t.Helper()
	f.must(f.client.Get(f.ctx, client.ObjectKeyFromObject(obj), obj))
	obj.SetFinalizers(nil)
	f.must(f.client.Update(f.ctx, obj))
}

// release is what Berth does in the right order, given that no pod may run.
func (g *gang) release() {
	g.f.t.Helper()
	g.phase(v1alpha1.PhaseReleasing)
	for i, claim := range g.claims {
		g.f.delete(claim)
		g.clear(i)
		g.f.unfinalize(claim)
	}
	g.f.delete(g.reservation)
	g.f.unfinalize(g.reservation)
}

// node creates a Node that is Ready or not.
func (f *fixture) node(name string, ready corev1.ConditionStatus) *corev1.Node {
	f.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	f.must(f.client.Create(f.ctx, node))
	f.nodeReady(node, ready)
	return node
}

func (f *fixture) nodeReady(node *corev1.Node, ready corev1.ConditionStatus) {
	f.t.Helper()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Test"}}
	f.must(f.client.Status().Update(f.ctx, node))
}
