package seating

import (
	"context"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/adapt/jobs"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
	"github.com/berth-dev/berth/pkg/reason"
)

// hall is an admitted gang of two on one claim, and the controller that seats it.
type hall struct {
	*testing.T
	*reconciler
	now time.Time
	key types.NamespacedName
}

func newHall(t *testing.T) *hall {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, kueue.AddToScheme, berth.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	job := kueuetest.NewJob("train", "tpu-4x4", 2)
	wl := kueuetest.NewWorkload(job).QuotaReserved(kueuetest.Start).Admitted().Named("res")
	res := kueuetest.NewReservation("res", wl, job, "d", "h0", "h1")
	res.Spec.Epoch = adaptkueue.Epoch(wl.Workload, kueuetest.Check)
	res.Status.Phase = berth.PhaseReserved
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: res.Namespace, Name: "berth.res.main.tpu-0", UID: "claim", ResourceVersion: "1", Finalizers: []string{berth.FinalizerHold},
		Labels: map[string]string{berth.LabelReservation: "res"}, Annotations: map[string]string{berth.AnnotationReservationUID: string(res.UID)},
	}}
	claim.Status.Allocation = &resourcev1.AllocationResult{}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{APIGroup: "kueue.x-k8s.io", Resource: "workloads", Name: wl.Name, UID: wl.UID}}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(job, wl.Workload, res, claim).
		WithStatusSubresource(res, claim, wl.Workload).WithGlobalResourceVersionCounter().
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }).
		WithIndex(&corev1.Event{}, "type", func(o client.Object) []string { return []string{o.(*corev1.Event).Type} }).Build()
	h := &hall{T: t, now: kueuetest.Start, key: client.ObjectKeyFromObject(res)}
	h.reconciler = &reconciler{board: verdict.NewBoard(), Dependencies: &shell.Dependencies{
		Client: c, Live: c, Config: configv1alpha1.Default(),
		Now: func() time.Time { return h.now }, Ready: func(context.Context) error { return nil },
	}}
	return h
}

// comes adds the pod of a rank.
func (h *hall) comes(name string, rank int) {
	h.Helper()
	p := kueuetest.NewPod(h.reservation(), rank)
	p.Name, p.UID, p.Finalizers = name, types.UID(name), []string{batchv1.JobTrackingFinalizer}
	h.ok(h.Client.Create(h.Context(), p))
}

func (h *hall) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *hall) reservation() *berth.GangReservation {
	h.Helper()
	res := &berth.GangReservation{}
	h.ok(h.Client.Get(h.Context(), h.key, res))
	return res
}

func (h *hall) pod(name string) *corev1.Pod {
	h.Helper()
	p := &corev1.Pod{}
	h.ok(h.Client.Get(h.Context(), types.NamespacedName{Namespace: h.key.Namespace, Name: name}, p))
	return p
}

func (h *hall) claim() *resourcev1.ResourceClaim {
	h.Helper()
	c := &resourcev1.ResourceClaim{}
	h.ok(h.Client.Get(h.Context(), types.NamespacedName{Namespace: h.key.Namespace, Name: "berth.res.main.tpu-0"}, c))
	return c
}

// seats reconciles once and checks what the reservation says then, and when it is looked at again.
func (h *hall) seats(says string, again time.Duration) {
	h.Helper()
	result, err := h.Reconcile(h.Context(), ctrl.Request{NamespacedName: h.key})
	h.ok(err)
	if result.RequeueAfter != again {
		h.Errorf("it looks again in %v, want %v", result.RequeueAfter, again)
	}
	got := ""
	if c := apimeta.FindStatusCondition(h.reservation().Status.Conditions, berth.ReservationProgressing); c != nil {
		got = c.Reason + ": " + c.Message
	}
	if got != says {
		h.Errorf("the reservation says %q, want %q", got, says)
	}
}

func (h *hall) gated(want ...string) {
	h.Helper()
	var list corev1.PodList
	h.ok(h.Client.List(h.Context(), &list))
	var got []string
	for i := range list.Items {
		if jobs.Gated(&list.Items[i]) {
			got = append(got, list.Items[i].Name)
		}
	}
	if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
		h.Errorf("behind their gates are %q, want %q", got, want)
	}
}

