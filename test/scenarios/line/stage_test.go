package line

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

var shared = cluster.Shared{Options: cluster.Options{Audit: true}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// stage is a scene and what these scenarios ask of it.
type stage struct{ *scene.Scene }

// play sets the scene, starts a controller, and sees to it that nothing is left of the test.
func play(t *testing.T) (*stage, *scene.Controller) {
	t.Helper()
	s := &stage{scene.New(t, shared.ForTest(t))}
	t.Cleanup(func() {
		if t.Failed() {
			_ = s.Client.DeleteAllOf(context.Background(), &batchv1.Job{}, client.InNamespace(s.Namespace), client.PropagationPolicy("Background"))
		}
	})
	return s, s.Run()
}

// ends gives the Job's Workload a maximumExecutionTimeSeconds.
func ends(seconds int) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Labels[kueueconstants.MaxExecTimeSecondsLabel] = strconv.Itoa(seconds) }
}

// through sends the Job to another LocalQueue, with a WorkloadPriorityClass.
func through(queue, class string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Labels[kueueconstants.QueueLabel] = queue
		j.Labels[kueueconstants.WorkloadPriorityClassLabel] = class
	}
}

// lendingQueue is a queue whose gangs lend what is kept for them to gangs of lower priority, with the classes low and high.
func (s *stage) lendingQueue() (queue, low, high string) {
	s.Helper()
	name := "lends-" + s.Namespace
	like := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: scene.ClusterQueue}}
	s.Get(like)
	cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *like.Spec.DeepCopy()}
	cq.Spec.AdmissionChecksStrategy.AdmissionChecks[0].Name = kueue.AdmissionCheckReference(name)
	low, high = "low-"+s.Namespace, "high-"+s.Namespace
	for _, obj := range []client.Object{
		&berth.GangReservationConfig{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       berth.GangReservationConfigSpec{Backfill: berth.BackfillPolicy{Evict: berth.EvictLowerPriority}},
		},
		&kueue.AdmissionCheck{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: kueue.AdmissionCheckSpec{ControllerName: berth.ControllerName, Parameters: &kueue.AdmissionCheckParametersReference{
				APIGroup: berth.GroupVersion.Group, Kind: "GangReservationConfig", Name: name,
			}},
		},
		cq,
		&kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: low}, Value: 10},
		&kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: high}, Value: 20},
	} {
		s.Create(obj)
		s.Cleanup(func() {
			if err := s.Client.Delete(context.Background(), obj); err != nil {
				s.Errorf("deleting %T %s: %v", obj, obj.GetName(), err)
			}
		})
	}
	s.Create(&kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "lends"},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(name)},
	})
	return "lends", low, high
}

// reservation is the one that a gang holds.
func (s *stage) reservation(job *batchv1.Job) *berth.GangReservation {
	s.Helper()
	r, err := s.ReservationOf(s.Context(), job)
	if err != nil {
		s.Fatalf("finding the reservation of %s: %v", job.Name, err)
	}
	return r
}

// targets are those in the scene's namespace, by the Job that they are kept for.
func (s *stage) targets(ctx context.Context) (map[string]*berth.GangReservation, error) {
	var list berth.GangReservationList
	if err := s.Client.List(ctx, &list, client.InNamespace(s.Namespace)); err != nil {
		return nil, err
	}
	all := map[string]*berth.GangReservation{}
	for i := range list.Items {
		if r := &list.Items[i]; !r.Holds() {
			if all[r.Spec.Owner.Name] != nil {
				return nil, fmt.Errorf("two targets for %s", r.Spec.Owner.Name)
			}
			all[r.Spec.Owner.Name] = r
		}
	}
	return all, nil
}

// awaitTarget waits until the devices are kept for the Job and the message says by whom they are held.
func (s *stage) awaitTarget(job *batchv1.Job, device, message string) *berth.GangReservation {
	s.Helper()
	var target *berth.GangReservation
	s.Eventually("the target of "+job.Name, func(ctx context.Context) error {
		all, err := s.targets(ctx)
		if err != nil {
			return err
		}
		target = all[job.Name]
		switch {
		case target == nil:
			have, err := s.Reserved(ctx, job)
			return fmt.Errorf("there is none; %s %w", have, err)
		case target.Status.Phase != berth.PhasePlanned:
			return fmt.Errorf("it is %q", target.Status.Phase)
		case len(target.Status.Conditions) != 1 || target.Status.Conditions[0].Message != message:
			return fmt.Errorf("it says %v and should say\n  %s", target.Status.Conditions, message)
		}
		return nil
	})
	if got := target.Spec.PodSets[0].Claims[0].Devices[0].Device; got != device {
		s.Errorf("%s is kept for %s, want %s", got, job.Name, device)
	}
	if len(target.Finalizers) > 0 {
		s.Errorf("target %s has finalizers %v", target.Name, target.Finalizers)
	}
	return target
}

// waitsStill fails the test if one of the gangs holds anything.
func (s *stage) waitsStill(jobs ...*batchv1.Job) {
	s.Helper()
	var list berth.GangReservationList
	if err := s.Client.List(s.Context(), &list, client.InNamespace(s.Namespace)); err != nil {
		s.Fatal(err)
	}
	for i := range list.Items {
		r := &list.Items[i]
		// One that goes may outlive what it held.
		if r.Holds() && r.Status.Phase != berth.PhaseReleasing && slices.ContainsFunc(jobs, func(j *batchv1.Job) bool { return j.Name == r.Spec.Owner.Name }) {
			s.Errorf("%s should wait and has reservation %s", r.Spec.Owner.Name, r.Name)
		}
	}
}
