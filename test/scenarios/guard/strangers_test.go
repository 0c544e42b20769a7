package guard

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// TestScenario31_StrangerNamesPinnedClaim: nobody's pod gets at a gang's claim by naming it, and a pod that does so
// because the policy was away neither runs nor keeps the devices from being released.
func TestScenario31_StrangerNamesPinnedClaim(t *testing.T) {
	s := begin(t)
	s.run()
	seats := s.watchSeats()
	mallory := s.editor("mallory")
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	claim := s.claimOf(job).Name
	refusal := "pod of a gang refused: ResourceClaim " + claim + " is held by Berth for a gang and only the pods of that gang" +
		" may use it. Name a ResourceClaimTemplate, and submit the job to a Kueue queue that has Berth's admission check."

	thief := func(change ...func(*corev1.Pod)) *corev1.Pod {
		return pod(s.Namespace, "thief", append(change, using(claimNamed(claim)))...)
	}
	s.denied(mallory.Create(t.Context(), thief()), policy.Pods, refusal)
	s.denied(s.Client.Create(t.Context(), thief()), policy.Pods, refusal)
	onHost := func(p *corev1.Pod) { p.Spec.NodeName = "node-0" }
	s.denied(s.Client.Create(t.Context(), thief(onHost)), policy.Pods, refusal)

	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "thieves"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "thieves"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "thieves"}},
				Spec:       thief(func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways }).Spec,
			},
		},
	}
	s.must(mallory.Create(t.Context(), set), "creating a ReplicaSet")
	s.Eventually("the refusal of the ReplicaSet's pods", func(ctx context.Context) error {
		return s.anyEvent(ctx, set, "FailedCreate", refusal)
	})
	s.must(mallory.Delete(t.Context(), set), "deleting the ReplicaSet")

	restore := s.lift(policy.Pods, "pods.yaml", func(ctx context.Context) error {
		return s.Client.Create(ctx, thief(), client.DryRunAll)
	})
	waiting, bound := thief(), thief(onHost)
	waiting.Name, bound.Name = "waiting", "bound"
	s.must(mallory.Create(t.Context(), waiting), "creating a stranger")
	s.must(mallory.Create(t.Context(), bound), "creating a stranger on a node")
	restore()
	// Both kube-scheduler and, for the pod that has its node already, kube-controller-manager try to seat them.
	held := "ResourceClaim " + s.Namespace + "/" + claim + " is held by Berth for GangReservation " + s.reservation(job).Name +
		": consumers are added to reservedFor by Berth alone. Pods that are not of its gang cannot use it."
	s.Eventually("kube-scheduler's attempt", func(ctx context.Context) error {
		return s.anyEvent(ctx, waiting, "FailedScheduling", held)
	})

	s.Finish(job)
	s.AwaitNoTrace()
	for _, p := range []*corev1.Pod{waiting, bound} {
		s.Get(p)
		if claim := seats.of(p); claim != "" {
			t.Errorf("pod %s stood in claim %s", p.Name, claim)
		}
	}
	if waiting.Spec.NodeName != "" {
		t.Errorf("the stranger was bound to %s", waiting.Spec.NodeName)
	}
}

// anyEvent returns nil when an event about the object has the reason and contains the text.
func (s *stage) anyEvent(ctx context.Context, about client.Object, reason, text string) error {
	var list corev1.EventList
	if err := s.Client.List(ctx, &list, client.InNamespace(about.GetNamespace())); err != nil {
		return err
	}
	var said []string
	for _, e := range list.Items {
		if e.InvolvedObject.UID != about.GetUID() {
			continue
		}
		if e.Reason == reason && strings.Contains(e.Message, text) {
			return nil
		}
		said = append(said, e.Reason+": "+e.Message)
	}
	return fmt.Errorf("no event %s of %s contains\n  %s\nthey are\n  %s", reason, about.GetName(), text, strings.Join(said, "\n  "))
}

// forged is a pod that looks to the policies like one of the gang: it carries what Kueue writes into the Job's template.
func (s *stage) forged(name string, job *batchv1.Job, rank string, change ...func(*corev1.Pod)) *corev1.Pod {
	s.Helper()
	res := s.reservation(job)
	ps := res.Spec.PodSets[0]
	p := pod(s.Namespace, name, append(change, using(claimFrom("tpu-4x4")))...)
	p.Labels[berth.LabelReservation] = res.Name
	p.Labels[batchv1.JobCompletionIndexAnnotation] = rank
	p.Annotations[berth.AnnotationContract] = berth.ContractVersion
	p.Annotations[berth.AnnotationHosts] = strings.Join(ps.Hosts, ",")
	p.Annotations[berth.AnnotationClaimPrefix+"tpu"] = fmt.Sprintf("%s/%d", ps.Claims[0].Prefix, ps.Claims[0].PodsPerClaim)
	return p
}

