package policy_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
)

// Scenario 32, before Berth's claim exists.
func TestStrangersCreateNoClaimOfBerth(t *testing.T) {
	w := fenced(t)
	ns := w.namespace(t)
	label := func(k string) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) { c.Labels = map[string]string{k: "x"} }
	}
	annotation := func(k string) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) { c.Annotations = map[string]string{k: "x"} }
	}
	const leaveOut = ": these keys are written by Berth alone. Leave them out."
	for i, tc := range []struct {
		user, name string
		change     func(*resourcev1.ResourceClaim)
		want       string // %s: the claim
	}{
		{editor, "plain", func(*resourcev1.ResourceClaim) {}, ""},
		{editor, "berth", func(*resourcev1.ResourceClaim) {}, ""},
		{editor, "berthold.x", func(*resourcev1.ResourceClaim) {}, ""},
		{editor, "other-keys", label("berth.development.example.com/x"), ""},
		{editor, "other-notes", annotation("my-berth.dev/x"), ""},
		{claimsCtl, "generated", annotation("resource.kubernetes.io/pod-claim-name"), ""},
		{editor, "berth.train-0", func(*resourcev1.ResourceClaim) {},
			`ResourceClaim %s cannot be created: names that begin with "berth." are reserved for Berth. Choose another name.`},
		{carla, "berth.train-0", func(*resourcev1.ResourceClaim) {},
			`ResourceClaim %s cannot be created: names that begin with "berth." are reserved for Berth. Choose another name.`},
		{editor, "labelled", label(v1alpha1.LabelReservation), "ResourceClaim %s cannot get label berth.dev/reservation" + leaveOut},
		{editor, "noted", annotation(v1alpha1.AnnotationEpoch), "ResourceClaim %s cannot get annotation berth.dev/epoch" + leaveOut},
		{editor, "noted2", annotation("claim.berth.dev/x"), "ResourceClaim %s cannot get annotation claim.berth.dev/x" + leaveOut},
		{editor, "marked", annotation(policy.AnnotationProbe), "ResourceClaim %s cannot get annotation berth.dev/probe" + leaveOut},
		{editor, "finalized", func(c *resourcev1.ResourceClaim) { c.Finalizers = []string{v1alpha1.FinalizerHold} },
			"ResourceClaim %s cannot get finalizer berth.dev/hold" + leaveOut},
		{berth, "berth.train-1", pinned("d", "p"), ""},
	} {
		t.Run(fmt.Sprintf("%02d %s %s", i, tc.user, tc.name), func(t *testing.T) {
			want := tc.want
			if want != "" {
				want = fmt.Sprintf(want, ns+"/"+tc.name)
			}
			expect(t, w.as(t, tc.user).Create(t.Context(), claim(ns, tc.name, tc.change)), policy.Claims, want)
		})
	}
	t.Run("generateName", func(t *testing.T) {
		c := claim(ns, "", func(c *resourcev1.ResourceClaim) { c.GenerateName = "berth." })
		if err := w.as(t, editor).Create(t.Context(), c); err == nil {
			t.Error("allowed")
		}
	})
}

