package guard

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/test/scene"
)

// copied is what somebody makes of "kubectl get job -o yaml" to submit it again: a new name, and without what the API
// server refuses in a new Job.
func (s *stage) copied(job *batchv1.Job, name string) *batchv1.Job {
	s.Helper()
	running := job.DeepCopy()
	s.Get(running)
	running.ManagedFields = nil
	text, err := yaml.Marshal(running)
	s.must(err, "printing the Job")
	again := &batchv1.Job{}
	s.must(yaml.UnmarshalStrict(text, again), "reading the Job")
	again.ObjectMeta = metav1.ObjectMeta{
		Namespace: job.Namespace, Name: name, Labels: again.Labels, Annotations: again.Annotations,
	}
	again.Status = batchv1.JobStatus{}
	again.Spec.Selector = nil
	for _, labels := range []map[string]string{again.Labels, again.Spec.Template.Labels} {
		maps.DeleteFunc(labels, func(key, _ string) bool {
			return strings.HasPrefix(key, "batch.kubernetes.io/") || key == "controller-uid" || key == "job-name"
		})
	}
	return again
}

// TestScenario33_RunningJobCopied: a running Job's YAML, submitted again, is refused with what to remove; with that removed
// it is a gang like any other. A copied pod is refused as well.
func TestScenario33_RunningJobCopied(t *testing.T) {
	s := begin(t)
	s.run()
	alice := s.editor("alice")
	first := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(first)

	second := s.copied(first, "again")
	refusal := "Job " + s.Namespace + "/again cannot be created with the keys of another Job's reservation. Remove from" +
		" spec.template.metadata: label berth.dev/reservation, annotation berth.dev/contract, annotation berth.dev/hosts," +
		" annotation claim.berth.dev/tpu, annotation kueue.x-k8s.io/workload. Kueue sets them when it admits the Job."
	s.denied(alice.Create(t.Context(), second.DeepCopy()), policy.JobKeys, refusal)
	s.denied(s.Client.Create(t.Context(), second.DeepCopy()), policy.JobKeys, refusal)

	pod, err := s.podOf(t.Context(), first, "3")
	s.must(err, "finding rank 3")
	twin := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "twin", Labels: pod.Labels, Annotations: pod.Annotations},
		Spec:       *pod.Spec.DeepCopy(),
	}
	s.denied(alice.Create(t.Context(), twin), policy.Pods, "pod of a gang refused: alice may not create pods of a gang. Remove"+
		" the label berth.dev/reservation: it is put on the pods of an admitted job by its controller. (A controller gets the"+
		" right from ClusterRole berth-gang-member.)")

	// As the sentence says.
	delete(second.Spec.Template.Labels, berth.LabelReservation)
	for _, key := range []string{
		berth.AnnotationContract, berth.AnnotationHosts, berth.AnnotationClaimPrefix + "tpu", "kueue.x-k8s.io/workload",
	} {
		delete(second.Spec.Template.Annotations, key)
	}
	s.must(alice.Create(t.Context(), second), "submitting the copy without the keys")
	s.AwaitSeated(second)
	s.must(s.Seated(t.Context(), first), "looking after the first gang")
	if a, b := s.claimOf(first), s.claimOf(second); a.UID == b.UID {
		t.Errorf("both gangs use claim %s", a.Name)
	}
	s.Finish(first)
	s.Finish(second)
	s.AwaitNoTrace()
}

// TestScenario33_KeysAddedLater: the keys are refused at CREATE, where nobody but Kueue has a use for them; who adds them
// to a suspended Job of his own gets no further.
func TestScenario33_KeysAddedLater(t *testing.T) {
	s := begin(t)
	s.run()
	seats := s.watchSeats()
	mallory := s.editor("mallory")
	victim := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(victim)

	// A Job that Kueue does not manage, suspended, given the keys of the victim's reservation and started.
	thief := s.copied(victim, "thief")
	keys := thief.Spec.Template.DeepCopy()
	thief.Labels = nil
	thief.Spec.Template.ObjectMeta = metav1.ObjectMeta{}
	thief.Spec.Suspend = ptr.To(true)
	s.must(mallory.Create(t.Context(), thief), "creating a suspended Job")
	s.Eventually("adding the keys", func(ctx context.Context) error {
		if err := mallory.Get(ctx, client.ObjectKeyFromObject(thief), thief); err != nil {
			return err
		}
		labels := thief.Spec.Template.Labels
		if labels == nil {
			labels = map[string]string{}
		}
		labels[berth.LabelReservation] = keys.Labels[berth.LabelReservation]
		thief.Spec.Template.Labels, thief.Spec.Template.Annotations = labels, keys.Annotations
		thief.Spec.Suspend = ptr.To(false)
		return mallory.Update(ctx, thief)
	})
	pods := map[types.UID]*corev1.Pod{}
	s.Eventually("the thief's pods", func(ctx context.Context) error {
		list, err := s.PodsOf(ctx, thief)
		if err != nil {
			return err
		}
		for i := range list {
			pods[list[i].UID] = &list[i]
		}
		if len(pods) < 4 {
			return fmt.Errorf("%d pods were made", len(pods))
		}
		return nil
	})
	for _, p := range pods {
		s.eventSaid(p, "NotOfTheGang: deleted: it names reservation "+keys.Labels[berth.LabelReservation]+" and has no seat in it")
	}
	s.must(s.Seated(t.Context(), victim), "looking after the gang")
	s.Finish(victim)
	s.AwaitNoTrace()
	for _, p := range pods {
		if claim := seats.of(p); claim != "" {
			t.Errorf("pod %s stood in claim %s", p.Name, claim)
		}
	}
}
