package faults_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/faults"
)

// run is a small controller: seven writes of different kinds.
func run(ctx context.Context, f fixture, c client.WithWatch) error {
	a, b := f.configMap("a"), f.configMap("b")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	applied := corev1ac.ConfigMap("c", f.namespace).WithData(map[string]string{"k": "v"})
	for _, write := range []func() error{
		func() error { return c.Create(ctx, a) },
		func() error { return c.Create(ctx, b) },
		func() error { a.Data = map[string]string{"k": "v"}; return c.Update(ctx, a) },
		func() error { return c.Create(ctx, pod) },
		func() error {
			before := pod.DeepCopy()
			pod.Status.Message = "seen"
			return c.Status().Patch(ctx, pod, client.MergeFrom(before))
		},
		func() error { return c.Apply(ctx, applied, client.FieldOwner("faults")) },
		func() error { return c.Delete(ctx, b) },
	} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

func TestRecordListsEveryWriteInOrder(t *testing.T) {
	f := newFixture(t, "record")
	plan := faults.NewPlan()
	must(t, run(f.ctx, f, faults.Wrap(f.client, plan)))
	var got []string
	for _, site := range plan.Record() {
		got = append(got, site.String())
	}
	want := []string{
		"create configmaps#1", "create configmaps#2", "update configmaps#1", "create pods#1",
		"patch pods/status#1", "apply configmaps#1", "delete configmaps#1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded\n%q, want\n%q", got, want)
	}
	for _, text := range got {
		if site, err := faults.ParseSite(text); err != nil || site.String() != text {
			t.Errorf("ParseSite(%q) = %v, %v", text, site, err)
		}
	}
}

func TestEverySiteCanBeTheLastWriteOfAProcess(t *testing.T) {
	f := newFixture(t, "sites")
	recorder := faults.NewPlan()
	must(t, run(f.ctx, f, faults.Wrap(f.client, recorder)))
	sites := recorder.Record()
	for i, site := range sites {
		for _, kind := range []faults.Kind{faults.Before, faults.NoResponse, faults.After} {
			t.Run(site.Class()+" "+kind.String(), func(t *testing.T) {
				must(t, f.client.DeleteAllOf(f.ctx, &corev1.ConfigMap{}, client.InNamespace(f.namespace)))
				must(t, f.client.DeleteAllOf(f.ctx, &corev1.Pod{}, client.InNamespace(f.namespace), client.GracePeriodSeconds(0)))
				hooks := 0
				plan := faults.NewPlan(faults.Fault{At: site, Kind: kind, Hook: func() { hooks++ }})
				err := run(f.ctx, f, faults.Wrap(f.client, plan))

				last := i == len(sites)-1
				switch {
				case kind == faults.After && last:
					must(t, err)
				case kind == faults.After && !errors.Is(err, faults.ErrFrozen),
					kind == faults.Before && !errors.Is(err, faults.ErrInjected),
					kind == faults.NoResponse && !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("the run ended with %v", err)
				}
				if hooks != 1 {
					t.Errorf("the hook ran %d times", hooks)
				}
				if got := plan.Record(); !slices.Equal(got, sites[:i+1]) {
					t.Errorf("recorded %v", got)
				}
				if !plan.Frozen() {
					t.Error("the client is not frozen")
				}
				await(t, "firing", plan.Fired())
			})
		}
	}
}

func TestNoResponseSendsButHidesTheAnswer(t *testing.T) {
	f := newFixture(t, "no-response")
	plan := faults.NewPlan(
		faults.Fault{At: faults.At("create configmaps"), Kind: faults.NoResponse, Transient: true},
		faults.Fault{At: faults.At("apply configmaps"), Kind: faults.NoResponse, Transient: true},
	)
	c := faults.Wrap(f.client, plan)
	cm := f.configMap("a")
	err := c.Create(f.ctx, cm)
	var netErr net.Error
	if !errors.Is(err, faults.ErrNoResponse) || !errors.As(err, &netErr) || !netErr.Timeout() {
		t.Errorf("the error is %v", err)
	}
	if cm.UID != "" {
		t.Error("the caller saw the answer")
	}
	if !f.exists(t, "a") {
		t.Error("the object was not created")
	}
	if err := c.Create(f.ctx, f.configMap("a")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the retry, which is not frozen out, got %v", err)
	}
	applied := corev1ac.ConfigMap("b", f.namespace)
	if err := c.Apply(f.ctx, applied, client.FieldOwner("faults")); !errors.Is(err, faults.ErrNoResponse) {
		t.Errorf("apply: %v", err)
	}
	if applied.UID != nil {
		t.Error("the caller of apply saw the answer")
	}
	if !f.exists(t, "b") {
		t.Error("nothing was applied")
	}
}

