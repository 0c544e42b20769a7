package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// looker is the controller over an API server that it writes to; nobody answers its probes.
type looker struct {
	*reconciler
	client.Client
	writes []string
	probes int
	now    time.Time
	// refuses makes writes of a kind fail.
	refuses string
}

func newLooker(t *testing.T, objects ...client.Object) *looker {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, kueue.AddToScheme, berth.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	l := &looker{now: start}
	wrote := func(verb string, obj client.Object) error {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1")
		kind = kind[strings.LastIndex(kind, ".")+1:]
		l.writes = append(l.writes, verb+" "+kind)
		if l.refuses == kind {
			return errors.New(kind + " is refused")
		}
		return nil
	}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithStatusSubresource(&berth.AcceleratorPool{}, &kueue.AdmissionCheck{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				return errors.Join(wrote("create", obj), c.Create(ctx, obj, opts...))
			},
			Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
				return errors.Join(wrote("update", obj), c.Update(ctx, obj, opts...))
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				var options client.DeleteOptions
				if options.ApplyOptions(opts); options.Preconditions == nil || ptr.Deref(options.Preconditions.UID, "") != obj.GetUID() {
					return fmt.Errorf("%s is deleted whichever it is", obj.GetName())
				}
				return errors.Join(wrote("delete", obj), c.Delete(ctx, obj, opts...))
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, name string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
				return errors.Join(wrote("update "+name, obj), c.SubResource(name).Update(ctx, obj, opts...))
			},
		}).Build()
	l.Client = c
	prober := interceptor.NewClient(c, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			l.probes++
			return errors.New("no answer")
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			l.probes++
			return errors.New("no answer")
		},
	})
	l.reconciler = &reconciler{
		Dependencies: &shell.Dependencies{Client: c, Now: func() time.Time { return l.now }, Ready: func(context.Context) error { return nil }},
		Options:      Options{Fence: NewFence(), Prober: prober, Cluster: cluster.New(), TaintRules: true, Namespace: "berth-system"},
	}
	return l
}

// looks looks once and returns what was written for that, sorted.
func (l *looker) looks(t *testing.T) string {
	t.Helper()
	l.writes = nil
	if _, err := l.Reconcile(t.Context(), ctrl.Request{}); err != nil {
		l.writes = append(l.writes, "error "+err.Error())
	}
	slices.Sort(l.writes)
	return strings.Join(l.writes, ", ")
}

func named(name string, change func(*berth.AcceleratorPool)) *berth.AcceleratorPool {
	p := dratest.Pool(driver)
	p.Name, p.Generation = name, 1
	change(p)
	return p
}

func TestLookWritesWhatChanged(t *testing.T) {
	foreign := kueuetest.NewCheck("foreign")
	foreign.Spec.ControllerName = "other"
	l := newLooker(t, named("tpus", func(*berth.AcceleratorPool) {}), kueuetest.NewCheck("berth"), foreign)
	if got, want := l.looks(t), "create DeviceTaintRule, update status AcceleratorPool, update status AdmissionCheck"; got != want {
		t.Errorf("the first look writes %s, want %s", got, want)
	}
	for range 3 {
		l.now = l.now.Add(time.Minute)
		if got := l.looks(t); got != "" {
			t.Errorf("a look that finds nothing new writes %s", got)
		}
	}
}

// The taints spare kube-scheduler vain attempts. That they cannot be written stops nothing else.
func TestTaintsThatAreRefused(t *testing.T) {
	l := newLooker(t, named("tpus", func(*berth.AcceleratorPool) {}), kueuetest.NewCheck("berth"))
	l.refuses = "DeviceTaintRule"
	got := l.looks(t)
	if !strings.Contains(got, "error creating DeviceTaintRule") || !strings.Contains(got, "update status AcceleratorPool") || l.probes == 0 {
		t.Errorf("%d probes, and it writes %s", l.probes, got)
	}
}

