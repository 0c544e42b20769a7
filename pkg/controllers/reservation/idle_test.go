package reservation

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
)

// keeps is a controller of one admitted gang of two whose claim is held, and whose pods have not come.
type keeps struct {
	*testing.T
	*reconciler
	now time.Time
	res *berth.GangReservation
}

func newKeeps(t *testing.T, change func(*kueue.Workload, *batchv1.Job)) *keeps {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, kueue.AddToScheme, berth.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	job := kueuetest.NewJob("train", "tpu-4x4", 2)
	job.Spec.Template.Labels = map[string]string{berth.LabelReservation: "res"}
	wl := kueuetest.NewWorkload(job).QuotaReserved(kueuetest.Start).Admitted().Named("res")
	res := kueuetest.NewReservation("res", wl, job, "d", "h0", "h1")
	res.Spec.Epoch = adaptkueue.Epoch(wl.Workload, kueuetest.Check)
	res.Status.Phase = berth.PhaseReserved
	claim := claimOf(res)
	claim.Status.ReservedFor = claim.Status.ReservedFor[:1]
	change(wl.Workload, job)
	c := fake.NewClientBuilder().WithScheme(known).WithObjects(job, wl.Workload, res, claim).WithStatusSubresource(res, claim, wl.Workload).Build()
	k := &keeps{T: t, now: kueuetest.Start, res: res}
	clock := func() time.Time { return k.now }
	k.reconciler = &reconciler{
		Dependencies: &shell.Dependencies{Client: c, Live: c, Recorder: events.NewFakeRecorder(9), Now: clock, Ready: func(context.Context) error { return nil }},
		Options:      Options{Board: verdict.NewBoard(), Backoff: verdict.NewBackoff(time.Second, time.Minute, clock)},
	}
	return k
}

// looks reconciles once and checks that nothing was done, and when it looks again.
func (k *keeps) looks(again time.Duration) {
	k.Helper()
	result, err := k.Reconcile(k.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(k.res)})
	if err != nil || result.RequeueAfter != again {
		k.Errorf("it looks again in %v, want %v; error %v", result.RequeueAfter, again, err)
	}
	res := &berth.GangReservation{}
	if err := k.Client.Get(k.Context(), client.ObjectKeyFromObject(k.res), res); err != nil || res.Status.Phase != berth.PhaseReserved {
		k.Errorf("the reservation is %+v, error %v", res.Status, err)
	}
}

// An answer that was just given may hide that its Workload was removed at once, and then nobody would tell.
func TestAnAnswerIsLookedAfter(t *testing.T) {
	k := newKeeps(t, func(*kueue.Workload, *batchv1.Job) {})
	k.looks(lookAgain)
	k.now = k.now.Add(lookAgain)
	k.looks(0)
}

// The check was taken off after the Job had started and before its pods came: they come here, and nowhere else.
func TestCheckTakenOffBeforeThePodsCome(t *testing.T) {
	off := func(wl *kueue.Workload, _ *batchv1.Job) { wl.Status.AdmissionChecks = nil }
	newKeeps(t, off).looks(0)
	for name, change := range map[string]func(*batchv1.Job){
		"suspended":                       func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) },
		"started without the reservation": func(j *batchv1.Job) { j.Spec.Template.Labels = nil },
		"another Job of that name":        func(j *batchv1.Job) { j.UID = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeps(t, func(wl *kueue.Workload, job *batchv1.Job) {
				off(wl, job)
				change(job)
			})
			g, err := k.gather(t.Context(), client.ObjectKeyFromObject(k.res))
			if err != nil || g.Started {
				t.Errorf("the gang counts as started; error %v", err)
			}
		})
	}
}
