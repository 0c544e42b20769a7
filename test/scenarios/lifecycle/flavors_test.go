package lifecycle

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/controller/constants"
	"sigs.k8s.io/kueue/pkg/util/admissioncheck"

	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers"
	"github.com/berth-dev/berth/test/faults"
	"github.com/berth-dev/berth/test/scene"
)

// Two flavors of the same hardware; Kueue tries the first one first.
const (
	firstFlavor  = "first-choice"
	secondFlavor = "second-choice"
	// twoFlavors is the LocalQueue to both.
	twoFlavors = "two-flavors"
)

// flavors adds a queue with both flavors, in which Berth's check applies to the given ones; none means all.
func (s *stage) flavors(checked ...kueue.ResourceFlavorReference) *kueue.ClusterQueue {
	s.Helper()
	for _, name := range []string{firstFlavor, secondFlavor} {
		err := s.Client.Create(s.Context(), &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}})
		s.must(client.IgnoreAlreadyExists(err), "creating ResourceFlavor "+name)
	}
	quota := func(name kueue.ResourceFlavorReference) kueue.FlavorQuotas {
		return kueue.FlavorQuotas{Name: name, Resources: []kueue.ResourceQuota{
			{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("100")},
			{Name: "berth.dev/shares", NominalQuota: resource.MustParse("100")},
		}}
	}
	queue := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace},
		Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			Preemption:        &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{corev1.ResourceCPU, "berth.dev/shares"},
				Flavors:          []kueue.FlavorQuotas{quota(firstFlavor), quota(secondFlavor)},
			}},
			AdmissionChecksStrategy: &kueue.AdmissionChecksStrategy{
				AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: scene.Check, OnFlavors: checked}},
			},
		},
	}
	s.Create(queue)
	s.Create(&kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: twoFlavors},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(queue.Name)},
	})
	return queue
}

// onTwoFlavors sends a Job to that queue.
func onTwoFlavors(j *batchv1.Job) { j.Labels[kueueconstants.QueueLabel] = twoFlavors }

// limit sets the shares of the two flavors.
func (s *stage) limit(queue *kueue.ClusterQueue, shares ...string) {
	s.Helper()
	s.Eventually("limiting the flavors", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(queue), queue); err != nil {
			return err
		}
		for i, n := range shares {
			queue.Spec.ResourceGroups[0].Flavors[i].Resources[1].NominalQuota = resource.MustParse(n)
		}
		return s.Client.Update(ctx, queue)
	})
}

// reassign has Kueue evict a gang and admit it anew at once, now with the second flavor.
func (s *stage) reassign(job *batchv1.Job, queue *kueue.ClusterQueue) {
	s.Helper()
	s.limit(queue, "0")
	s.activate(job, false)
	s.awaitConditions(job, false, kueue.WorkloadQuotaReserved)
	s.activate(job, true)
	s.Eventually("the new admission of "+job.Name, func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, job)
		if err != nil {
			return err
		}
		if a := wl.Status.Admission; a == nil || a.PodSetAssignments[0].Flavors["berth.dev/shares"] != secondFlavor {
			return fmt.Errorf("its admission is %v", a)
		}
		return nil
	})
}

// servedNewest checks that a gang runs on what its newest admission was given, and that only that is left.
func (s *stage) servedNewest(job *batchv1.Job) {
	s.Helper()
	s.Eventually("serving the newest admission of "+job.Name, func(ctx context.Context) error {
		if err := s.Seated(ctx, job); err != nil {
			return err
		}
		r, err := s.ReservationOf(ctx, job)
		if err != nil {
			return err
		}
		if r.Spec.Flavor != secondFlavor {
			return fmt.Errorf("reservation %s is for flavor %s", r.Name, r.Spec.Flavor)
		}
		wl, err := s.WorkloadOf(ctx, job)
		if err != nil {
			return err
		}
		check := admissioncheck.FindAdmissionCheck(wl.Status.AdmissionChecks, scene.Check)
		if check == nil || check.State != kueue.CheckStateReady || check.PodSetUpdates[0].Labels["berth.dev/reservation"] != r.Name {
			return fmt.Errorf("the check is %v and should be Ready with reservation %s", check, r.Name)
		}
		pods, err := s.pods(ctx, job)
		if err != nil {
			return err
		}
		for _, p := range pods {
			if p.Labels["berth.dev/reservation"] != r.Name {
				return fmt.Errorf("pod %s is of reservation %s, want %s", p.Name, p.Labels["berth.dev/reservation"], r.Name)
			}
		}
		return s.held(ctx, r)
	})
}