func TestBeforeDoesNotSendAndReleaseThaws(t *testing.T) {
	f := newFixture(t, "before")
	conflict := apierrors.NewConflict(corev1.Resource("configmaps"), "a", errors.New("planted"))
	plan := faults.NewPlan(faults.Fault{At: faults.At("create configmaps"), Kind: faults.Before, Err: conflict})
	c := faults.Wrap(f.client, plan)
	if err := c.Create(f.ctx, f.configMap("a")); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want the planted conflict", err)
	}
	if f.exists(t, "a") {
		t.Error("the write was sent")
	}
	if err := c.Create(f.ctx, f.configMap("a")); !errors.Is(err, faults.ErrFrozen) {
		t.Errorf("got %v, want %v", err, faults.ErrFrozen)
	}
	plan.Release()
	must(t, c.Create(f.ctx, f.configMap("a")))
}

// A write that was decided on before somebody else changed the object, and is sent after.
func TestLateWriteMeetsTheSuccessorsWrite(t *testing.T) {
	f := newFixture(t, "late")
	cm := f.configMap("a")
	must(t, f.client.Create(f.ctx, cm))
	plan := faults.NewPlan(faults.Fault{At: faults.At("update configmaps"), Kind: faults.Late, Hook: func() {
		successor := cm.DeepCopy()
		successor.Data = map[string]string{"by": "successor"}
		must(t, f.client.Update(f.ctx, successor))
	}})
	mine := cm.DeepCopy()
	mine.Data = map[string]string{"by": "me"}
	if err := faults.Wrap(f.client, plan).Update(f.ctx, mine); !apierrors.IsConflict(err) {
		t.Errorf("the late write got %v, want a conflict", err)
	}
}

// A process that is dead to one namespace is alive to the others, and the sites of each are counted by themselves.
func TestEachNamespaceHasItsOwnPlan(t *testing.T) {
	here, there := newFixture(t, "each-here"), newFixture(t, "each-there")
	plans := map[string]*faults.Plan{
		here.namespace:  faults.NewPlan(faults.Fault{At: faults.At("create configmaps#2"), Kind: faults.Before}),
		there.namespace: faults.NewPlan(),
	}
	c := faults.WrapEach(here.client, func(namespace string) *faults.Plan { return plans[namespace] })
	if err := run(here.ctx, here, c); !errors.Is(err, faults.ErrInjected) {
		t.Errorf("the struck run ended with %v", err)
	}
	must(t, run(there.ctx, there, c))
	if got := len(plans[here.namespace].Record()); got != 2 {
		t.Errorf("%d writes of the struck run, want 2", got)
	}
	if got := plans[there.namespace].Record(); len(got) != 7 || got[5].String() != "apply configmaps#1" {
		t.Errorf("the other run recorded %v", got)
	}
	must(t, c.Create(here.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "each-unplanned"}}))
}

func TestLateIsAWriteThatTimedOut(t *testing.T) {
	f := newFixture(t, "unanswered")
	plan := faults.NewPlan()
	c := faults.Wrap(f.client, plan)
	must(t, c.Create(f.ctx, f.configMap("a")))
	if err := c.Create(f.ctx, f.configMap("a")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}
	if plan.Late() {
		t.Error("both were answered")
	}
	over, cancel := context.WithDeadline(f.ctx, time.Now())
	defer cancel()
	if err := c.Create(over, f.configMap("b")); err == nil {
		t.Error("created after the deadline")
	}
	if !plan.Late() {
		t.Error("a write that came to its deadline is not told")
	}
}