// A burst of looks about claims and nodes does not become a burst of dry runs.
func TestLooksShareAProbe(t *testing.T) {
	l := newLooker(t, named("tpus", func(*berth.AcceleratorPool) {}))
	tried := func() bool {
		before := l.probes
		l.looks(t)
		return l.probes > before
	}
	if !tried() || tried() {
		t.Fatal("the first look must probe, and the second not")
	}
	l.now = l.now.Add(probeAgain - 1)
	if tried() {
		t.Error("a fence that does not stand is tried again too soon")
	}
	l.now = l.now.Add(1)
	if !tried() {
		t.Error("a fence that does not stand is not tried again")
	}
	if err := l.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "b"}}); err != nil {
		t.Fatal(err)
	}
	if !tried() || tried() {
		t.Error("a new binding is not tried at once and once")
	}
	for range 2 {
		p := &berth.AcceleratorPool{}
		if err := l.Get(t.Context(), client.ObjectKey{Name: "tpus"}, p); err != nil {
			t.Fatal(err)
		}
		p.Labels = map[string]string{"a": "b"}
		if err := l.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if tried() {
			t.Error("a label is tried")
		}
	}
}

func TestTaint(t *testing.T) {
	rules := func(p *berth.AcceleratorPool, pools ...string) map[string]bool {
		names := map[string]bool{}
		for _, r := range policy.FenceRules(p, pools) {
			names[r.Name] = true
		}
		return names
	}
	selecting := named("tpus", func(p *berth.AcceleratorPool) { p.Spec.PoolSelector = &berth.PoolSelector{Prefixes: []string{"pod-"}} })
	other := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "an-administrators"}}
	left := policy.FenceRules(named("gone", func(*berth.AcceleratorPool) {}), nil)[0]
	left.UID = "left"
	edited := policy.FenceRules(selecting, []string{"pod-a"})[0]
	edited.Spec.Taint.Effect = resourcev1.DeviceTaintEffectNoExecute
	stripped := policy.FenceRules(selecting, []string{"pod-b"})[0]
	stripped.Labels = map[string]string{"team": "ml"}
	l := newLooker(t, other, left, edited, stripped)
	read := func() map[string]resourcev1.DeviceTaintEffect {
		var list resourcev1.DeviceTaintRuleList
		if err := l.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		found := map[string]resourcev1.DeviceTaintEffect{}
		for _, r := range list.Items {
			found[r.Name] = r.Spec.Taint.Effect
		}
		return found
	}
	s, err := snapshot.Read(t.Context(), l.Client, true)
	if err != nil {
		t.Fatal(err)
	}
	s.AcceleratorPools = []*berth.AcceleratorPool{
		selecting, named("observed", func(p *berth.AcceleratorPool) { p.Spec.Fence = berth.FenceObserve }),
		named("going", func(p *berth.AcceleratorPool) { p.DeletionTimestamp = &metav1.Time{Time: start} }),
	}
	for _, pool := range []string{"pod-b", "pod-a", "pod-b", "rack-1"} {
		s.ResourceSlices = append(s.ResourceSlices, dratest.NewSlice(pool, driver, pool).ResourceSlice)
	}
	s.ResourceSlices = append(s.ResourceSlices, dratest.NewSlice("x", "other.example.com", "pod-c").ResourceSlice)
	if err := l.taint(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	found := read()
	want := rules(selecting, "pod-a", "pod-b")
	if len(want) != 2 || len(found) != 3 {
		t.Errorf("found %v, want %v and the administrator's", found, want)
	}
	for name := range want {
		if found[name] != resourcev1.DeviceTaintEffectNoSchedule {
			t.Errorf("rule %s has effect %q", name, found[name])
		}
	}
	now := &resourcev1.DeviceTaintRule{}
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(stripped), now); err != nil || now.Labels[policy.KeyFence] == "" || now.Labels["team"] != "ml" {
		t.Errorf("the rule that had lost its label has %v, error %v", now.Labels, err)
	}
	l.TaintRules = false
	s.AcceleratorPools = nil
	if err := l.taint(t.Context(), s); err != nil || len(read()) != 3 {
		t.Errorf("without DeviceTaintRules: error %v, rules %v", err, read())
	}
}
