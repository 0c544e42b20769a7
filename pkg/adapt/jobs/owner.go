package jobs

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reason"
)

// ElasticAnnotation marks a Job whose Workload Kueue may replace by a larger or smaller slice of itself while it runs.
const ElasticAnnotation = "kueue.x-k8s.io/elastic-job"

// Lister finds a Job in a namespace; nil when there is none.
type Lister func(namespace, name string) *batchv1.Job

// OwnerOf returns the object that creates the Workload's pods. It refuses kinds whose pods have no rank that is known
// before they are created, and Jobs whose pods are not exactly the ranks 0 to N-1.
func OwnerOf(wl *kueue.Workload, jobs Lister) (berth.OwnerReference, *reason.Refusal) {
	owner := metav1.GetControllerOf(wl)
	if owner == nil {
		return berth.OwnerReference{}, unsupported("the Workload has no owner, so nothing says which pods are its own")
	}
	if owner.Kind != "Job" || owner.APIVersion != batchv1.SchemeGroupVersion.String() {
		return berth.OwnerReference{}, unsupported(fmt.Sprintf(
			"pods of kind %s (%s) have no rank that Berth knows: use a batch/v1 Job", owner.Kind, owner.APIVersion))
	}
	job := jobs(wl.Namespace, owner.Name)
	if job == nil || job.UID != owner.UID {
		// Kueue deletes the Workload of a Job that is gone; until then there is nobody to serve.
		return berth.OwnerReference{}, &reason.Refusal{Code: reason.ClaimMissing,
			Message: fmt.Sprintf("Job %s does not exist", owner.Name)}
	}
	if refusal := ranks(job); refusal != nil {
		return berth.OwnerReference{}, refusal
	}
	return berth.OwnerReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID}, nil
}

// ranks refuses a Job whose pods are not the ranks 0 to N-1, each exactly once.
func ranks(job *batchv1.Job) *reason.Refusal {
	if job.Annotations[ElasticAnnotation] == "true" {
		return unsupported("an elastic Job changes its number of pods while it holds a slice: remove the annotation " + ElasticAnnotation)
	}
	if ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) != batchv1.IndexedCompletion {
		return unsupported("the pods have no rank: set spec.completionMode to Indexed")
	}
	parallelism, completions := ptr.Deref(job.Spec.Parallelism, 1), ptr.Deref(job.Spec.Completions, 1)
	if completions != parallelism {
		return &reason.Refusal{Code: reason.CountMismatch, Message: fmt.Sprintf(
			"completions is %d and parallelism %d: a gang runs all of its ranks at once, so they must be equal", completions, parallelism)}
	}
	return nil
}

func unsupported(message string) *reason.Refusal {
	return &reason.Refusal{Code: reason.Unsupported, Message: message}
}

// Controls reports whether the owner created the pod. The reference is the one that the API server keeps; a pod of a Job
// is controlled by it directly.
func Controls(owner berth.OwnerReference, pod *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	return ref != nil && ref.UID == owner.UID && owner.UID != types.UID("")
}
