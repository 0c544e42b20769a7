package dra

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// Claim reads one entry of a pod's spec.resourceClaims, given the spec of its ResourceClaimTemplate. It is managed when
// its classes select devices of AcceleratorPools, or nothing that is known: then Berth waits rather than let pods start
// that nobody could serve. An unmanaged claim is none of Berth's business. A refusal names the field that Berth cannot
// reserve; it comes with managed true.
func Claim(spec *resourcev1.ResourceClaimSpec, podClaim string, inv *inventory.Inventory) (gang.Claim, bool, *reason.Refusal) {
	c := gang.Claim{PodClaim: podClaim}
	var ours, others []string
	for i := range spec.Devices.Requests {
		for _, class := range classesOf(&spec.Devices.Requests[i]) {
			if inv.Class(class).State == inventory.ClassUnmanaged {
				others = append(others, class)
			} else {
				ours = append(ours, class)
			}
		}
	}
	switch {
	case len(ours) == 0:
		return c, false, nil
	case len(others) > 0:
		return c, true, unsupported(podClaim, "it asks for devices of %s, which Berth manages, and of %s, which it does not: split it into two claims", ours[0], others[0])
	case len(spec.Devices.Constraints) > 0:
		return c, true, notFor(podClaim, "devices.constraints", ours[0])
	case len(spec.Devices.Config) > 0:
		return c, true, notFor(podClaim, "devices.config", ours[0])
	}
	for i := range spec.Devices.Requests {
		r, refusal := request(&spec.Devices.Requests[i], podClaim)
		if refusal != nil {
			return c, true, refusal
		}
		c.Requests = append(c.Requests, r)
	}
	return c, true, nil
}

func classesOf(r *resourcev1.DeviceRequest) []string {
	var names []string
	if r.Exactly != nil {
		names = append(names, r.Exactly.DeviceClassName)
	}
	for i := range r.FirstAvailable {
		names = append(names, r.FirstAvailable[i].DeviceClassName)
	}
	return names
}

func request(r *resourcev1.DeviceRequest, podClaim string) (gang.Request, *reason.Refusal) {
	if len(r.FirstAvailable) > 0 {
		return gang.Request{}, notFor(podClaim, "firstAvailable in request "+r.Name, r.FirstAvailable[0].DeviceClassName)
	}
	e := r.Exactly
	if e == nil {
		return gang.Request{}, unsupported(podClaim, "request %s is of a kind that Berth does not know", r.Name)
	}
	field := ""
	switch {
	case e.AllocationMode != "" && e.AllocationMode != resourcev1.DeviceAllocationModeExactCount:
		field = "allocationMode " + string(e.AllocationMode)
	case e.AdminAccess != nil && *e.AdminAccess:
		field = "adminAccess"
	case len(e.Selectors) > 0:
		field = "selectors"
	case len(e.DerivedAttributes) > 0:
		field = "derivedAttributes"
	}
	if field != "" {
		return gang.Request{}, notFor(podClaim, field+" in request "+r.Name, e.DeviceClassName)
	}
	capacity, uncounted := asked(e.Capacity)
	if uncounted != "" {
		return gang.Request{}, unsupported(podClaim, "request %s asks for %s, which cannot be counted", r.Name, uncounted)
	}
	// The API server defaults an absent count to 1; a template from a file may lack it, and a negative one stays for
	// the placer to refuse.
	out := gang.Request{Name: r.Name, Class: e.DeviceClassName, Count: int(min(e.Count, 1<<20)), Capacity: capacity}
	if e.AllocationMode == "" && e.Count == 0 {
		out.Count = 1
	}
	for _, t := range e.Tolerations {
		if t.TolerationSeconds != nil {
			// A device that is borne for a while only is nothing to start a gang on, or to leave it on.
			continue
		}
		switch t.Operator {
		case "", resourcev1.DeviceTolerationOpEqual, resourcev1.DeviceTolerationOpExists:
			out.Tolerations = append(out.Tolerations, gang.Toleration{
				Key: t.Key, Exists: t.Operator == resourcev1.DeviceTolerationOpExists, Value: t.Value, Effect: string(t.Effect),
			})
		}
	}
	return out, nil
}

func notFor(podClaim, field, class string) *reason.Refusal {
	return unsupported(podClaim, "%s is not supported for devices that Berth manages (%s)", field, class)
}

func unsupported(podClaim, format string, args ...any) *reason.Refusal {
	return &reason.Refusal{Code: reason.Unsupported, Message: "claim " + podClaim + ": " + fmt.Sprintf(format, args...)}
}