// Scenario 32, on a claim that Berth has pinned.
func TestStrangersLeaveBerthsClaimsAlone(t *testing.T) {
	w := fenced(t)
	ns := w.namespace(t)
	c := claim(ns, "berth.train-0", pinned("other.example.com", "p"))
	w.create(t, berth, c)
	name := "ResourceClaim " + ns + "/berth.train-0"
	const why = ": Berth holds the claim by it until its gang has gone. Delete the job to give the devices back."
	for _, tc := range []struct {
		name, user string
		change     func(*resourcev1.ResourceClaim)
		want       string
	}{
		{"nothing", editor, func(*resourcev1.ResourceClaim) {}, ""},
		{"own-label", editor, func(c *resourcev1.ResourceClaim) { c.Labels["team"] = "a" }, ""},
		{"foreign-finalizer", claimsCtl, func(c *resourcev1.ResourceClaim) {
			c.Finalizers = append([]string{resourcev1.Finalizer}, c.Finalizers...)
		}, ""},
		{"strip-finalizer", editor, func(c *resourcev1.ResourceClaim) { c.Finalizers = nil }, name + " cannot lose finalizer berth.dev/hold" + why},
		{"strip-finalizer-admin", carla, func(c *resourcev1.ResourceClaim) { c.Finalizers = nil }, name + " cannot lose finalizer berth.dev/hold" + why},
		{"strip-label", editor, func(c *resourcev1.ResourceClaim) { c.Labels = nil }, name + " cannot lose label berth.dev/reservation" + why},
		{"relabel", editor, func(c *resourcev1.ResourceClaim) { c.Labels[v1alpha1.LabelReservation] = "gang-2" },
			name + " cannot get label berth.dev/reservation: these keys are written by Berth alone. Leave them out."},
		{"drop-note", editor, func(c *resourcev1.ResourceClaim) { delete(c.Annotations, v1alpha1.AnnotationEpoch) },
			name + " cannot lose annotation berth.dev/epoch" + why},
		{"add-note", editor, func(c *resourcev1.ResourceClaim) { c.Annotations[v1alpha1.AnnotationLeader] = "me" },
			name + " cannot get annotation berth.dev/leader: these keys are written by Berth alone. Leave them out."},
		{"berth", berth, func(c *resourcev1.ResourceClaim) { c.Annotations[v1alpha1.AnnotationLeader] = "7" }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			changed := c.DeepCopy()
			tc.change(changed)
			changed.ResourceVersion = "" // each from the same start
			expect(t, w.as(t, tc.user).Update(t.Context(), changed, client.DryRunAll), policy.Claims, tc.want)
		})
	}
	t.Run("the spec is immutable by the API server", func(t *testing.T) {
		changed := c.DeepCopy()
		changed.Spec.Devices.Requests[0].Exactly.Count = 2
		if err := w.as(t, carla).Update(t.Context(), changed); !apierrors.IsInvalid(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the status subresource does not change metadata", func(t *testing.T) {
		changed := c.DeepCopy()
		changed.Finalizers, changed.Labels = nil, nil
		must(t, w.as(t, carla).Status().Update(t.Context(), changed))
		if len(changed.Finalizers) != 1 || changed.Labels[v1alpha1.LabelReservation] == "" {
			t.Errorf("stripped: %+v", changed.ObjectMeta)
		}
	})
}

// A claim is deleted while pods run; it stays until Berth clears it in one write and lets go.
func TestReleaseByDelete(t *testing.T) {
	w := fenced(t)
	ctx := t.Context()
	ns := w.namespace(t)
	c := claim(ns, "berth.train-0", pinned("other.example.com", "p"), func(c *resourcev1.ResourceClaim) {
		c.Status.ReservedFor = append(c.Status.ReservedFor, podEntry("train-0"))
	})
	w.create(t, berth, c)
	must(t, w.as(t, editor).Delete(ctx, c)) // anybody may ask for it
	must(t, w.berth.Get(ctx, client.ObjectKeyFromObject(c), c))
	if c.DeletionTimestamp == nil || c.Status.Allocation == nil {
		t.Fatalf("deletionTimestamp %v, allocation %v", c.DeletionTimestamp, c.Status.Allocation)
	}

	t.Log("nobody joins a claim that is being deleted, not even by Berth's hand")
	late := c.DeepCopy()
	late.Status.ReservedFor = append(late.Status.ReservedFor, podEntry("late"))
	if err := w.berth.Status().Update(ctx, late); !apierrors.IsInvalid(err) {
		t.Errorf("got %v", err)
	}
	t.Log("the pod's entry goes, the hold stays")
	c.Status.ReservedFor = c.Status.ReservedFor[:1]
	must(t, w.as(t, claimsCtl).Status().Update(ctx, c))
	t.Log("allocation and hold go in one write of Berth, then the finalizer")
	stranger := c.DeepCopy()
	stranger.Status = resourcev1.ResourceClaimStatus{}
	expect(t, w.as(t, claimsCtl).Status().Update(ctx, stranger), policy.HeldClaims,
		held(ns+"/berth.train-0", "its allocation is changed by Berth alone. Delete the job to give the devices back."))
	c.Status = resourcev1.ResourceClaimStatus{}
	must(t, w.berth.Status().Update(ctx, c))
	c.Finalizers = nil
	must(t, w.berth.Update(ctx, c))
	if err := w.berth.Get(ctx, client.ObjectKeyFromObject(c), c); !apierrors.IsNotFound(err) {
		t.Errorf("still there: %v", err)
	}
}

