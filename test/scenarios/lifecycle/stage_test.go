package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/invariants"
	"github.com/berth-dev/berth/test/scene"
)

// berthUser is who Berth is in the audit log.
const berthUser = "system:serviceaccount:berth-system:berth-controller"

// lingering is a finalizer that keeps a pod as a long shutdown would: it terminates, and it may still run.
const lingering = "lifecycle.test/shutdown"

// formerFirst is what a gang says that was admitted anew while pods of its last admission end.
const formerFirst = "False WaitingTurn: the gang's former slice is being released first"

// stage is a scene and what these scenarios ask of it again and again.
type stage struct{ *scene.Scene }

// set makes a stage without a controller.
func set(t *testing.T, opts ...invariants.Option) *stage {
	t.Helper()
	s := &stage{scene.New(t, shared.ForTest(t), opts...)}
	t.Cleanup(s.clear)
	return s
}

// play makes a stage with a controller.
func play(t *testing.T) *stage {
	t.Helper()
	s := set(t)
	s.Run()
	return s
}

// clear lets go of what a failed test leaves behind, so that the next one finds free hardware. A test that passed has
// seen to it that nothing is left.
func (s *stage) clear() {
	if !s.Failed() {
		return
	}
	ctx := context.Background()
	var failed []error
	failed = append(failed, s.Client.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(s.Namespace),
		client.PropagationPolicy("Background")))
	var pods corev1.PodList
	failed = append(failed, s.Client.List(ctx, &pods, client.InNamespace(s.Namespace)))
	for i := range pods.Items {
		failed = append(failed, s.endShutdown(ctx, &pods.Items[i]))
	}
	if err := errors.Join(failed...); err != nil {
		s.Logf("clearing the stage: %v", err)
	}
}

// must fails the test on an error.
func (s *stage) must(err error, doing string) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", doing, err)
	}
}

// pods are the pods of a Job by rank, the deleted ones and the ended ones among them. Two of one rank are an error.
func (s *stage) pods(ctx context.Context, job *batchv1.Job) (map[string]*corev1.Pod, error) {
	list, err := s.PodsOf(ctx, job)
	if err != nil {
		return nil, err
	}
	ranks := map[string]*corev1.Pod{}
	for i := range list {
		rank := list[i].Labels[batchv1.JobCompletionIndexAnnotation]
		if other := ranks[rank]; other != nil {
			return nil, fmt.Errorf("%s and %s are both of rank %s", other.Name, list[i].Name, rank)
		}
		ranks[rank] = &list[i]
	}
	return ranks, nil
}

// awaitRunning waits until every pod of a Job runs. One that is seated may still be about to.
func (s *stage) awaitRunning(job *batchv1.Job) {
	s.Helper()
	s.Eventually("running "+job.Name, func(ctx context.Context) error {
		pods, err := s.pods(ctx, job)
		for rank, p := range pods {
			if p.Status.Phase != corev1.PodRunning {
				err = errors.Join(err, fmt.Errorf("rank %s is %s", rank, p.Status.Phase))
			}
		}
		return err
	})
}

// podsNow is pods for a gang that stands still.
func (s *stage) podsNow(job *batchv1.Job) []*corev1.Pod {
	s.Helper()
	ranks, err := s.pods(s.Context(), job)
	s.must(err, "listing the pods of "+job.Name)
	var all []*corev1.Pod
	for _, p := range ranks {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// prolong makes the shutdown of pods last until endShutdown.
func (s *stage) prolong(pods []*corev1.Pod) {
	s.Helper()
	for _, p := range pods {
		patch := client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil, `{"metadata":{"finalizers":[%q]}}`, lingering))
		s.must(s.Client.Patch(s.Context(), p.DeepCopy(), patch), "prolonging the shutdown of pod "+p.Name)
	}
}

// endShutdown undoes prolong.
func (s *stage) endShutdown(ctx context.Context, p *corev1.Pod) error {
	patch := fmt.Appendf(nil, `{"metadata":{"$deleteFromPrimitiveList/finalizers":[%q]}}`, lingering)
	return client.IgnoreNotFound(s.Client.Patch(ctx, p.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch)))
}

// shutDown lets pods go.
func (s *stage) shutDown(pods ...*corev1.Pod) {
	s.Helper()
	for _, p := range pods {
		s.must(s.endShutdown(s.Context(), p), "ending the shutdown of pod "+p.Name)
	}
}

