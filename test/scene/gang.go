package scene

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueueconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// Gang is a Job of n pods, each with one claim from the template of a class and one CPU.
func Gang(name, class string, n int32, change ...func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{kueueconstants.QueueLabel: LocalQueue}},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true), Parallelism: ptr.To(n), Completions: ptr.To(n),
			CompletionMode: ptr.To(batchv1.IndexedCompletion), BackoffLimit: ptr.To[int32](100),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy:                 corev1.RestartPolicyNever,
				TerminationGracePeriodSeconds: ptr.To[int64](1),
				Containers: []corev1.Container{{
					Name: "train", Image: "train",
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
						Claims:   []corev1.ResourceClaim{{Name: "tpu"}},
					},
				}},
				ResourceClaims: []corev1.PodResourceClaim{{Name: "tpu", ResourceClaimTemplateName: ptr.To(class)}},
			}},
		},
	}
	for _, c := range change {
		c(job)
	}
	return job
}

// Submit creates a Job in the scene's namespace.
func (s *Scene) Submit(job *batchv1.Job) *batchv1.Job {
	s.Helper()
	job.Namespace = s.Namespace
	s.Create(job)
	return job
}

// Seated returns nil when every pod of the Job is bound to the host of its rank. Pods of a former reservation that are
// being deleted do not count.
func (s *Scene) Seated(ctx context.Context, job *batchv1.Job) error {
	res, err := s.ReservationOf(ctx, job)
	if err != nil {
		return err
	}
	pods, err := s.PodsOf(ctx, job)
	if err != nil {
		return err
	}
	want := int(ptr.Deref(job.Spec.Parallelism, 1))
	bound := map[int]string{}
	for i := range pods {
		p := &pods[i]
		if p.DeletionTimestamp != nil && p.Labels[berth.LabelReservation] != res.Name {
			continue // of a former admission
		}
		rank, err := strconv.Atoi(p.Labels[batchv1.JobCompletionIndexAnnotation])
		if err != nil {
			return err
		}
		if p.Spec.NodeName == "" {
			return fmt.Errorf("pod %s of rank %d is not bound: %s", p.Name, rank, podStory(p))
		}
		if other, twice := bound[rank]; twice && p.DeletionTimestamp == nil {
			return fmt.Errorf("two pods of rank %d, on %s and %s", rank, other, p.Spec.NodeName)
		}
		bound[rank] = p.Spec.NodeName
	}
	if len(bound) != want {
		wl, err := s.WorkloadOf(ctx, job)
		if err != nil {
			return err
		}
		return fmt.Errorf("%d of %d pods exist; %s", len(bound), want, strings.Join(conditions(wl), "\n  "))
	}
	for rank, host := range res.Spec.PodSets[0].Hosts {
		if bound[rank] != host {
			return fmt.Errorf("rank %d runs on %s, its host is %s", rank, bound[rank], host)
		}
	}
	return nil
}

// AwaitSeated waits until the whole gang runs by rank.
func (s *Scene) AwaitSeated(job *batchv1.Job) {
	s.Helper()
	s.Eventually("seating "+job.Name, func(ctx context.Context) error { return s.Seated(ctx, job) })
}

// ReservationOf is the reservation that a Job's Workload holds now.
func (s *Scene) ReservationOf(ctx context.Context, job *batchv1.Job) (*berth.GangReservation, error) {
	wl, err := s.WorkloadOf(ctx, job)
	if err != nil {
		return nil, err
	}
	var list berth.GangReservationList
	if err := s.Client.List(ctx, &list, client.InNamespace(job.Namespace)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		r := &list.Items[i]
		if r.Spec.WorkloadRef.UID == wl.UID && r.Holds() && r.Status.Phase != berth.PhaseReleasing {
			return r, nil
		}
	}
	return nil, fmt.Errorf("Workload %s has no reservation; %s", wl.Name, strings.Join(conditions(wl), "\n  "))
}

// Finish lets the running pods of a Job succeed.
func (s *Scene) Finish(job *batchv1.Job) {
	s.Helper()
	_, err := s.Cluster.CompletePods(s.Context(), job.Namespace, batchv1.JobNameLabel+"="+job.Name)
	s.ok(err, "completing the pods of "+job.Name)
}

// AwaitNoTrace waits until nothing that Berth made is left in the namespace.
func (s *Scene) AwaitNoTrace() {
	s.Helper()
	s.Eventually("cleaning up after "+s.Namespace, s.NoTrace)
}

// AwaitReserved waits until the condition GangReserved of the Job's Workload reads "status reason: message". What is kept
// for a gang that waits is left out of the message: that is the story of test/scenarios/line.
func (s *Scene) AwaitReserved(job *batchv1.Job, want string) {
	s.Helper()
	s.Eventually("GangReserved of "+job.Name, func(ctx context.Context) error {
		have, err := s.Reserved(ctx, job)
		have, _, _ = strings.Cut(have, "; waits for ")
		if err == nil && have != want {
			err = fmt.Errorf("it reads\n  %s\nand should read\n  %s", have, want)
		}
		return err
	})
}

func podStory(p *corev1.Pod) string {
	var parts []string
	for _, g := range p.Spec.SchedulingGates {
		parts = append(parts, "gate "+g.Name)
	}
	for _, c := range p.Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(parts, ", ")
}

// deletedInBackground is how a Job is deleted at once and its pods after it.
var deletedInBackground = client.PropagationPolicy(metav1.DeletePropagationBackground)

// DeleteJob deletes a Job and, by garbage collection, its pods.
func (s *Scene) DeleteJob(job *batchv1.Job) {
	s.Helper()
	s.ok(client.IgnoreNotFound(s.Client.Delete(s.Context(), job, deletedInBackground)), "deleting Job "+job.Name)
}
