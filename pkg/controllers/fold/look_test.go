package fold

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/observability"
)

const (
	driver = "tpu.example.com"
	shares = "berth.dev/shares"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// looker is the controller over an API server of its own. What it writes and says is noted.
type looker struct {
	*reconciler
	client.Client
	t   *testing.T
	now time.Time
	// noting guards writes and events: targets are written at once.
	noting   sync.Mutex
	writes   []string
	events   []string
	registry *prometheus.Registry
	// before, if set, is called before each write with the same words that are noted, and may refuse it.
	before func(wrote string) error
}

// newLooker begins with a site of four hosts: four singles, two pairs and a quad, all on counters, of one driver.
func newLooker(t *testing.T, objects ...client.Object) *looker {
	l := &looker{t: t, now: start}
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, kueue.AddToScheme, berth.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	wrote := func(verb string, obj client.Object) error {
		note := verb + " " + obj.GetObjectKind().GroupVersionKind().Kind
		if obj.GetObjectKind().GroupVersionKind().Kind == "" {
			kind := fmt.Sprintf("%T", obj)
			note = verb + " " + kind[strings.LastIndex(kind, ".")+1:]
		}
		l.noting.Lock()
		l.writes = append(l.writes, note)
		l.noting.Unlock()
		if l.before != nil {
			return l.before(note)
		}
		return nil
	}
	l.Client = fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).
		WithStatusSubresource(&berth.CapacityFold{}, &kueue.ClusterQueue{}, &kueue.Cohort{}, &kueue.Workload{}, &berth.GangReservation{}, &corev1.Node{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if err := wrote("create", obj); err != nil {
					return err
				}
				if obj.GetUID() == "" {
					obj.SetUID(types.UID("uid-of-" + obj.GetName()))
				}
				return c.Create(ctx, obj, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
				if err := wrote("update", obj); err != nil {
					return err
				}
				return c.Update(ctx, obj, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, name string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
				if err := wrote("update "+name, obj); err != nil {
					return err
				}
				return c.SubResource(name).Update(ctx, obj, opts...)
			},
		}).Build()
	l.restart()
	for _, obj := range hardware() {
		l.create(obj)
	}
	return l
}

// restart begins a new process over what the former one left.
func (l *looker) restart() {
	l.registry = prometheus.NewRegistry()
	metrics, err := observability.NewMetrics(l.registry)
	if err != nil {
		l.t.Fatal(err)
	}
	l.reconciler = &reconciler{
		Dependencies: &shell.Dependencies{
			Client: l.Client, Live: l.Client, Now: func() time.Time { return l.now }, Ready: func(context.Context) error { return nil },
			Recorder: recorder{l}, Metrics: metrics,
		},
		Options: Options{Writer: l.Client, Cluster: cluster.New()},
		kept:    map[types.UID]*kept{},
	}
}

type recorder struct{ *looker }

func (r recorder) Eventf(about, _ runtime.Object, kind, why, _, note string, args ...any) {
	name := about.(metav1.Object).GetName()
	r.noting.Lock()
	defer r.noting.Unlock()
	r.events = append(r.events, fmt.Sprintf("%s: %s %s %s", name, kind, why, fmt.Sprintf(note, args...)))
}

func hardware() []client.Object {
	hosts := []string{"h0", "h1", "h2", "h3"}
	devices := dratest.NewSlice("devices", driver, "pod-a").Of(2)
	out := []client.Object{
		dratest.Pool(driver), dratest.ByTopology("single", driver, "1"), dratest.ByTopology("pair", driver, "2"), dratest.ByTopology("quad", driver, "4"),
		dratest.Node("other"),
	}
	for i, h := range hosts {
		n := dratest.Node(h)
		n.Labels["example.com/pod"] = "a"
		out = append(out, n)
		devices = devices.Device(dratest.NewDevice(fmt.Sprintf("single-%d", i), "1").On(h).Consumes("cs", "4", h))
	}
	for i := range 2 {
		devices = devices.Device(dratest.NewDevice(fmt.Sprintf("pair-%d", i), "2").On(hosts[2*i:2*i+2]...).Consumes("cs", "4", hosts[2*i:2*i+2]...))
	}
	devices = devices.Device(dratest.NewDevice("quad-0", "4").On(hosts...).Consumes("cs", "4", hosts...))
	counters := dratest.NewSlice("counters", driver, "pod-a").Of(2).Counters("cs", "4", hosts...)
	return append(out, devices.ResourceSlice, counters.ResourceSlice)
}

func (l *looker) create(obj client.Object) {
	l.t.Helper()
	if err := l.Create(l.t.Context(), obj); err != nil {
		l.t.Fatal(err)
	}
	l.writes = nil
}

// looks looks once and returns what was written for that, and after how long it wants to look again.
func (l *looker) looks() (string, time.Duration) {
	l.t.Helper()
	l.writes = nil
	result, err := l.Reconcile(l.t.Context(), ctrl.Request{})
	if err != nil {
		l.writes = append(l.writes, "error "+err.Error())
	}
	slices.Sort(l.writes)
	return strings.Join(l.writes, ", "), result.RequeueAfter
}

// wrote looks once and asserts what is written.
func (l *looker) wrote(want string) {
	l.t.Helper()
	if got, _ := l.looks(); got != want {
		l.t.Errorf("writes %q, want %q", got, want)
	}
}

// said asserts what was told in events since it was asked last.
func (l *looker) said(want ...string) {
	l.t.Helper()
	if !slices.Equal(l.events, want) {
		l.t.Errorf("events:\n%s\nwant:\n%s", strings.Join(l.events, "\n"), strings.Join(want, "\n"))
	}
	l.events = nil
}

func read[T client.Object](l *looker, name string, into T) T {
	l.t.Helper()
	if err := l.Get(l.t.Context(), client.ObjectKey{Name: name}, into); err != nil {
		l.t.Fatal(err)
	}
	return into
}

// edit changes an object as somebody else.
func edit[T client.Object](l *looker, name string, into T, change func(T)) {
	l.t.Helper()
	before := l.before
	l.before = nil
	defer func() { l.before = before }()
	read(l, name, into)
	change(into)
	if err := l.Update(l.t.Context(), into); err != nil {
		l.t.Fatal(err)
	}
	if n, is := any(into).(*corev1.Node); is {
		status := n.DeepCopy()
		change(any(status).(T))
		if err := l.Status().Update(l.t.Context(), status); err != nil {
			l.t.Fatal(err)
		}
	}
}

func broken(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }
func sound(n *corev1.Node)  { n.Status.Conditions[0].Status = corev1.ConditionTrue }

// newFold counts pairs and quads for one Cohort.
func newFold(change ...func(*berth.CapacityFold)) *berth.CapacityFold {
	f := &berth.CapacityFold{
		ObjectMeta: metav1.ObjectMeta{Name: "tpus", UID: "fold-1", Generation: 1},
		Spec: berth.CapacityFoldSpec{
			DeviceClasses: []string{"pair", "quad"}, Flavor: "tpu-v5e", Resource: shares, Mode: berth.FoldPhysical, HysteresisSeconds: ptr.To[int32](5),
			Targets: []berth.FoldTarget{{Kind: berth.FoldCohort, Name: "research", Weight: ptr.To[int32](1)}},
		},
	}
	for _, c := range change {
		c(f)
	}
	return f
}

func live(f *berth.CapacityFold) { f.Spec.Mode = berth.FoldLive }

// into sets the targets, each of weight 1: "ClusterQueue a".
func into(targets ...string) func(*berth.CapacityFold) {
	return func(f *berth.CapacityFold) {
		f.Spec.Targets = nil
		for _, t := range targets {
			kind, name, _ := strings.Cut(t, " ")
			f.Spec.Targets = append(f.Spec.Targets, berth.FoldTarget{Kind: berth.FoldTargetKind(kind), Name: name, Weight: ptr.To[int32](1)})
		}
	}
}

func groups(number string) []kueue.ResourceGroup {
	return []kueue.ResourceGroup{{
		CoveredResources: []corev1.ResourceName{shares},
		Flavors: []kueue.FlavorQuotas{{Name: "tpu-v5e", Resources: []kueue.ResourceQuota{
			{Name: shares, NominalQuota: resource.MustParse(number)},
		}}},
	}}
}

// queue is a ClusterQueue with that much quota.
func queue(name, cohort, number string) *kueue.ClusterQueue {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("queue-" + name), Generation: 1}}
	q.Spec.CohortName = kueue.CohortReference(cohort)
	q.Spec.ResourceGroups = groups(number)
	return q
}

