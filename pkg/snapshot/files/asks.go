package files

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
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
		r.amounts(spec.InitContainers[i].Resources.Requests, fmt.Sprintf("%s[%d].resources.requests", join(at, "initContainers"), i))
	}
	for i := range spec.Containers {
		r.amounts(spec.Containers[i].Resources.Requests, fmt.Sprintf("%s[%d].resources.requests", join(at, "containers"), i))
	}
}

func (r *reader) amounts(list corev1.ResourceList, at string) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q := list[name]; q.Sign() < 0 {
			r.fault(fmt.Sprintf("%s[%s]", at, name), fmt.Sprintf("is %s, must not be negative", q.String()))
		}
	}
}

func (r *reader) claimSpec(spec *resourcev1.ResourceClaimSpec, at string) {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		field := fmt.Sprintf("%s[%d]", join(at, "devices.requests"), i)
		if request.Name == "" {
			r.fault(join(field, "name"), "is missing")
		}
		if (request.Exactly == nil) == (len(request.FirstAvailable) == 0) {
			r.fault(field, "needs one of exactly and firstAvailable")
		}
		if request.Exactly != nil && request.Exactly.DeviceClassName == "" {
			r.fault(join(field, "exactly.deviceClassName"), "is missing")
		}
	}
}