// ownedBy makes a pod look like one that a Job's controller has made.
func ownedBy(job *batchv1.Job) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	}
}

// TestScenario31_ForgedPodsOfRunningGang: who may not join is refused; a forgery by somebody who may is deleted, and while
// it cannot go the release does not wait for it.
func TestScenario31_ForgedPodsOfRunningGang(t *testing.T) {
	s := begin(t)
	s.run()
	seats := s.watchSeats()
	mallory := s.editor("mallory")
	other := s.Submit(&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "other"},
		Spec:       batchv1.JobSpec{Suspend: ptr.To(true), Template: corev1.PodTemplateSpec{Spec: pod("", "").Spec}},
	})
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	res := s.reservation(job)

	refusal := "pod of a gang refused: mallory may not create pods of a gang. Remove the label berth.dev/reservation: it is put" +
		" on the pods of an admitted job by its controller. (A controller gets the right from ClusterRole berth-gang-member.)"
	s.denied(mallory.Create(t.Context(), s.forged("forged", job, "0")), policy.Pods, refusal)
	s.denied(mallory.Create(t.Context(), s.forged("forged", job, "0", ownedBy(job))), policy.Pods, refusal)
	later := pod(s.Namespace, "later")
	s.must(mallory.Create(t.Context(), later), "creating an ordinary pod")
	s.Eventually("labelling it", func(ctx context.Context) error { // its status changes meanwhile
		s.Get(later)
		later.Labels = map[string]string{berth.LabelReservation: res.Name}
		err := mallory.Update(ctx, later)
		if err != nil && strings.Contains(err.Error(), "the object has been modified") {
			return err
		}
		s.denied(err, policy.Pods, "Pod "+s.Namespace+"/later belongs to a gang: label berth.dev/reservation is changed by Berth"+
			" alone. Leave it as it is, or delete the pod.")
		return nil
	})

	const stays = "example.com/stays"
	forgeries := []*corev1.Pod{
		s.forged("forged-alone", job, "0"),
		s.forged("forged-other", job, "1", ownedBy(other)),
		s.forged("forged-stays", job, "2", ownedBy(other), func(p *corev1.Pod) { p.Finalizers = []string{stays} }),
	}
	for _, p := range forgeries {
		s.Create(p)
		if !jobs.Gated(p) {
			t.Errorf("pod %s is not gated", p.Name)
		}
		s.eventSaid(p, "NotOfTheGang: deleted: it names reservation "+res.Name+" and has no seat in it")
	}
	s.gone(forgeries[0].DeepCopy())
	s.gone(forgeries[1].DeepCopy())
	s.must(s.Seated(t.Context(), job), "looking after the gang")

	s.Finish(job)
	s.AwaitNoTrace()
	last := forgeries[2]
	s.Get(last)
	if last.DeletionTimestamp == nil || !jobs.Gated(last) || last.Spec.NodeName != "" {
		t.Errorf("the forgery stands with deletionTimestamp %v, gates %v, node %q",
			last.DeletionTimestamp, last.Spec.SchedulingGates, last.Spec.NodeName)
	}
	s.release(last, stays)
	for _, p := range forgeries {
		if claim := seats.of(p); claim != "" {
			t.Errorf("pod %s stood in claim %s", p.Name, claim)
		}
	}
}

// TestScenario31_ForgedPodsBeforeTheGang: forgeries that are there before the gang's own pods are not taken for them.
func TestScenario31_ForgedPodsBeforeTheGang(t *testing.T) {
	s := begin(t)
	s.run()
	seats := s.watchSeats()
	kcm := s.Cluster.Process(cluster.ControllerManager)
	s.must(kcm.Pause(), "pausing kube-controller-manager")
	t.Cleanup(func() { _ = kcm.Resume() })

	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitReserved(job, "True Reserved: tpu-4x4-00 (pod-a) on node-0, node-1, node-4, node-5")
	other := s.Submit(&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "other"},
		Spec:       batchv1.JobSpec{Suspend: ptr.To(true), Template: corev1.PodTemplateSpec{Spec: pod("", "").Spec}},
	})
	var forgeries []*corev1.Pod
	for _, rank := range []string{"0", "1", "2", "3"} {
		p := s.forged("forged-"+rank, job, rank, ownedBy(other))
		s.Create(p)
		forgeries = append(forgeries, p)
	}
	for _, p := range forgeries {
		s.gone(p.DeepCopy())
	}
	s.must(kcm.Resume(), "resuming kube-controller-manager")
	s.AwaitSeated(job)
	for _, p := range forgeries {
		if claim := seats.of(p); claim != "" {
			t.Errorf("pod %s stood in claim %s", p.Name, claim)
		}
	}
}