func (l *looker) quota(kind, name string) string {
	l.t.Helper()
	var in []kueue.ResourceGroup
	if kind == "Cohort" {
		in = read(l, name, &kueue.Cohort{}).Spec.ResourceGroups
	} else {
		in = read(l, name, &kueue.ClusterQueue{}).Spec.ResourceGroups
	}
	q := adaptkueue.QuotaIn(in, "tpu-v5e", shares)
	if q == nil {
		return "none"
	}
	return q.NominalQuota.String()
}

// holds asserts the quota of a target.
func (l *looker) holds(kind, name, want string) {
	l.t.Helper()
	if got := l.quota(kind, name); got != want {
		l.t.Errorf("%s %s holds %s, want %s", kind, name, got, want)
	}
}

func (l *looker) fold() *berth.CapacityFold {
	l.t.Helper()
	return read(l, "tpus", &berth.CapacityFold{})
}

// gang puts a gang of that many pods on a device, charged and running.
func (l *looker) gang(name, device string, hosts ...string) (kueuetest.Workload, *berth.GangReservation) {
	l.t.Helper()
	job := kueuetest.NewJob(name, "pair", int32(len(hosts)))
	wl := kueuetest.NewWorkload(job).QuotaReserved(kueuetest.Start)
	wl.Status.Admission.PodSetAssignments[0].ResourceUsage = corev1.ResourceList{shares: *resource.NewQuantity(int64(len(hosts)), resource.DecimalSI)}
	res := kueuetest.NewReservation(name, wl, job, device, hosts...)
	wl.ResourceVersion, res.ResourceVersion = "", ""
	l.create(wl.Workload)
	l.create(res)
	return wl, res
}

