package line

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
)

// What the API server says to a write decides whether the pass failed, and whether the gang has to wait.
func TestApply(t *testing.T) {
	reservations, workloads := schema.GroupResource{Resource: "gangreservations"}, schema.GroupResource{Resource: "workloads"}
	for _, row := range []struct {
		name                 string
		create, patch        error
		fails, waits, events string
	}{
		{name: "both stand", events: "Warning Unsupported no"},
		{"it is there already", apierrors.NewAlreadyExists(reservations, "r"), nil, "", "", "Warning Unsupported no"},
		{"forbidden", apierrors.NewForbidden(reservations, "r", errors.New("exceeded quota")), nil, "", `the API server refused to create the GangReservation: gangreservations "r" is forbidden: exceeded quota`, "Warning Unsupported no"},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "GangReservation"}, "r", nil), nil, "", `the API server refused to create the GangReservation: GangReservation "r" is invalid`, "Warning Unsupported no"},
		{"the namespace is gone", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ml"), nil, "", `the API server refused to create the GangReservation: namespaces "ml" not found`, "Warning Unsupported no"},
		{"no connection", errors.New("no connection"), nil, "creating GangReservation ml/r: no connection", "", "Warning Unsupported no"},
		{"somebody wrote in between", nil, apierrors.NewConflict(workloads, "w", errors.New("changed")), "", "", ""},
		{"the Workload is gone", nil, apierrors.NewNotFound(workloads, "w"), "", "", ""},
		{"nothing works", errors.New("no connection"), errors.New("no connection"), "creating GangReservation ml/r: no connection\nanswering Workload ml/job-a: no connection", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, berth.AddToScheme} {
				if err := add(s); err != nil {
					t.Fatal(err)
				}
			}
			c := fake.NewClientBuilder().WithScheme(s).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return row.create
				},
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return row.patch
				},
			}).Build()
			recorder := events.NewFakeRecorder(10)
			r := &reconciler{
				Dependencies: &shell.Dependencies{Client: c, Recorder: recorder, Now: func() time.Time { return now }},
				Options:      Options{Backoff: verdict.NewBackoff(time.Second, time.Minute, func() time.Time { return now })},
			}
			w := kueuetest.NewWorkload(kueuetest.NewJob("a", "tpu-4x4", 4)).QuotaReserved(now)
			res := &berth.GangReservation{}
			res.Namespace, res.Name, res.Spec.WorkloadRef.UID = "ml", "r", w.UID
			err := r.apply(t.Context(), steps{reserve: []*berth.GangReservation{res}, answers: []answer{{w.Workload, adaptkueue.Answer{
				Check: kueuetest.Check, State: kueue.CheckStateRejected, Reason: "Unsupported", Message: "no",
			}}}})
			if got := sortedLines(err); got != sortedLines(errors.New(row.fails)) {
				t.Errorf("fails with %q, want %q", got, row.fails)
			}
			waits := ""
			if _, why := r.Backoff.Waits(w.UID); why != nil {
				waits = why.Message
			}
			if !strings.HasPrefix(waits, row.waits) || (row.waits == "") != (waits == "") {
				t.Errorf("the gang waits for %q, want %q", waits, row.waits)
			}
			close(recorder.Events)
			said := ""
			for e := range recorder.Events {
				said += e
			}
			if said != row.events {
				t.Errorf("events %q, want %q", said, row.events)
			}
		})
	}
}

// sortedLines of an error that was joined in any order.
func sortedLines(err error) string {
	if err == nil {
		return ""
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) == 2 && lines[1] < lines[0] {
		lines[0], lines[1] = lines[1], lines[0]
	}
	return strings.Join(lines, "\n")
}
