package files

import (
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// podSpec faults what would make a gang ask for less than its author meant.
func (r *reader) podSpec(spec *corev1.PodSpec, at string) {
	for i, entry := range spec.ResourceClaims {
		field := fmt.Sprintf("%s[%d]", join(at, "resourceClaims"), i)
		if entry.Name == "" {
			r.fault(join(field, "name"), "is missing")
		}
		if (entry.ResourceClaimName == nil) == (entry.ResourceClaimTemplateName == nil) {
			r.fault(field, "needs one of resourceClaimName and resourceClaimTemplateName")
		}
	}
	for i := range spec.InitContainers {
		r.requirements(&spec.InitContainers[i].Resources, fmt.Sprintf("%s[%d].resources", join(at, "initContainers"), i))
	}
	for i := range spec.Containers {
		r.requirements(&spec.Containers[i].Resources, fmt.Sprintf("%s[%d].resources", join(at, "containers"), i))
	}
	if spec.Resources != nil {
		r.requirements(spec.Resources, join(at, "resources"))
	}
}

// requirements of a container or a pod: a limit counts where there is no request.
func (r *reader) requirements(of *corev1.ResourceRequirements, at string) {
	r.amounts(of.Requests, join(at, "requests"))
	r.amounts(of.Limits, join(at, "limits"))
}

func (r *reader) amounts(list corev1.ResourceList, at string) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q := list[name]; q.Sign() < 0 {
			r.fault(fmt.Sprintf("%s[%s]", at, name), fmt.Sprintf("is %s, must not be negative", q.String()))
		}
	}
}

func (r *reader) claimSpec(spec *resourcev1.ResourceClaimSpec, at string) {
	seen := map[string]bool{}
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		field := fmt.Sprintf("%s[%d]", join(at, "devices.requests"), i)
		switch {
		case request.Name == "":
			r.fault(join(field, "name"), "is missing")
		case seen[request.Name]:
			r.fault(join(field, "name"), request.Name+" was given before")
		}
		seen[request.Name] = true
		if (request.Exactly == nil) == (len(request.FirstAvailable) == 0) {
			r.fault(field, "needs one of exactly and firstAvailable")
		}
		if request.Exactly != nil && request.Exactly.DeviceClassName == "" {
			r.fault(join(field, "exactly.deviceClassName"), "is missing")
		}
	}
}

// jobName faults a Job that the API server refuses because of what becomes of its name: a label of the pods, or, with
// indexes, the hostname of the last one.
func (r *reader) jobName(j *batchv1.Job, at string) {
	field := join(at, "metadata.name")
	if m := j.Spec.CompletionMode; m != nil && *m == batchv1.IndexedCompletion && ptr.Deref(j.Spec.Completions, 0) > 0 {
		host := fmt.Sprintf("%s-%d", j.Name, *j.Spec.Completions-1)
		if len(validation.IsDNS1123Label(host)) > 0 {
			r.fault(field, fmt.Sprintf("is %s: the hostname of the last pod, %d characters long, must be at most 63 lower-case letters, digits and -", show(j.Name), len(host)))
		}
		return
	}
	if len(j.Name) > validation.LabelValueMaxLength {
		r.fault(field, fmt.Sprintf("is %s: the pods carry it as a label, so it may have at most 63 characters", show(j.Name)))
	}
}
