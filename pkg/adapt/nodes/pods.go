package nodes

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/kueue/pkg/workload"

	"github.com/berth-dev/berth/pkg/ledger"
)

// OnePod is one pod in thousandths.
const OnePod = 1000

// withResizes counts resources that are being resized as kube-scheduler does.
var withResizes = resourcehelper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}

// Requests is what one pod of a template takes from its host, in thousandths, including one of "pods". A limit without a
// request counts as one: the API server makes it one in a pod, and leaves a template as it is. What a RuntimeClass or a
// LimitRange adds to the pod is not counted; see Used.
func Requests(spec *corev1.PodSpec) map[string]int64 {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	workload.UseLimitsAsMissingRequestsInPod(&pod.Spec)
	usePodLimits(pod)
	return amounts(pod, resourcehelper.PodResourcesOptions{})
}

// usePodLimits makes limits of the pod as a whole requests, where neither the pod nor a container of it has one. Huge pages
// cannot be overcommitted: of them the limit counts whatever the containers ask for.
func usePodLimits(pod *corev1.Pod) {
	whole := pod.Spec.Resources
	if whole == nil {
		return
	}
	inside := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
	for name, limit := range whole.Limits {
		_, asked := whole.Requests[name]
		_, within := inside[name]
		if asked || within && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			continue
		}
		if whole.Requests == nil {
			whole.Requests = corev1.ResourceList{}
		}
		whole.Requests[name] = limit
	}
}

// Used is what a pod takes from the host it is assigned to, in thousandths, including one of "pods". Resources that are
// being resized count as the scheduler counts them.
func Used(pod *corev1.Pod) map[string]int64 {
	return amounts(pod, withResizes)
}

func amounts(pod *corev1.Pod, opts resourcehelper.PodResourcesOptions) map[string]int64 {
	out := Amounts(resourcehelper.PodRequests(pod, opts))
	// These names stand for devices of a DeviceClass: kube-scheduler allocates them, and no host lists them.
	maps.DeleteFunc(out, func(name string, _ int64) bool { return strings.HasPrefix(name, resourcev1.ResourceDeviceClassPrefix) })
	out[ledger.Pods] = OnePod
	return out
}

// Occupies reports whether the pod takes room on a host: it is assigned to one and has not ended.
func Occupies(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}
