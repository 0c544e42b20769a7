package lifecycle

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// TestScenario19_EvictedWhileAdmitted: between an eviction and the end of the pods a Workload is Admitted, QuotaReserved and
// Evicted at once. Nothing is released as long as the pods run, and everything once they are gone.
func TestScenario19_EvictedWhileAdmitted(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	s.awaitRunning(job)
	r, pods := s.reservation(job), s.podsNow(job)

	s.stop(cluster.ControllerManager) // nobody deletes the pods of the suspended Job
	s.activate(job, false)
	s.awaitWaiting(r, "Waiting: 4 of the gang's pods may still run: "+names(pods))
	s.awaitConditions(job, true, kueue.WorkloadAdmitted, kueue.WorkloadQuotaReserved, kueue.WorkloadEvicted)
	s.Eventually("suspending the Job", func(ctx context.Context) error {
		s.Get(job)
		if !*job.Spec.Suspend {
			return fmt.Errorf("it is not suspended")
		}
		return nil
	})
	s.must(s.held(t.Context(), r), "while the pods run")
	for _, p := range s.podsNow(job) {
		if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %s does not run: the test shows nothing", p.Name)
		}
	}
	s.awaitConditions(job, true, kueue.WorkloadAdmitted, kueue.WorkloadQuotaReserved, kueue.WorkloadEvicted)

	s.start(cluster.ControllerManager)
	s.AwaitNoTrace()
	s.awaitConditions(job, false, kueue.WorkloadAdmitted, kueue.WorkloadQuotaReserved)
}

// TestScenario12_ReconciledBetweenRetryAndEviction: Kueue is away when Berth asks for the eviction, so the old admission
// stands for a while with Retry on it. Nothing is made for it any more, whatever wakes the controllers.
func TestScenario12_ReconciledBetweenRetryAndEviction(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	first, pods := s.reservation(job), s.podsNow(job)
	claims, err := s.claimsOf(t.Context(), first.Name)
	s.must(err, "listing claims")
	stranger := s.strayWorkload()

	s.withoutKueue()
	s.must(s.Client.Delete(t.Context(), &claims[0]), "deleting the claim")
	s.AwaitReserved(job, "False SliceLost: ResourceClaim "+claims[0].Name+" was deleted")
	if wl := s.workload(job); wl.Status.AdmissionChecks[0].State != kueue.CheckStateRetry {
		t.Errorf("the check is %v, want Retry", wl.Status.AdmissionChecks[0])
	}
	retried := time.Now()

	// Both controllers that could reserve have a reason to look: the Workload changes, and another one is admitted. That
	// the second is answered shows that a pass over all of them was made.
	wl := s.workload(job)
	wl.Annotations = map[string]string{"lifecycle.test/wake": "up"}
	s.must(s.Client.Update(t.Context(), wl), "touching the Workload")
	s.admitByHand(stranger)
	s.Eventually("an answer to the stray Workload", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(stranger), stranger); err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(stranger.Status.Conditions, berth.ConditionGangReserved)
		if c == nil || c.Message != "the Workload has no owner, so nothing says which pods are its own" {
			return fmt.Errorf("its conditions are %v", stranger.Status.Conditions)
		}
		return nil
	})
	s.awaitWaiting(first, "Waiting: 4 of the gang's pods may still run: "+names(pods))
	s.must(s.held(t.Context(), first), "while the pods run")
	for _, resource := range []string{"gangreservations", "resourceclaims"} {
		if made := s.wrote("create", resource); len(made) != 1 || made[0].Time.After(retried) {
			t.Errorf("Berth made %s after it asked for the eviction: %v", resource, made)
		}
	}

	s.start(cluster.Kueue)
	second := s.moved(job, first)
	s.awaitGone(first)
	s.must(s.held(t.Context(), second), "on the fresh claim")
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestPreempted: Kueue gives the quota of a gang to one of higher priority at once, while the pods of the first still end.
// The second waits for the hardware, and gets it after the last of them; the first gets it back in turn.
func TestPreempted(t *testing.T) {
	s := play(t)
	queue := s.flavors()
	s.limit(queue, "16", "0")
	s.Create(&kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}, Value: 1000})
	low := s.Submit(scene.Gang("low", "tpu-8x8", 16, onTwoFlavors))
	s.AwaitSeated(low)
	r, pods := s.reservation(low), s.podsNow(low)
	s.prolong(pods[:1])

	high := s.Submit(scene.Gang("high", "tpu-8x8", 16, onTwoFlavors, func(j *batchv1.Job) {
		j.Labels[kueueconstants.WorkloadPriorityClassLabel] = s.Namespace
	}))
	s.awaitEvicted(low, kueue.WorkloadEvictedByPreemption)
	s.AwaitReserved(high, fmt.Sprintf("False NoFreeSlice: no tpu-8x8 is free: 1 of 1 is held by %s/%s", r.Namespace, r.Name))
	s.awaitConditions(high, true, kueue.WorkloadQuotaReserved)
	s.awaitWaiting(r, "Waiting: 1 of the gang's pods may still run: "+names(pods[:1]))
	s.must(s.held(t.Context(), r), "while a pod of the preempted gang ends")

	s.shutDown(pods[0])
	s.AwaitSeated(high)
	s.awaitGone(r)
	s.Finish(high)
	s.moved(low, r)
	s.Finish(low)
	s.AwaitNoTrace()
}

