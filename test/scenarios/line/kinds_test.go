package line

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// TestKinds: what the API server makes of the fields of the waiting line. Berth itself writes, as nobody else may.
func TestKinds(t *testing.T) {
	s := &stage{scene.New(t, shared.ForTest(t))}
	rest, err := s.Cluster.ServiceAccountConfig(t.Context(), "berth-system", "berth-controller")
	if err != nil {
		t.Fatal(err)
	}
	as, err := client.New(rest, client.Options{Scheme: s.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	res := func(name string, change func(*berth.GangReservation)) *berth.GangReservation {
		r := &berth.GangReservation{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
			Spec: berth.GangReservationSpec{
				WorkloadRef: berth.WorkloadReference{Name: "w", UID: "w"}, Check: "none", Epoch: "0123456789", QueuedAt: metav1.Now(),
				Owner: berth.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "j"},
				PodSets: []berth.ReservedPodSet{{Name: "main", Count: 1, Hosts: []string{"h"}, Claims: []berth.ReservedClaim{{
					PodClaim: "tpu", Prefix: "berth.x", PodsPerClaim: 1,
					Devices: []berth.ReservedDevice{{Request: "slice", Driver: "d", Pool: "p", Generation: 1, Device: "x"}},
				}}}},
			},
		}
		change(r)
		return r
	}
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it should be refused with %q: %v", want, err)
		}
	}
	refused(as.Create(t.Context(), res("both", func(r *berth.GangReservation) { r.Spec.Target, r.Spec.Lent = true, true })),
		"a target holds nothing, so nothing can be lent to it")
	target := res("target", func(r *berth.GangReservation) { r.Spec.Target = true })
	if err := as.Create(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	for _, phase := range []berth.ReservationPhase{berth.PhaseReserved, berth.PhaseHandedOver, berth.PhaseReleasing} {
		target.Status.Phase = phase
		refused(as.Status().Update(t.Context(), target.DeepCopy()), "a target stays in phase Planned")
	}
	target.Status.Phase = berth.PhasePlanned
	if err := as.Status().Update(t.Context(), target); err != nil {
		t.Error(err)
	}
	target.Spec.Target = false
	refused(as.Update(t.Context(), target.DeepCopy()), "spec is immutable")
	if err := as.Delete(t.Context(), target); err != nil {
		t.Error(err)
	}

	config := func(name string, p berth.BackfillPolicy) *berth.GangReservationConfig {
		return &berth.GangReservationConfig{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + s.Namespace}, Spec: berth.GangReservationConfigSpec{Backfill: p},
		}
	}
	refused(s.Client.Create(t.Context(), config("a", berth.BackfillPolicy{Targets: "All"})), "Unsupported value: \"All\"")
	refused(s.Client.Create(t.Context(), config("b", berth.BackfillPolicy{Evict: "Always"})), "Unsupported value: \"Always\"")
	refused(s.Client.Create(t.Context(), config("c", berth.BackfillPolicy{AssumedSeconds: ptr.To[int32](0)})), "should be greater than or equal to 1")
	given := config("d", berth.BackfillPolicy{AssumedSeconds: ptr.To[int32](60)})
	s.Create(given)
	if p := given.Spec.Backfill; p.Targets != berth.TargetFirstOfQueue || p.Evict != berth.EvictNever {
		t.Errorf("defaults are %+v", p)
	}
	if err := s.Client.Delete(t.Context(), given); err != nil {
		t.Error(err)
	}
}