// names of pods as a sentence lists them.
func names(pods []*corev1.Pod) string {
	all := make([]string, 0, len(pods))
	for _, p := range pods {
		all = append(all, p.Name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// reservation is the one that a seated gang has.
func (s *stage) reservation(job *batchv1.Job) *berth.GangReservation {
	s.Helper()
	r, err := s.ReservationOf(s.Context(), job)
	s.must(err, "finding the reservation of "+job.Name)
	return r
}

// claimsOf are the pinned claims of a reservation that exist.
func (s *stage) claimsOf(ctx context.Context, reservation string) ([]resourcev1.ResourceClaim, error) {
	var list resourcev1.ResourceClaimList
	err := s.Client.List(ctx, &list, client.InNamespace(s.Namespace), client.MatchingLabels{berth.LabelReservation: reservation})
	return list.Items, err
}

// held returns nil when every claim of a reservation still keeps its device, with the hold of its Workload.
func (s *stage) held(ctx context.Context, r *berth.GangReservation) error {
	claims, err := s.claimsOf(ctx, r.Name)
	if err != nil {
		return err
	}
	set := r.Spec.PodSets[0]
	if want := len(set.Hosts) / int(set.Claims[0].PodsPerClaim); len(claims) != want {
		return fmt.Errorf("reservation %s has %d claims, want %d", r.Name, len(claims), want)
	}
	for i := range claims {
		c := &claims[i]
		if c.Status.Allocation == nil {
			return fmt.Errorf("claim %s is not allocated", c.Name)
		}
		if !slices.ContainsFunc(c.Status.ReservedFor, func(ref resourcev1.ResourceClaimConsumerReference) bool {
			return ref.Resource == "workloads" && ref.UID == r.Spec.WorkloadRef.UID
		}) {
			return fmt.Errorf("claim %s is not held for its Workload but for %v", c.Name, c.Status.ReservedFor)
		}
	}
	return nil
}

// awaitWaiting waits until a reservation says what it waits for.
func (s *stage) awaitWaiting(r *berth.GangReservation, want string) {
	s.Helper()
	s.Eventually("what reservation "+r.Name+" waits for", func(ctx context.Context) error {
		have := &berth.GangReservation{}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(r), have); err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(have.Status.Conditions, berth.ReservationProgressing)
		if c == nil || c.Reason+": "+c.Message != want {
			return fmt.Errorf("it is %s and says\n  %v\nand should say\n  %s", have.Status.Phase, c, want)
		}
		return nil
	})
}

// awaitGone waits until a reservation and its claims are gone.
func (s *stage) awaitGone(r *berth.GangReservation) {
	s.Helper()
	s.Eventually("the end of reservation "+r.Name, func(ctx context.Context) error {
		have := &berth.GangReservation{}
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(r), have)
		if err == nil {
			return fmt.Errorf("it is %s: %v", have.Status.Phase, have.Status.Conditions)
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		claims, err := s.claimsOf(ctx, r.Name)
		if err == nil && len(claims) > 0 {
			err = fmt.Errorf("it is gone and claim %s is not", claims[0].Name)
		}
		return err
	})
}

// workload is the Workload of a Job.
func (s *stage) workload(job *batchv1.Job) *kueue.Workload {
	s.Helper()
	wl, err := s.WorkloadOf(s.Context(), job)
	s.must(err, "finding the Workload of "+job.Name)
	return wl
}

// activate sets spec.active of a Job's Workload.
func (s *stage) activate(job *batchv1.Job, active bool) {
	s.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"active":%t}}`, active))
	s.must(s.Client.Patch(s.Context(), s.workload(job), patch), "setting spec.active")
}

// awaitConditions waits until all of the named conditions of a Job's Workload have a status.
func (s *stage) awaitConditions(job *batchv1.Job, want bool, kinds ...string) {
	s.Helper()
	s.Eventually("conditions of "+job.Name, func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, job)
		if err != nil {
			return err
		}
		for _, kind := range kinds {
			if apimeta.IsStatusConditionTrue(wl.Status.Conditions, kind) != want {
				return fmt.Errorf("%s should be %t; conditions are %v", kind, want, wl.Status.Conditions)
			}
		}
		return nil
	})
}

// wrote returns the writes of Berth in the stage's namespace that the API server accepted.
func (s *stage) wrote(verb, resource string) []cluster.Write {
	s.Helper()
	writes, err := s.Cluster.Writes(s.Context(), func(w cluster.Write) bool {
		return w.User == berthUser && w.Namespace == s.Namespace && w.Code < 300 && w.Verb == verb && w.Resource == resource
	})
	s.must(err, "reading the audit log")
	return writes
}

// moved waits until a gang runs on another reservation than was.
func (s *stage) moved(job *batchv1.Job, was *berth.GangReservation) *berth.GangReservation {
	s.Helper()
	s.Eventually("moving "+job.Name, func(ctx context.Context) error {
		now, err := s.ReservationOf(ctx, job)
		if err != nil {
			return err
		}
		if now.UID == was.UID {
			return fmt.Errorf("it still has reservation %s", was.Name)
		}
		return s.Seated(ctx, job)
	})
	return s.reservation(job)
}

// awaitEvicted waits until Kueue has counted an eviction of a Job's Workload for a reason.
func (s *stage) awaitEvicted(job *batchv1.Job, reason string) {
	s.Helper()
	s.Eventually("evicting "+job.Name, func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, job)
		if err != nil {
			return err
		}
		if wl.Status.SchedulingStats != nil {
			for _, e := range wl.Status.SchedulingStats.Evictions {
				if e.Reason == reason && e.Count > 0 {
					return nil
				}
			}
		}
		return fmt.Errorf("no eviction because of %s: %v", reason, wl.Status.Conditions)
	})
}

// onceClosed returns a function that closes c at its first call.
func onceClosed(c chan struct{}) func() { return sync.OnceFunc(func() { close(c) }) }