func TestReservationsAreWrittenByBerthAlone(t *testing.T) {
	w := fenced(t)
	ctx := t.Context()
	ns := w.namespace(t)
	r := &v1alpha1.GangReservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "gang-1", Finalizers: []string{v1alpha1.FinalizerReservation}},
		Spec: v1alpha1.GangReservationSpec{
			WorkloadRef: v1alpha1.WorkloadReference{Name: "job-train", UID: "u"}, Check: "berth", Epoch: "0123456789",
			QueuedAt: metav1.Now(),
			PodSets: []v1alpha1.ReservedPodSet{{Name: "main", Count: 1, Hosts: []string{"h"}, Claims: []v1alpha1.ReservedClaim{{
				PodClaim: "tpu", Prefix: "berth.train", PodsPerClaim: 1,
				Devices: []v1alpha1.ReservedDevice{{Request: "tpu", Driver: "d", Pool: "p", Device: "x"}},
			}}}},
		},
	}
	want := "GangReservation " + ns + "/gang-1 is written by Berth alone. It follows the Workload: change or delete the job instead."
	expect(t, w.as(t, carla).Create(ctx, r.DeepCopy()), policy.Reservations, want)
	must(t, w.berth.Create(ctx, r))
	r.Status.Phase = v1alpha1.PhasePlanned
	must(t, w.berth.Status().Update(ctx, r))

	status := r.DeepCopy()
	status.Status.Phase = v1alpha1.PhaseReserved
	expect(t, w.as(t, carla).Status().Update(ctx, status), policy.Reservations, want)
	for name, change := range map[string]func(*v1alpha1.GangReservation){
		"label":     func(r *v1alpha1.GangReservation) { r.Labels = map[string]string{"a": "b"} },
		"note":      func(r *v1alpha1.GangReservation) { r.Annotations = map[string]string{"a": "b"} },
		"finalizer": func(r *v1alpha1.GangReservation) { r.Finalizers = nil },
	} {
		t.Run(name, func(t *testing.T) {
			changed := r.DeepCopy()
			change(changed)
			expect(t, w.as(t, carla).Update(t.Context(), changed), policy.Reservations, want)
		})
	}
	t.Run("garbage collection works on owners and its finalizers", func(t *testing.T) {
		changed := r.DeepCopy()
		changed.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "b"}}
		changed.Finalizers = append(changed.Finalizers, "foregroundDeletion")
		must(t, w.as(t, gc).Update(t.Context(), changed, client.DryRunAll))
	})
	t.Run("deletion is for everyone and the finalizer holds", func(t *testing.T) {
		must(t, w.as(t, carla).Delete(t.Context(), r))
		must(t, w.berth.Get(t.Context(), client.ObjectKeyFromObject(r), r))
		r.Finalizers = nil
		must(t, w.berth.Update(t.Context(), r))
	})
}

// patience for things that a controller does.
func eventually(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		ok, err := done(ctx)
		last = err
		return ok && err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v; last: %v", what, err, last)
	}
}
