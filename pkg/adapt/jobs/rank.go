package jobs

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// labelJobIndex is what JobSet puts on the pods of each of its Jobs.
const labelJobIndex = "jobset.sigs.k8s.io/job-index"

// Rank is the position of a pod in its pod set, computed as the pod policy does: the completion index, in a JobSet
// preceded by job index × pods per job. False when the pod carries no rank.
func Rank(pod *corev1.Pod) (int, bool) {
	index, err := strconv.Atoi(pod.Labels[batchv1.JobCompletionIndexAnnotation])
	if err != nil || index < 0 {
		return 0, false
	}
	per, inSet := pod.Annotations[berth.AnnotationPodsPerJob]
	if !inSet {
		return index, true
	}
	perJob, err := strconv.Atoi(per)
	if err != nil || perJob <= 0 {
		return 0, false
	}
	job, err := strconv.Atoi(pod.Labels[labelJobIndex])
	if err != nil || job < 0 {
		return 0, false
	}
	return job*perJob + index, true
}
