package line

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
		{"larger than the API server takes", apierrors.NewRequestEntityTooLargeError("limit is 3145728"), nil, "", "the API server refused to create the GangReservation: Request entity too large: limit is 3145728", "Warning Unsupported no"},
		{"larger than etcd's client sends", unknown("rpc error: code = ResourceExhausted desc = trying to send message larger than max (2500000 vs. 2097152)"), nil, "", "the API server refused to create the GangReservation: rpc error: code = ResourceExhausted", "Warning Unsupported no"},
		{"larger than etcd takes", unknown("etcdserver: request is too large"), nil, "", "the API server refused to create the GangReservation: etcdserver: request is too large", "Warning Unsupported no"},
		{"etcd fails", unknown("etcdserver: request timed out"), nil, "creating GangReservation ml/r: etcdserver: request timed out", "", "Warning Unsupported no"},
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

// Writing targets down: what the API server refuses costs the gang nothing, and what others did first is no error.
func TestApplyTargets(t *testing.T) {
	reservations := schema.GroupResource{Resource: "gangreservations"}
	for _, row := range []struct {
		name                   string
		create, status, remove error
		fails                  string
	}{
		{name: "all stand"},
		{name: "it is there already", create: apierrors.NewAlreadyExists(reservations, "new")},
		{name: "forbidden", create: apierrors.NewForbidden(reservations, "new", errors.New("exceeded quota"))},
		{name: "too large", create: unknown("etcdserver: request is too large")},
		{name: "no connection", create: errors.New("no connection"), fails: "creating target ml/new: no connection"},
		{name: "somebody wrote in between", status: apierrors.NewConflict(reservations, "old", errors.New("changed"))},
		{name: "no status", status: errors.New("no connection"), fails: "writing the status of target ml/new: no connection\nwriting the status of target ml/old: no connection"},
		{name: "gone already", remove: apierrors.NewNotFound(reservations, "gone")},
		{name: "made anew", remove: apierrors.NewConflict(reservations, "gone", errors.New("another UID"))},
		{name: "not deleted", remove: errors.New("no connection"), fails: "deleting target ml/gone: no connection"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := berth.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			target := func(name string, uid types.UID) *berth.GangReservation {
				res := &berth.GangReservation{Spec: berth.GangReservationSpec{Target: true}}
				res.Namespace, res.Name, res.UID = "ml", name, uid
				return res
			}
			old, gone := target("old", "1"), target("gone", "2")
			c := fake.NewClientBuilder().WithScheme(s).WithObjects(old, gone).WithStatusSubresource(&berth.GangReservation{}).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					if row.create != nil {
						return row.create
					}
					return c.Create(ctx, obj, opts...)
				},
				SubResourceUpdate: func(ctx context.Context, c client.Client, part string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
					if row.status != nil {
						return row.status
					}
					return c.SubResource(part).Update(ctx, obj, opts...)
				},
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					if row.remove != nil {
						return row.remove
					}
					return c.Delete(ctx, obj, opts...)
				},
			}).Build()
			r := &reconciler{
				Dependencies: &shell.Dependencies{Client: c, Now: func() time.Time { return now }},
				Options:      Options{Backoff: verdict.NewBackoff(time.Second, time.Minute, func() time.Time { return now })},
			}
			have := &berth.GangReservation{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(old), have); err != nil {
				t.Fatal(err)
			}
			err := r.apply(t.Context(), steps{targets: []planned{{target("new", ""), "waits for x"}, {have, "waits for y"}}, drop: []*berth.GangReservation{gone}})
			if got := sortedLines(err); got != row.fails {
				t.Errorf("fails with %q, want %q", got, row.fails)
			}
			if row.name != "all stand" {
				return
			}
			var list berth.GangReservationList
			if err := c.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			told := ""
			for _, res := range list.Items {
				told += fmt.Sprintf("%s %s %s; ", res.Name, res.Status.Phase, res.Status.Conditions[0].Message)
			}
			if want := "new Planned waits for x; old Planned waits for y; "; told != want {
				t.Errorf("there is\n     %s\nwant %s", told, want)
			}
		})
	}
}

// unknown is an error of etcd as the API server passes it on.
func unknown(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message}}
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
