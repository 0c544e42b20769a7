package dra

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// grace is how long kube-controller-manager leaves the pods of an allocated device alone after the device was tainted
// NoExecute. At once it would delete them one by one, and a Job counts each as a failure and waits before it makes
// another. In this time Berth has the gang evicted as a whole; if that fails, the pods go after all.
const grace = 30 * time.Second

// Allocation builds the AllocationResult of one ResourceClaim for chosen devices, as kube-scheduler would have written
// it, but with grace, and with the time that the scheduler would add later: it could not do so on a claim that is
// already allocated. claim is the UID of the ResourceClaim, which names its shares of shared devices. A test compares the result with that of the scheduler's allocator. It fails when a device is not published at the
// generation that it was chosen from, or a request or class is gone.
func Allocation(spec *resourcev1.ResourceClaimSpec, claim types.UID, in placement.Instance, s *snapshot.Snapshot, at metav1.Time) (*resourcev1.AllocationResult, error) {
	out := &resourcev1.AllocationResult{AllocationTimestamp: &at}
	var nodes []nodeChoice
	for _, d := range in.Devices {
		slice, device := findDevice(s.ResourceSlices, d)
		if device == nil {
			return nil, fmt.Errorf("device %s/%s is not published at generation %d any more", d.Pool, d.Name, d.Generation)
		}
		i := slices.IndexFunc(spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool { return r.Name == d.Request })
		if i < 0 || spec.Devices.Requests[i].Exactly == nil {
			return nil, fmt.Errorf("the claim has no request %q for exactly one class", d.Request)
		}
		result := resourcev1.DeviceRequestAllocationResult{
			Request: d.Request, Driver: d.Pool.Driver, Pool: d.Pool.Name, Device: d.Name,
			Tolerations:              withGrace(spec.Devices.Requests[i].Exactly.Tolerations),
			BindingConditions:        device.BindingConditions,
			BindingFailureConditions: device.BindingFailureConditions,
		}
		if shared := ptr.Deref(device.AllowMultipleAllocations, false); shared != d.Share {
			return nil, fmt.Errorf("whether device %s/%s may be allocated several times at once has changed", d.Pool, d.Name)
		} else if shared {
			var err error
			if result.ConsumedCapacity, err = consumed(spec.Devices.Requests[i].Exactly.Capacity, device, d.Capacity); err != nil {
				return nil, err
			}
			result.ShareID = shareID(claim, d.Request, d.Pool.Driver, d.Pool.Name, d.Name)
		}
		out.Devices.Results = append(out.Devices.Results, result)
		nodes = append(nodes, choiceOf(slice, device, d.Hosts))
	}
	if len(out.Devices.Results) == 0 {
		return nil, fmt.Errorf("no device was chosen")
	}
	config, err := classConfig(spec, s.DeviceClasses)
	if err != nil {
		return nil, err
	}
	out.Devices.Config = config
	out.NodeSelector, err = nodeSelector(nodes)
	return out, err
}

// withGrace adds the grace to a request's tolerations. What they bear for ever they still bear for ever: one without an
// effect is for all effects, but kube-controller-manager (1.37) reads only those that say NoExecute.
func withGrace(tolerations []resourcev1.DeviceToleration) []resourcev1.DeviceToleration {
	out := slices.Clone(tolerations)
	for _, t := range tolerations {
		if t.Effect == "" {
			t.Effect = resourcev1.DeviceTaintEffectNoExecute
			out = append(out, t)
		}
	}
	out = append(out, resourcev1.DeviceToleration{
		Operator: resourcev1.DeviceTolerationOpExists, Effect: resourcev1.DeviceTaintEffectNoExecute,
		TolerationSeconds: ptr.To(int64(grace / time.Second)),
	})
	if len(out) > resourcev1.DeviceTolerationsMaxLength {
		return tolerations
	}
	return out
}

func findDevice(all []*resourcev1.ResourceSlice, d placement.Device) (*resourcev1.ResourceSlice, *resourcev1.Device) {
	for _, s := range all {
		if poolOf(s) != d.Pool || s.Spec.Pool.Generation != d.Generation {
			continue
		}
		for i := range s.Spec.Devices {
			if s.Spec.Devices[i].Name == d.Name {
				return s, &s.Spec.Devices[i]
			}
		}
	}
	return nil, nil
}