func TestGangIsSeatedAndSuccessorsWait(t *testing.T) {
	h := newHall(t)
	h.comes("a", 0)
	// In the first moments a missing pod is not worth a word.
	h.seats("", patience)
	h.gated("a")
	h.comes("b", 1)
	h.seats("HandedOver: the gang is seated", 0)
	h.gated()
	if res := h.reservation(); res.Status.Phase != berth.PhaseHandedOver || !apimeta.IsStatusConditionTrue(res.Status.Conditions, berth.ReservationSeated) {
		t.Errorf("%+v", res.Status)
	}
	if got := h.claim().Status.ReservedFor; len(got) != 3 || got[1].Name != "a" || got[1].Resource != "pods" || got[2].UID != "b" {
		t.Errorf("reserved for %v", got)
	}

	h.ok(h.Client.Delete(t.Context(), h.pod("b")))
	h.comes("b2", 1)
	h.seats("Waiting: rank 1 waits for its predecessor to end", patience)
	h.gated("b2")
	h.seats("Waiting: rank 1 waits for its predecessor to end", patience)
	gone := h.pod("b")
	gone.Finalizers = nil
	h.ok(h.Client.Update(t.Context(), gone))
	h.seats("Waiting: rank 1 waits for its predecessor to end", patience)
	claim := h.claim()
	claim.Status.ReservedFor = claim.Status.ReservedFor[:2]
	h.ok(h.Client.Status().Update(t.Context(), claim))
	// Nobody waits any more, and nothing says so any more.
	h.seats("HandedOver: the gang is seated", 0)
	h.gated()
}

// job sets the status of the gang's Job.
func (h *hall) job(status batchv1.JobStatus) {
	h.Helper()
	job := &batchv1.Job{}
	h.ok(h.Client.Get(h.Context(), types.NamespacedName{Namespace: h.key.Namespace, Name: "train"}, job))
	job.Status = status
	h.ok(h.Client.Status().Update(h.Context(), job))
}

// Kueue counts pods for ranks for which the Job makes none any more.
func TestGangIsSeatedWithoutRanksThatAreOver(t *testing.T) {
	for name, status := range map[string]batchv1.JobStatus{
		"one failed for good": {FailedIndexes: ptr.To("1")},
		"one succeeded late":  {CompletedIndexes: "1"},
		"said twice":          {CompletedIndexes: "1", FailedIndexes: ptr.To("1")},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall(t)
			h.job(status)
			h.seats("", patience)
			h.comes("a", 0)
			h.seats("HandedOver: the gang is seated", 0)
			h.gated()
		})
	}
}

// Two pods of one rank never run at once, also where the line did not see those of the former admission.
func TestGangWaitsForItsFormerPods(t *testing.T) {
	h := newHall(t)
	former := kueuetest.NewPod(h.reservation(), 0)
	former.Name, former.UID, former.Spec.SchedulingGates, former.Spec.NodeName = "former", "former", nil, "h9"
	former.Labels[berth.LabelReservation] = "before"
	host := dratest.Node("h9")
	h.ok(h.Client.Create(t.Context(), former))
	h.ok(h.Client.Create(t.Context(), host))
	h.comes("a", 0)
	h.comes("b", 1)
	h.now = h.now.Add(patience)
	h.seats("Waiting: pods former of the gang's former slice may still run", patience)
	h.gated("a", "b")
	h.now = h.now.Add(time.Hour)
	h.seats("Waiting: pods former of the gang's former slice may still run", patience)
	if lost := h.board.Lost(h.key); lost != nil {
		t.Errorf("it is given up: %v", lost)
	}
	host.Status.Conditions[0].Status = corev1.ConditionUnknown
	h.ok(h.Client.Status().Update(t.Context(), host))
	h.seats("HandedOver: the gang is seated", 0)
	h.gated()
}

// A pod that could not be bound, and was taken out of its claim for that, is put in again; one that has ended is not, although
// the cache does not say so yet.
func TestPodThatLostItsPlace(t *testing.T) {
	h := newHall(t)
	h.comes("a", 0)
	h.comes("b", 1)
	h.seats("HandedOver: the gang is seated", 0)
	out := func() {
		claim := h.claim()
		claim.Status.ReservedFor = claim.Status.ReservedFor[:1]
		h.ok(h.Client.Status().Update(t.Context(), claim))
	}
	stand := func(want ...string) {
		t.Helper()
		var have []string
		for _, r := range h.claim().Status.ReservedFor[1:] {
			have = append(have, r.Name)
		}
		if !slices.Equal(have, want) {
			t.Errorf("in the claim stand %q, want %q", have, want)
		}
	}
	out()
	h.seats("HandedOver: the gang is seated", 0)
	stand("a", "b")
	out()
	h.Live = ended{h.Client, "b"}
	h.seats("HandedOver: the gang is seated", 0)
	stand("a")
}

// ended reads a pod as one that has succeeded.
type ended struct {
	client.Client
	pod string
}

func (e ended) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := e.Client.Get(ctx, key, obj, opts...)
	if p, is := obj.(*corev1.Pod); is && p.Name == e.pod {
		p.Status.Phase = corev1.PodSucceeded
	}
	return err
}

