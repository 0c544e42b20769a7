package hardware

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

func TestScenario03_TwoWorkloadsOneSlice(t *testing.T) {
	s := begin(t)
	st := s.Follow()
	activate(s)
	// Two queues, because one scheduling cycle of Kueue takes the head of each: quota comes in the same moment. Berth runs
	// only when both have it, so that one pass has to choose.
	a, b := heldQueue(s, "a"), heldQueue(s, "b")
	first := s.Submit(scene.Gang("first", "tpu-8x8", 16, through(a)))
	second := s.Submit(scene.Gang("second", "tpu-8x8", 16, through(b)))
	for _, job := range []*batchv1.Job{first, second} {
		s.Eventually("the Workload of "+job.Name, func(ctx context.Context) error {
			_, err := s.WorkloadOf(ctx, job)
			return err
		})
	}
	release(s, a, b)
	for _, job := range []*batchv1.Job{first, second} {
		s.Eventually("quota of "+job.Name, func(ctx context.Context) error { return hasQuota(ctx, s, job) })
		if lines := st.Of(job); slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "GangReserved") }) {
			t.Errorf("somebody answers before Berth runs:\n%s", st)
		}
	}
	run(s)

	winner, loser := first, second
	s.Eventually("one of both", func(ctx context.Context) error {
		errFirst, errSecond := s.Seated(ctx, first), s.Seated(ctx, second)
		switch {
		case errFirst == nil:
			return nil
		case errSecond == nil:
			winner, loser = second, first
			return nil
		}
		return fmt.Errorf("neither runs: %w; %w", errFirst, errSecond)
	})
	s.AwaitReserved(loser, fmt.Sprintf("False NoFreeSlice: no tpu-8x8 is free: 1 of 1 is held by %s/%s",
		s.Namespace, reservation(s, winner).Name))
	assertHoldsNothing(s, loser)
	if lines := st.Of(loser); slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "check Ready") }) {
		t.Errorf("both became Ready:\n%s", st)
	}

	s.Finish(winner)
	s.AwaitSeated(loser)
	s.Finish(loser)
	s.AwaitNoTrace()
}

func TestScenario04_TwoGangsThatEachNeedEverySlice(t *testing.T) {
	s := begin(t)
	st := s.Follow()
	activate(s)
	everySlice := func(name string) *batchv1.Job {
		return scene.Gang(name, "tpu-4x4", 16, func(j *batchv1.Job) {
			j.Spec.Template.Annotations = map[string]string{berth.AnnotationSlices: "4"}
		})
	}
	// Both are admitted to quota before anybody can reserve, so that the first pass has to choose between them. One after
	// the other, because the line goes by the Workloads, and Kueue makes those of two Jobs in any order.
	var both [2]*batchv1.Job
	for i, name := range []string{"first", "second"} {
		both[i] = s.Submit(everySlice(name))
		s.Eventually("quota of "+name, func(ctx context.Context) error { return hasQuota(ctx, s, both[i]) })
	}
	first, second := both[0], both[1]
	run(s)

	s.AwaitSeated(first)
	s.AwaitReserved(second, fmt.Sprintf("False NoFreeSlice: no tpu-4x4 is free: 4 of 4 are held by %s/%s",
		s.Namespace, reservation(s, first).Name))
	assertHoldsNothing(s, second)

	s.Finish(first)
	s.AwaitSeated(second)
	if got := devices(reservation(s, second)); len(got) != 4 {
		t.Errorf("the second gang runs on %v", got)
	}
	st.Never("retry")
	s.Finish(second)
	s.AwaitNoTrace()
}

// devices of a reservation in order.
func devices(res *berth.GangReservation) []string {
	var names []string
	for _, ps := range res.Spec.PodSets {
		for _, c := range ps.Claims {
			for _, d := range c.Devices {
				names = append(names, d.Device)
			}
		}
	}
	return names
}

// assertHoldsNothing fails the test if a Workload has a reservation or a claim.
func assertHoldsNothing(s *scene.Scene, job *batchv1.Job) {
	s.Helper()
	wl, err := s.WorkloadOf(s.Context(), job)
	if err != nil {
		s.Fatal(err)
	}
	var reservations berth.GangReservationList
	var claims resourcev1.ResourceClaimList
	for _, list := range []client.ObjectList{&reservations, &claims} {
		if err := s.Client.List(s.Context(), list, client.InNamespace(s.Namespace)); err != nil {
			s.Fatal(err)
		}
	}
	for _, r := range reservations.Items {
		if r.Spec.WorkloadRef.UID == wl.UID && r.Holds() {
			s.Errorf("Workload %s waits and has GangReservation %s (%s)", wl.Name, r.Name, r.Status.Phase)
		}
	}
	for _, c := range claims.Items {
		if c.Annotations[berth.AnnotationWorkloadUID] == string(wl.UID) {
			s.Errorf("Workload %s waits and has ResourceClaim %s", wl.Name, c.Name)
		}
	}
}

// activate lets Berth run until its check is Active, without which Kueue reserves no quota, and stops it again.
func activate(s *scene.Scene) {
	s.Helper()
	c := s.Run()
	check := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: scene.Check}}
	s.Eventually("activating the check", func(context.Context) error {
		s.Get(check)
		if !apimeta.IsStatusConditionTrue(check.Status.Conditions, kueue.AdmissionCheckActive) {
			return fmt.Errorf("its conditions are %v", check.Status.Conditions)
		}
		return nil
	})
	if err := c.Stop(); err != nil {
		s.Fatalf("stopping the controller: %v", err)
	}
}

func hasQuota(ctx context.Context, s *scene.Scene, job *batchv1.Job) error {
	wl, err := s.WorkloadOf(ctx, job)
	if err == nil && wl.Status.Admission == nil {
		err = fmt.Errorf("Workload %s has no quota", wl.Name)
	}
	return err
}

// heldQueue makes a copy of the scene's ClusterQueue that is on hold, and a LocalQueue to it.
func heldQueue(s *scene.Scene, name string) *kueue.ClusterQueue {
	s.Helper()
	like := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: scene.ClusterQueue}}
	s.Get(like)
	cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-" + name}, Spec: like.Spec}
	cq.Spec.StopPolicy = ptr.To(kueue.Hold)
	s.Create(cq)
	s.Cleanup(func() {
		if err := s.Client.Delete(context.Background(), cq); err != nil {
			s.Errorf("deleting ClusterQueue %s: %v", cq.Name, err)
		}
	})
	s.Create(&kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(cq.Name)},
	})
	return cq
}

// through sends a Job to the LocalQueue of a held queue.
func through(cq *kueue.ClusterQueue) func(*batchv1.Job) {
	_, queue, _ := strings.Cut(strings.TrimPrefix(cq.Name, "ml-"), "-")
	return func(j *batchv1.Job) { j.Labels[kueueconstants.QueueLabel] = queue }
}

// release lifts the hold of several queues at once.
func release(s *scene.Scene, queues ...*kueue.ClusterQueue) {
	s.Helper()
	errs := make(chan error, len(queues))
	for _, cq := range queues {
		go func() {
			errs <- s.Client.Patch(s.Context(), cq, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"stopPolicy":"None"}}`)))
		}()
	}
	for range queues {
		if err := <-errs; err != nil {
			s.Fatalf("releasing: %v", err)
		}
	}
}