// classConfig carries the configuration of the classes over, each once. One that applies to every request of the claim
// names none.
func classConfig(spec *resourcev1.ResourceClaimSpec, classes []*resourcev1.DeviceClass) ([]resourcev1.DeviceAllocationConfiguration, error) {
	requests := map[string][]string{}
	var order []string
	for _, r := range spec.Devices.Requests {
		if r.Exactly == nil {
			continue
		}
		if _, seen := requests[r.Exactly.DeviceClassName]; !seen {
			order = append(order, r.Exactly.DeviceClassName)
		}
		requests[r.Exactly.DeviceClassName] = append(requests[r.Exactly.DeviceClassName], r.Name)
	}
	var out []resourcev1.DeviceAllocationConfiguration
	for _, name := range order {
		i := slices.IndexFunc(classes, func(c *resourcev1.DeviceClass) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("DeviceClass %s does not exist any more", name)
		}
		for _, c := range classes[i].Spec.Config {
			applies := requests[name]
			if len(applies) == len(spec.Devices.Requests) {
				applies = nil
			}
			out = append(out, resourcev1.DeviceAllocationConfiguration{
				Source: resourcev1.AllocationConfigSourceClass, Requests: applies, DeviceConfiguration: *c.DeviceConfiguration.DeepCopy(),
			})
		}
	}
	return out, nil
}

// nodeChoice is how one device restricts the nodes of the claim.
type nodeChoice struct {
	// node is set when only one node will do.
	node     string
	selector *corev1.NodeSelector
}

func choiceOf(s *resourcev1.ResourceSlice, d *resourcev1.Device, hosts []string) nodeChoice {
	nodeName, selector := s.Spec.NodeName, s.Spec.NodeSelector
	if ptr.Deref(s.Spec.PerDeviceNodeSelection, false) {
		nodeName, selector = d.NodeName, d.NodeSelector
	}
	if nodeName != nil {
		return nodeChoice{node: *nodeName}
	}
	if ptr.Deref(d.BindsToNode, false) && len(hosts) == 1 {
		return nodeChoice{node: hosts[0]}
	}
	return nodeChoice{selector: selector}
}

// nodeSelector joins the restrictions of all devices into one term. A single node makes the rest superfluous.
func nodeSelector(choices []nodeChoice) (*corev1.NodeSelector, error) {
	var term corev1.NodeSelectorTerm
	for _, c := range choices {
		if c.node != "" {
			return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{c.node}}},
			}}}, nil
		}
		if c.selector == nil || len(c.selector.NodeSelectorTerms) == 0 {
			continue
		}
		if n := len(c.selector.NodeSelectorTerms); n > 1 {
			return nil, fmt.Errorf("a device's node selector has %d terms, only 1 is allowed", n)
		}
		from := c.selector.NodeSelectorTerms[0]
		term.MatchFields = join(term.MatchFields, from.MatchFields)
		term.MatchExpressions = join(term.MatchExpressions, from.MatchExpressions)
	}
	if len(term.MatchFields) == 0 && len(term.MatchExpressions) == 0 {
		return nil, nil
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}, nil
}

// join appends requirements that are not there yet; the order of values does not tell two of them apart.
func join(to, from []corev1.NodeSelectorRequirement) []corev1.NodeSelectorRequirement {
	for _, r := range from {
		if !slices.ContainsFunc(to, func(o corev1.NodeSelectorRequirement) bool { return sameRequirement(o, r) }) {
			to = append(to, *r.DeepCopy())
		}
	}
	return to
}

func sameRequirement(a, b corev1.NodeSelectorRequirement) bool {
	if a.Key != b.Key || a.Operator != b.Operator {
		return false
	}
	x, y := slices.Sorted(slices.Values(a.Values)), slices.Sorted(slices.Values(b.Values))
	return slices.Equal(slices.Compact(x), slices.Compact(y))
}
