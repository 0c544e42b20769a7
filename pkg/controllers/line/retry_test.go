package line

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/observability"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// A gang whose GangReservation is refused is told so and tried again, although no object changes that would bring a pass.
func TestARefusedReservationIsTriedAgain(t *testing.T) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, kueue.AddToScheme, berth.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	s := newSite()
	s.waits("a")
	var objects []client.Object
	lists := reflect.ValueOf(s.Snapshot).Elem()
	for i := range lists.NumField() {
		for j := range lists.Field(i).Len() {
			objects = append(objects, lists.Field(i).Index(j).Interface().(client.Object))
		}
	}
	refuses, tries, told := true, 0, ""
	c := fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if tries++; refuses {
				return apierrors.NewForbidden(schema.GroupResource{Group: "berth.dev", Resource: "gangreservations"}, "r", errors.New("exceeded quota"))
			}
			return c.Create(ctx, obj, opts...)
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			if said := apimeta.FindStatusCondition(obj.(*kueue.Workload).Status.Conditions, berth.ConditionGangReserved); said != nil {
				told = said.Reason + ": " + said.Message
			}
			return nil
		},
	}).Build()
	metrics, err := observability.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	at := now
	clock := func() time.Time { return at }
	probed := make(chan struct{})
	close(probed)
	r := &reconciler{
		Dependencies: &shell.Dependencies{
			Client: c, Recorder: events.NewFakeRecorder(100), Metrics: metrics, Now: clock, Ready: func(context.Context) error { return nil },
		},
		Options: Options{
			Placer: placement.FirstFit{}, Board: verdict.NewBoard(), Backoff: verdict.NewBackoff(time.Second, time.Minute, clock),
			Cluster: cluster.New(), Probed: probed, NotFenced: func() *reason.Refusal { return nil },
			Unfenced: func(*berth.AcceleratorPool) *reason.Refusal { return nil },
		},
		demand: line.NewDemand(), eligible: nodes.NewEligibility(nil),
	}
	// passes makes a pass, and lets the clock go on to when the next one is due.
	passes := func() time.Duration {
		t.Helper()
		result, err := r.Reconcile(t.Context(), pass)
		if err != nil {
			t.Fatal(err)
		}
		at = at.Add(result.RequeueAfter)
		return result.RequeueAfter
	}
	for i := range 4 {
		if due := passes(); due <= 0 || due > gathering || tries != i+1 {
			t.Fatalf("after %d of %d tries that are refused a pass is due in %v", tries, i+1, due)
		}
		if due, rest := passes(), time.Second<<i-gathering; due != rest || tries != i+1 {
			t.Fatalf("after %d of %d tries the gang waits %v, want %v", tries, i+1, due, rest)
		}
		if want := `ReservationFailed: the API server refused to create the GangReservation: gangreservations.berth.dev "r" is forbidden: exceeded quota`; told != want {
			t.Fatalf("the gang is told\n     %s\nwant %s", told, want)
		}
	}
	if r.answered.Before(now) {
		t.Errorf("it knows of no answer but of one at %v", r.answered)
	}
	refuses = false
	passes()
	var made berth.GangReservationList
	if err := c.List(t.Context(), &made); err != nil || len(made.Items) != 1 {
		t.Errorf("%d reservations, error %v", len(made.Items), err)
	}
}

// An answer that was just given may hide that its Workload was removed at once, and then nobody would tell.
func TestAnswersAreLookedAfter(t *testing.T) {
	at := now
	r := &reconciler{Dependencies: &shell.Dependencies{Now: func() time.Time { return at }}}
	if again := r.again(steps{}); again != 0 {
		t.Errorf("before the first answer the next pass is due in %v", again)
	}
	r.answered = at
	// The Workload's own events bring passes before.
	for _, after := range []time.Duration{0, gathering, lookAgain} {
		at = now.Add(after)
		if again := r.again(steps{}); again != lookAgain-after {
			t.Errorf("%v after an answer the next pass is due in %v", after, again)
		}
	}
}

// Writes may fail for one gang for hours. What is due for the others is due after the next pass at the latest.
func TestPassesThatFailGoOn(t *testing.T) {
	limiter := retries()
	for i := range 100 {
		if wait := limiter.When(pass); wait > 10*time.Second {
			t.Fatalf("after %d passes that failed the next one comes in %v", i+1, wait)
		}
	}
}