// change writes the status of an object.
func (l *looker) change(obj client.Object) {
	l.t.Helper()
	if err := l.Status().Update(l.t.Context(), obj); err != nil {
		l.t.Fatal(err)
	}
}

func TestFollowsTheHardware(t *testing.T) {
	l := newLooker(t)
	l.wrote("")
	l.create(newFold())
	l.wrote("create Cohort, create ResourceFlavor, update CapacityFold, update status CapacityFold")
	l.holds("Cohort", "research", "4")
	l.said(
		"tpus: Normal FlavorCreated ResourceFlavor tpu-v5e",
		"tpus: Normal CapacityRose 4 berth.dev/shares of flavor tpu-v5e, 0 before",
		"tpus: Normal CohortCreated Cohort research, with 4 berth.dev/shares of flavor tpu-v5e",
	)
	for range 3 {
		l.now = l.now.Add(time.Minute)
		l.wrote("")
	}

	edit(l, "h1", &corev1.Node{}, broken)
	if wrote, again := l.looks(); wrote != "" || again != 5*time.Second {
		t.Errorf("writes %q when the host fails, and looks again after %s", wrote, again)
	}
	l.now = l.now.Add(5*time.Second - 1)
	if wrote, again := l.looks(); wrote != "" || again != 1 {
		t.Errorf("writes %q too early, and looks again after %s", wrote, again)
	}
	l.now = l.now.Add(1)
	l.wrote("update Cohort, update status CapacityFold")
	l.holds("Cohort", "research", "2")
	l.said("tpus: Warning CapacityFell 2 berth.dev/shares of flavor tpu-v5e, 4 before: h1 is not Ready (HostUnusable)")
	l.wrote("")

	edit(l, "h1", &corev1.Node{}, sound)
	l.wrote("update Cohort, update status CapacityFold")
	l.holds("Cohort", "research", "4")
	l.said("tpus: Normal CapacityRose 4 berth.dev/shares of flavor tpu-v5e, 2 before")
	l.measured(`berth_fold_quota_writes_total{kind="Cohort"} 3`, `berth_fold_shares{fold="tpus"} 4`, `berth_fold_targets{state="Following"} 1`)
	l.wrote("")

	if err := l.Delete(t.Context(), l.fold()); err != nil {
		t.Fatal(err)
	}
	l.wrote("update CapacityFold")
	l.wrote("")
	l.measured(`berth_fold_quota_writes_total{kind="Cohort"} 3`)
}

// measured asserts the metrics about folds.
func (l *looker) measured(want ...string) {
	l.t.Helper()
	families, err := l.registry.Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "berth_fold") {
			continue
		}
		for _, m := range f.GetMetric() {
			label := m.GetLabel()[0]
			got = append(got, fmt.Sprintf("%s{%s=%q} %v", f.GetName(), label.GetName(), label.GetValue(), m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
	}
	if !slices.Equal(got, want) {
		l.t.Errorf("measured %q, want %q", got, want)
	}
}

// moreHardware is more hardware, of which a class other selects one device.
func moreHardware() []client.Object {
	return []client.Object{
		dratest.ByTopology("other", driver, "other"),
		dratest.NewSlice("more", driver, "pod-b").Device(dratest.NewDevice("other-0", "other").On("other")).ResourceSlice,
	}
}

// late is a cache that has not seen a change of one ClusterQueue yet.
type late struct {
	client.Client
	queue *kueue.ClusterQueue
}

func (c late) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	if queues, is := list.(*kueue.ClusterQueueList); is {
		for i := range queues.Items {
			if queues.Items[i].Name == c.queue.Name {
				queues.Items[i] = *c.queue
			}
		}
	}
	return err
}

// edited reads an object of a namespace and, where change is given, changes it.
func edited(l *looker, key metav1.ObjectMeta, obj client.Object, change func()) {
	l.t.Helper()
	if err := l.Get(l.t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, obj); err != nil {
		l.t.Fatal(err)
	}
	if change == nil {
		return
	}
	change()
	if err := l.Update(l.t.Context(), obj); err != nil {
		l.t.Fatal(err)
	}
}
