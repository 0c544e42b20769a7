package reservation

import (
	"context"
	"errors"
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

	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
	"github.com/berth-dev/berth/pkg/reservation"
)

// What the API server says to a Ready decides whether it is written again, or the slice is given back with a reason.
func TestReady(t *testing.T) {
	workloads := schema.GroupResource{Resource: "workloads"}
	denied := apierrors.NewForbidden(workloads, "job-train", errors.New("annotations: Too long"))
	for _, row := range []struct {
		name         string
		phase        reservation.Phase
		answer       error
		fails, waits string
	}{
		{name: "it stands", phase: reservation.Planned},
		{"denied", reservation.Planned, denied, "", `the API server refused to make the check of the Workload Ready: workloads "job-train" is forbidden: annotations: Too long`},
		{"denied after it was taken back by hand", reservation.Reserved, denied, "", `the API server refused to make the check of the Workload Ready: workloads "job-train" is forbidden: annotations: Too long`},
		{"denied while the gang runs", reservation.HandedOver, denied, denied.Error(), ""},
		{"somebody wrote in between", reservation.Planned, apierrors.NewConflict(workloads, "job-train", errors.New("changed")), `Operation cannot be fulfilled on workloads "job-train": changed`, ""},
		{"no connection", reservation.Planned, errors.New("no connection"), "no connection", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			known := runtime.NewScheme()
			if err := kueue.AddToScheme(known); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(known).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return row.answer
				},
			}).Build()
			clock := func() time.Time { return kueuetest.Start }
			r := &reconciler{
				Dependencies: &shell.Dependencies{Client: c, Recorder: events.NewFakeRecorder(1), Now: clock},
				Options:      Options{Backoff: verdict.NewBackoff(time.Second, time.Minute, clock)},
			}
			g := &gathered{res: served(), workload: kueuetest.NewWorkload(kueuetest.NewJob("train", "tpu-4x4", 2)).QuotaReserved(kueuetest.Start).Workload}
			g.Phase = row.phase
			fails, waits := "", ""
			if err := r.ready(t.Context(), g); err != nil {
				fails = err.Error()
			}
			if _, why := r.Backoff.Waits(g.workload.UID); why != nil {
				waits = why.Message
			}
			if fails != row.fails || waits != row.waits {
				t.Errorf("fails with %q, want %q; the gang waits for %q, want %q", fails, row.fails, waits, row.waits)
			}
		})
	}
}
