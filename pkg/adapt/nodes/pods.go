package nodes

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/berth-dev/berth/pkg/ledger"
)

// OnePod is one pod in thousandths.
const OnePod = 1000

// Requests is what one pod of a template takes from its host, in thousandths, including one of "pods".
func Requests(spec *corev1.PodSpec) map[string]int64 {
	return amounts(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
}

// Used is what a pod takes from the host it is assigned to, in thousandths, including one of "pods". Resources that are
// being resized count as the scheduler counts them.
func Used(pod *corev1.Pod) map[string]int64 {
	return amounts(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
}

func amounts(pod *corev1.Pod, opts resourcehelper.PodResourcesOptions) map[string]int64 {
	out := Amounts(resourcehelper.PodRequests(pod, opts))
	out[ledger.Pods] = OnePod
	return out
}

// Occupies reports whether the pod takes room on a host: it is assigned to one and has not ended.
func Occupies(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}
