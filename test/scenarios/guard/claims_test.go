package guard

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/test/scene"
)

// TestScenario32_PinnedClaimEdited: of a pinned claim neither people with the role edit nor administrators change what
// Berth goes by.
func TestScenario32_PinnedClaimEdited(t *testing.T) {
	s := begin(t)
	s.run()
	mallory := s.editor("mallory")
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	before := s.claimOf(job)
	name := "ResourceClaim " + s.Namespace + "/" + before.Name
	held := name + " is held by Berth for GangReservation " + s.reservation(job).Name

	foreign := func(what string) string {
		return name + " cannot get " + what + ": these keys are written by Berth alone. Leave them out."
	}
	kept := func(what string) string {
		return name + " cannot lose " + what + ": Berth holds the claim by it until its gang has gone. Delete the job to give" +
			" the devices back."
	}
	for _, edit := range []struct {
		what   string
		change func(*resourcev1.ResourceClaim)
		want   string
	}{
		{"the finalizer", func(c *resourcev1.ResourceClaim) { c.Finalizers = nil }, kept("finalizer berth.dev/hold")},
		{"a label removed", func(c *resourcev1.ResourceClaim) { c.Labels = nil }, kept("label berth.dev/reservation")},
		{"a label changed", func(c *resourcev1.ResourceClaim) { c.Labels[berth.LabelReservation] = "other" }, foreign("label berth.dev/reservation")},
		{"an annotation removed", func(c *resourcev1.ResourceClaim) { delete(c.Annotations, berth.AnnotationDevices) }, kept("annotation berth.dev/devices")},
		{"an annotation changed", func(c *resourcev1.ResourceClaim) { c.Annotations[berth.AnnotationEpoch] = "0000000000" }, foreign("annotation berth.dev/epoch")},
		{"an annotation added", func(c *resourcev1.ResourceClaim) { c.Annotations["berth.dev/new"] = "x" }, foreign("annotation berth.dev/new")},
	} {
		for user, as := range map[string]client.Client{"mallory": mallory, "an administrator": s.Client} {
			changed := before.DeepCopy()
			edit.change(changed)
			t.Logf("%s by %s", edit.what, user)
			s.denied(as.Update(t.Context(), changed), policy.Claims, edit.want)
		}
	}

	spec := before.DeepCopy()
	spec.Spec.Devices.Requests[0].Exactly.DeviceClassName = "tpu-8x8"
	if err := s.Client.Update(t.Context(), spec); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "field is immutable") {
		t.Errorf("changing the spec: %v", err)
	}

	for _, edit := range []struct {
		what   string
		change func(*resourcev1.ResourceClaimStatus)
		want   string
	}{
		{"everything cleared", func(st *resourcev1.ResourceClaimStatus) { *st = resourcev1.ResourceClaimStatus{} },
			held + ": its allocation is changed by Berth alone. Delete the job to give the devices back."},
		{"the hold removed", func(st *resourcev1.ResourceClaimStatus) { st.ReservedFor = st.ReservedFor[1:] },
			held + ": the Workload's entry in reservedFor is removed by Berth alone. Delete the job to give the devices back."},
		{"a consumer added", func(st *resourcev1.ResourceClaimStatus) {
			st.ReservedFor = append(st.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: "thief", UID: "1"})
		}, held + ": consumers are added to reservedFor by Berth alone. Pods that are not of its gang cannot use it."},
	} {
		changed := before.DeepCopy()
		edit.change(&changed.Status)
		t.Logf("status: %s", edit.what)
		if err := mallory.Status().Update(t.Context(), changed.DeepCopy()); !apierrors.IsForbidden(err) {
			t.Errorf("mallory may write the status: %v", err)
		}
		s.denied(s.Client.Status().Update(t.Context(), changed), policy.HeldClaims, edit.want)
	}

	// What is nobody's business stays free.
	own := before.DeepCopy()
	own.Labels["team"] = "ml"
	s.must(mallory.Update(t.Context(), own), "adding a label of one's own")
	after := s.claimOf(job)
	if !equality.Semantic.DeepEqual(before.Status, after.Status) || !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		t.Errorf("the claim changed from\n%+v\nto\n%+v", before.Status, after.Status)
	}
	s.must(s.Seated(t.Context(), job), "looking after the gang")
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestScenario32_FinalizerStrippedFromDeletedClaim: who deletes a pinned claim, sees it hang and strips the finalizer as
// people do, does not free the device under running pods. The gang is moved as a whole once Berth is back.
func TestScenario32_FinalizerStrippedFromDeletedClaim(t *testing.T) {
	s := begin(t)
	c := s.run()
	mallory := s.editor("mallory")
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	first := s.reservation(job)
	claim := s.claimOf(job)
	s.must(c.Stop(), "stopping Berth")

	s.must(mallory.Delete(t.Context(), claim), "deleting the claim")
	strip := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`))
	s.denied(mallory.Patch(t.Context(), claim.DeepCopy(), strip), policy.Claims, "ResourceClaim "+s.Namespace+"/"+claim.Name+
		" cannot lose finalizer berth.dev/hold: Berth holds the claim by it until its gang has gone. Delete the job to give"+
		" the devices back.")
	s.Get(claim)
	if claim.Status.Allocation == nil {
		t.Error("the claim has lost its allocation")
	}
	s.must(s.Seated(t.Context(), job), "looking after the gang")

	s.run()
	s.Eventually("moving the gang as a whole", func(ctx context.Context) error {
		res, err := s.ReservationOf(ctx, job)
		if err == nil && res.UID == first.UID {
			err = errors.New("it still has its first reservation")
		}
		if err != nil {
			return err
		}
		return s.Seated(ctx, job)
	})
	s.eventSaid(s.workload(job), "SliceLost: ResourceClaim "+claim.Name+" was deleted")
	s.gone(first)
}

func (s *stage) workload(job metav1.Object) *kueue.Workload {
	s.Helper()
	var list kueue.WorkloadList
	s.must(s.Client.List(s.Context(), &list, client.InNamespace(s.Namespace)), "listing Workloads")
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], job) {
			return &list.Items[i]
		}
	}
	s.Fatalf("Job %s has no Workload", job.GetName())
	return nil
}

// impatient shortens the pause after a write that the API server refused.
func impatient(config *configv1alpha1.BerthConfiguration) {
	config.Reservation.RetryBackoffBase = metav1.Duration{Duration: 500 * time.Millisecond}
	config.Reservation.RetryBackoffMax = metav1.Duration{Duration: 2 * time.Second}
}

// TestScenario32_ClaimPlanted: a claim under a name that Berth is about to use is never adopted, whatever it carries. The
// Workload says what is in the way, and when that is gone the gang runs.
func TestScenario32_ClaimPlanted(t *testing.T) {
	labelled := func(c *resourcev1.ResourceClaim, reservation string) {
		c.Labels = map[string]string{berth.LabelReservation: reservation}
		c.Annotations = map[string]string{berth.AnnotationReservationUID: "forged"}
	}
	for name, forge := range map[string]func(*resourcev1.ResourceClaim, string){
		"without any key":   func(*resourcev1.ResourceClaim, string) {},
		"with Berth's keys": labelled,
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t)
			mallory := s.editor("mallory")
			job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
			reservation := s.nextReservation(job)
			claim := &resourcev1.ResourceClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: berth.ClaimNamePrefix + reservation + ".main.tpu-0"},
				Spec:       s.Template("tpu-4x4").Spec.Spec,
			}
			s.denied(mallory.Create(t.Context(), claim.DeepCopy()), policy.Claims, "ResourceClaim "+s.Namespace+"/"+claim.Name+
				" cannot be created: names that begin with \"berth.\" are reserved for Berth. Choose another name.")
			forge(claim, reservation)
			s.plant(claim)

			s.run(scene.RunOptions{Configure: impatient})
			s.AwaitReserved(job, "False ReservationFailed: ResourceClaim "+claim.Name+" exists already and is not Berth's: delete it")
			s.untouched(claim)
			s.must(mallory.Delete(t.Context(), claim), "deleting the planted claim")
			s.AwaitSeated(job)
			s.Finish(job)
			s.AwaitNoTrace()
		})
	}
}

// TestScenario32_ClaimPlantedAsLeftover: a claim with all that Berth puts on one, finalizer included, and of a reservation
// that does not exist is taken for a leftover. It is released, not adopted.
func TestScenario32_ClaimPlantedAsLeftover(t *testing.T) {
	s := begun(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	reservation := s.nextReservation(job)
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: berth.ClaimNamePrefix + reservation + ".main.tpu-0",
			Labels:      map[string]string{berth.LabelReservation: reservation},
			Annotations: map[string]string{berth.AnnotationReservationUID: "forged"},
			Finalizers:  []string{berth.FinalizerHold},
		},
		Spec: s.Template("tpu-4x4").Spec.Spec,
	}
	s.plant(claim)
	s.run(scene.RunOptions{Configure: impatient})
	s.AwaitSeated(job)
	if s.claimOf(job).UID == claim.UID {
		t.Error("the planted claim was adopted")
	}
	s.Finish(job)
	s.AwaitNoTrace()
}

// nextReservation is the name of the reservation that Berth, when it starts, will make for a Job.
func (s *stage) nextReservation(job *batchv1.Job) (name string) {
	s.Helper()
	s.Eventually("quota for "+job.Name, func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, job)
		if err != nil {
			return err
		}
		if !apimeta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadQuotaReserved) {
			return errors.New("there is none")
		}
		name = wl.Name + "-" + adaptkueue.Epoch(wl, scene.Check)
		return nil
	})
	return name
}

// plant creates a claim of Berth's name past the policy, which is back in force afterwards.
func (s *stage) plant(claim *resourcev1.ResourceClaim) {
	s.Helper()
	restore := s.lift(policy.Claims, "claims.yaml", func(ctx context.Context) error {
		return s.Client.Create(ctx, claim.DeepCopy(), client.DryRunAll)
	})
	s.Create(claim)
	restore()
}

// untouched checks that nobody has made the planted claim his own.
func (s *stage) untouched(claim *resourcev1.ResourceClaim) {
	s.Helper()
	now := &resourcev1.ResourceClaim{}
	s.must(s.Client.Get(s.Context(), client.ObjectKeyFromObject(claim), now), "reading claim "+claim.Name)
	if now.UID != claim.UID || now.DeletionTimestamp != nil || len(now.Finalizers) > 0 ||
		!equality.Semantic.DeepEqual(now.Status, claim.Status) {
		s.Errorf("the planted claim changed from\n%+v\nto\n%+v", claim, now)
	}
}
