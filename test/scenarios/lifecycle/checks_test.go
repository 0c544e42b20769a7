package lifecycle

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// TestTwoChecksOfBerth: an administrator names two of Berth's checks in one ClusterQueue. A gang in it holds nothing and is
// told on both; when one is gone it is served. The second comes back while the gang runs, and the gang runs on.
func TestTwoChecksOfBerth(t *testing.T) {
	s := play(t)
	queue := s.flavors()
	second := &kueue.AdmissionCheck{
		ObjectMeta: metav1.ObjectMeta{Name: "a-second-" + s.Namespace},
		Spec:       kueue.AdmissionCheckSpec{ControllerName: berth.ControllerName},
	}
	s.Create(second)
	t.Cleanup(func() { s.must(s.Client.Delete(context.Background(), second), "deleting the second check") })
	apply := func(checks ...kueue.AdmissionCheckReference) {
		s.Eventually("changing the queue's checks", func(ctx context.Context) error {
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(queue), queue); err != nil {
				return err
			}
			queue.Spec.AdmissionChecksStrategy.AdmissionChecks = nil
			for _, name := range checks {
				queue.Spec.AdmissionChecksStrategy.AdmissionChecks = append(queue.Spec.AdmissionChecksStrategy.AdmissionChecks, kueue.AdmissionCheckStrategyRule{Name: name})
			}
			return s.Client.Update(ctx, queue)
		})
	}
	name := kueue.AdmissionCheckReference(second.Name)
	apply(scene.Check, name)
	s.AwaitSeenByKueue(queue.Name)

	job := s.Submit(scene.Gang("train", "tpu-4x4", 4, onTwoFlavors))
	want := fmt.Sprintf("checks %s and berth are both Berth's and both apply: leave one of them in ClusterQueue %s", name, queue.Name)
	s.AwaitReserved(job, "False TooManyChecks: "+want)
	states := s.workload(job).Status.AdmissionChecks
	for _, state := range states {
		if state.State != kueue.CheckStatePending || state.Message != want {
			t.Errorf("check %s is %s: %s", state.Name, state.State, state.Message)
		}
	}
	if len(states) != 2 {
		t.Errorf("the Workload has the checks %v", states)
	}
	var reservations berth.GangReservationList
	s.must(s.Client.List(t.Context(), &reservations, client.InNamespace(s.Namespace)), "listing reservations")
	if len(reservations.Items) != 0 {
		t.Errorf("%d reservations", len(reservations.Items))
	}

	apply(name)
	s.AwaitSeated(job)
	if r := s.reservation(job); r.Spec.Check != second.Name {
		t.Errorf("the reservation is for check %s", r.Spec.Check)
	}
	r, pods := s.reservation(job), s.podsNow(job)
	apply(scene.Check, name)
	s.Eventually("the second check of a gang that runs", func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, job)
		if err == nil && len(wl.Status.AdmissionChecks) < 2 {
			return fmt.Errorf("it has the checks %v", wl.Status.AdmissionChecks)
		}
		return err
	})
	s.must(s.held(t.Context(), r), "while the gang runs")
	if now := s.podsNow(job); names(pods) != names(now) {
		t.Errorf("pods %v became %v", names(pods), names(now))
	}
	s.Finish(job)
	s.AwaitNoTrace()
}