// A Job that makes no pods at all begins nothing.
func TestNobodyIsLeftToSeat(t *testing.T) {
	h := newHall(t)
	h.job(batchv1.JobStatus{CompletedIndexes: "0", FailedIndexes: ptr.To("1")})
	h.seats("", patience)
	if res := h.reservation(); res.Status.Phase != berth.PhaseReserved || len(res.Status.Conditions) > 0 {
		t.Errorf("%+v", res.Status)
	}
}

func TestGangThatDoesNotCome(t *testing.T) {
	h := newHall(t)
	h.comes("a", 0)
	for message, at := range map[string]int64{
		`Error creating: pods "train-1-abcde" is forbidden: exceeded quota: pods`: 2, `Error creating: pods "train-1-xyz" is forbidden: older`: 1,
	} {
		h.ok(h.Client.Create(t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.key.Namespace, Name: string(rune('a' + at))}, InvolvedObject: corev1.ObjectReference{UID: "train"},
			Type: corev1.EventTypeWarning, Reason: "FailedCreate", Message: message, LastTimestamp: metav1.Unix(at, 0),
		}))
	}
	const missing = "1 of 2 pods exist, FailedCreate: Error creating: pods is forbidden: exceeded quota: pods"
	h.now = h.now.Add(patience)
	h.seats("Waiting: "+missing, patience)
	if got := h.board.Lost(h.key); got != nil {
		t.Error(got)
	}
	h.now = kueuetest.Start.Add(h.Config.Seating.Timeout.Duration - time.Second)
	h.seats("Waiting: "+missing, time.Second)
	h.now = h.now.Add(time.Second)
	h.seats("Waiting: "+missing, 0)
	if got := h.board.Lost(h.key); got == nil || got.Code != reason.NotSeated || got.Message != missing {
		t.Error(got)
	}
	h.gated("a")
}

func TestNobodyIsSeated(t *testing.T) {
	for name, change := range map[string]func(*hall){
		"the reservation is released": func(h *hall) {
			res := h.reservation()
			res.Status.Phase = berth.PhaseReleasing
			h.ok(h.Client.Status().Update(h.Context(), res))
		},
		"the reservation is deleted": func(h *hall) { h.ok(h.Client.Delete(h.Context(), h.reservation())) },
		"a claim is deleted":         func(h *hall) { h.ok(h.Client.Delete(h.Context(), h.claim())) },
		"a claim is not held": func(h *hall) {
			c := h.claim()
			c.Status.ReservedFor = nil
			h.ok(h.Client.Status().Update(h.Context(), c))
		},
		"a claim is not allocated": func(h *hall) {
			c := h.claim()
			c.Status.Allocation = nil
			h.ok(h.Client.Status().Update(h.Context(), c))
		},
		"a claim is another's": func(h *hall) {
			c := h.claim()
			c.Annotations[berth.AnnotationReservationUID] = "other"
			h.ok(h.Client.Update(h.Context(), c))
		},
		"the Workload is evicted":      func(h *hall) { h.workload(kueue.WorkloadEvicted, metav1.ConditionTrue) },
		"the Workload is not admitted": func(h *hall) { h.workload(kueue.WorkloadAdmitted, metav1.ConditionFalse) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall(t)
			h.comes("a", 0)
			h.comes("b", 1)
			change(h)
			h.seats("", 0)
			h.gated("a", "b")
		})
	}
}

// Pods that carry the reservation's name go on coming when the check is taken off the Workload, and are seated.
func TestSuccessorsAreSeatedWithoutTheCheck(t *testing.T) {
	h := newHall(t)
	h.comes("a", 0)
	h.comes("b", 1)
	wl := &kueue.Workload{}
	h.ok(h.Client.Get(h.Context(), types.NamespacedName{Namespace: h.key.Namespace, Name: "job-train"}, wl))
	wl.Status.AdmissionChecks = nil
	h.ok(h.Client.Status().Update(h.Context(), wl))
	h.seats("HandedOver: the gang is seated", 0)
	h.gated()
}

func (h *hall) workload(kind string, status metav1.ConditionStatus) {
	wl := &kueue.Workload{}
	h.ok(h.Client.Get(h.Context(), types.NamespacedName{Namespace: h.key.Namespace, Name: "job-train"}, wl))
	apimeta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Test"})
	h.ok(h.Client.Status().Update(h.Context(), wl))
}

func TestStable(t *testing.T) {
	for message, want := range map[string]string{
		`Error creating: pods "train-3-abc" is forbidden: exceeded quota`: "Error creating: pods is forbidden: exceeded quota",
		`Error creating: Pod "train-3-abc" is invalid: spec`:              "Error creating: Pod is invalid: spec",
		"no pod is named": "no pod is named",
	} {
		if got := stable(message); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