// strayWorkload is a Workload that no Job owns and no queue admits.
func (s *stage) strayWorkload() *kueue.Workload {
	s.Helper()
	template := scene.Gang("stray", "tpu-4x4", 4).Spec.Template
	wl := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "stray"},
		Spec: kueue.WorkloadSpec{
			QueueName: "nowhere",
			PodSets:   []kueue.PodSet{{Name: kueue.DefaultPodSetName, Count: 4, Template: template}},
		},
	}
	s.Create(wl)
	return wl
}

// admitByHand makes a Workload look as if Kueue waited for Berth's check.
func (s *stage) admitByHand(wl *kueue.Workload) {
	s.Helper()
	s.Get(wl)
	wl.Status.Admission = &kueue.Admission{ClusterQueue: scene.ClusterQueue, PodSetAssignments: []kueue.PodSetAssignment{{
		Name: kueue.DefaultPodSetName, Count: ptr.To[int32](4),
		Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{corev1.ResourceCPU: scene.Flavor},
	}}}
	apimeta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{
		Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue, Reason: "ByHand",
	})
	wl.Status.AdmissionChecks = []kueue.AdmissionCheckState{{
		Name: scene.Check, State: kueue.CheckStatePending, LastTransitionTime: metav1.Now(),
	}}
	s.must(s.Client.Status().Update(s.Context(), wl), "admitting by hand")
}

// withoutKueue stops Kueue until start, and lets Workloads be written without its webhooks meanwhile.
func (s *stage) withoutKueue() {
	s.Helper()
	s.failurePolicy(s.Context(), admissionregistrationv1.Ignore)
	s.Cleanup(func() { s.failurePolicy(context.Background(), admissionregistrationv1.Fail) })
	s.stop(cluster.Kueue)
	probe := &kueue.Workload{}
	probe.Namespace, probe.Name = s.Namespace, "probe"
	probe.Spec.PodSets = []kueue.PodSet{{Name: kueue.DefaultPodSetName, Count: 1, Template: scene.Gang("probe", "tpu-2x2", 1).Spec.Template}}
	s.Eventually("writing Workloads without Kueue", func(ctx context.Context) error {
		return s.Client.Create(ctx, probe.DeepCopy(), client.DryRunAll)
	})
}

// failurePolicy sets what happens to Workloads when Kueue's webhooks do not answer.
func (s *stage) failurePolicy(ctx context.Context, policy admissionregistrationv1.FailurePolicyType) {
	s.Helper()
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	s.must(s.Client.Get(ctx, client.ObjectKey{Name: "kueue-validating-webhook-configuration"}, validating), "reading webhooks")
	for i := range validating.Webhooks {
		if validating.Webhooks[i].Name == "vworkload.kb.io" {
			validating.Webhooks[i].FailurePolicy = &policy
		}
	}
	s.must(s.Client.Update(ctx, validating), "writing webhooks")
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	s.must(s.Client.Get(ctx, client.ObjectKey{Name: "kueue-mutating-webhook-configuration"}, mutating), "reading webhooks")
	for i := range mutating.Webhooks {
		if mutating.Webhooks[i].Name == "mworkload.kb.io" {
			mutating.Webhooks[i].FailurePolicy = &policy
		}
	}
	s.must(s.Client.Update(ctx, mutating), "writing webhooks")
}

// stop stops a component of the cluster until start, or until the end of the test.
func (s *stage) stop(name string) {
	s.Helper()
	s.must(s.Cluster.Process(name).Stop(), "stopping "+name)
	s.Cleanup(func() {
		if s.Cluster.Process(name).PID() == 0 {
			if err := s.Cluster.Process(name).Start(context.Background()); err != nil {
				s.Error(err)
			}
		}
	})
}

// start starts a stopped component.
func (s *stage) start(name string) {
	s.Helper()
	s.must(s.Cluster.Process(name).Start(s.Context()), "starting "+name)
}