// TestScenario13_AdmittedAnewUnseen: eviction and new admission, with another flavor, lie behind when Berth looks again.
func TestScenario13_AdmittedAnewUnseen(t *testing.T) {
	s := set(t)
	controller := s.Run()
	queue := s.flavors()
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4, onTwoFlavors))
	s.AwaitSeated(job)
	first := s.reservation(job)
	if first.Spec.Flavor != firstFlavor {
		t.Fatalf("the first reservation is for flavor %s", first.Spec.Flavor)
	}

	s.must(controller.Stop(), "stopping the controller")
	s.reassign(job, queue)
	s.Run()
	s.awaitGone(first)
	s.servedNewest(job)
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestScenario13_AdmittedAnewDuringAWrite: the write that allocates for the first admission is on its way while Kueue evicts
// the gang and admits it anew with another flavor. It arrives, and does not serve anybody.
func TestScenario13_AdmittedAnewDuringAWrite(t *testing.T) {
	s := set(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	plan := faults.NewPlan(faults.Fault{
		At: faults.At("update resourceclaims/status#1"), Kind: faults.Late, Transient: true,
		Hook: func() { close(arrived); <-release },
	})
	s.Run(patient, s.with(plan))
	let := onceClosed(release)
	t.Cleanup(let)
	queue := s.flavors()
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4, onTwoFlavors))
	<-arrived
	first := s.reservation(job)

	s.reassign(job, queue)
	let()
	s.awaitGone(first)
	s.servedNewest(job)
	if n := len(s.wrote("update", "resourceclaims/status")); n < 3 {
		t.Errorf("claims were written %d times: the write that was on its way did not arrive", n)
	}
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestScenario13_AdmittedAnewBehindTheCache: Berth still sees the first admission when it finds a place for it; Kueue has
// admitted the gang anew since. Nothing becomes Ready for the past, and what was made for it is given back.
func TestScenario13_AdmittedAnewBehindTheCache(t *testing.T) {
	s := set(t)
	lag := faults.NewLag()
	t.Cleanup(lag.Release)
	s.Run(scene.RunOptions{Change: func(o *controllers.Options) { o.REST = lag.Config(o.REST) }})
	queue := s.flavors()
	uncordon := s.cordon()
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4, onTwoFlavors))
	s.Eventually("waiting for hosts", func(ctx context.Context) error {
		have, err := s.Reserved(ctx, job)
		if err == nil && !strings.HasPrefix(have, "False HostUnusable: ") {
			err = fmt.Errorf("it reads %q", have)
		}
		return err
	})

	lag.Hold("workloads")
	s.reassign(job, queue)
	uncordon()
	var past *berth.GangReservation
	s.Eventually("a reservation for the past", func(ctx context.Context) error {
		r, err := s.ReservationOf(ctx, job)
		if err != nil {
			return err
		}
		past = r
		return s.held(ctx, r)
	})
	if past.Spec.Flavor != firstFlavor {
		t.Fatalf("reservation %s is for flavor %s: Berth does not lag behind", past.Name, past.Spec.Flavor)
	}

	lag.Release()
	s.awaitGone(past)
	s.servedNewest(job)
	s.Finish(job)
	s.AwaitNoTrace()
}

// cordon makes every node unschedulable until the returned function is called, or the test ends.
func (s *stage) cordon() func() {
	s.Helper()
	set := func(ctx context.Context, unschedulable bool) {
		var nodes corev1.NodeList
		s.must(s.Client.List(ctx, &nodes), "listing nodes")
		for i := range nodes.Items {
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable))
			s.must(s.Client.Patch(ctx, &nodes.Items[i], patch), "cordoning")
		}
	}
	set(s.Context(), true)
	undo := sync.OnceFunc(func() { set(context.Background(), false) })
	s.Cleanup(undo)
	return undo
}

// patient gives a write that a test holds up the time that it takes.
var patient = scene.RunOptions{Configure: func(c *configv1alpha1.BerthConfiguration) {
	c.LeaderElection.LeaseDuration = metav1.Duration{Duration: 2 * scene.Patience}
	c.LeaderElection.RenewDeadline = metav1.Duration{Duration: scene.Patience}
	c.LeaderElection.WriteTimeout = metav1.Duration{Duration: scene.Patience / 2}
}}

// TestScenario18_CheckDoesNotApplyAnyMore: the gang is assigned a flavor to which Berth's check does not apply. What was
// reserved for it is released, although the gang is admitted and goes on without Berth.
func TestScenario18_CheckDoesNotApplyAnyMore(t *testing.T) {
	s := set(t)
	controller := s.Run()
	queue := s.flavors(firstFlavor)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4, onTwoFlavors))
	s.AwaitSeated(job)
	first := s.reservation(job)

	s.must(controller.Stop(), "stopping the controller")
	s.reassign(job, queue)
	s.awaitConditions(job, true, kueue.WorkloadAdmitted)
	s.awaitChecks(job, 0)
	s.Run()
	s.awaitGone(first)
	s.AwaitNoTrace()
	s.AwaitReserved(job, "False Released: released: tpu-4x4-00 (pod-a) on node-0, node-1, node-4, node-5")
	s.awaitConditions(job, true, kueue.WorkloadAdmitted)
	if n := len(s.wrote("create", "gangreservations")); n != 1 {
		t.Errorf("Berth made %d reservations, want 1", n)
	}
	s.DeleteJob(job)
}
