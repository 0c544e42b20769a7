package dratest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// Node is Ready, labelled with its name and has room for 32 cores, 256Gi and 110 pods.
func Node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// Pool is an AcceleratorPool for every pool of a driver.
func Pool(driver string) *berth.AcceleratorPool {
	return &berth.AcceleratorPool{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: berth.AcceleratorPoolSpec{Driver: driver}}
}

// Class selects by one CEL expression.
func Class(name, expression string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}},
	}}
}

// ByTopology selects devices of a driver whose topology attribute has the value.
func ByTopology(name, driver, topology string) *resourcev1.DeviceClass {
	return Class(name, fmt.Sprintf("device.driver == %q && has(device.attributes[%q].topology) && device.attributes[%q].topology == %q", driver, driver, driver, topology))
}

// Slice is a ResourceSlice under construction.
type Slice struct{ *resourcev1.ResourceSlice }

// NewSlice begins the only slice of generation 1 of a pool, with a node selection per device.
func NewSlice(name, driver, pool string) Slice {
	perDevice := true
	return Slice{&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, PerDeviceNodeSelection: &perDevice,
		Pool: resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1},
	}}}
}

// Of sets how many slices the pool has.
func (s Slice) Of(count int64) Slice { s.Spec.Pool.ResourceSliceCount = count; return s }

// Generation sets the pool's generation.
func (s Slice) Generation(g int64) Slice { s.Spec.Pool.Generation = g; return s }

// Node makes it the slice of one node.
func (s Slice) Node(name string) Slice {
	s.Spec.PerDeviceNodeSelection, s.Spec.AllNodes, s.Spec.NodeName = nil, nil, &name
	return s
}

// Counters adds a counter set in which every counter has the same value. The slice is then for all nodes.
func (s Slice) Counters(set, value string, names ...string) Slice {
	all := true
	s.Spec.PerDeviceNodeSelection, s.Spec.AllNodes = nil, &all
	c := resourcev1.CounterSet{Name: set, Counters: map[string]resourcev1.Counter{}}
	for _, n := range names {
		c.Counters[n] = resourcev1.Counter{Value: resource.MustParse(value)}
	}
	s.Spec.SharedCounters = append(s.Spec.SharedCounters, c)
	return s
}

// Device adds a finished device.
func (s Slice) Device(d Device) Slice {
	s.Spec.Devices = append(s.Spec.Devices, d.Device)
	return s
}

// Device is a device under construction.
type Device struct{ resourcev1.Device }

// NewDevice begins a device with the topology attribute.
func NewDevice(name, topology string) Device {
	return Device{resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"topology": {StringValue: &topology}}}}
}

// On makes it stand on the hosts with these hostname labels.
func (d Device) On(hostnames ...string) Device {
	return d.Matching(corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hostnames})
}

// Matching makes it stand on the nodes that meet the requirements.
func (d Device) Matching(requirements ...corev1.NodeSelectorRequirement) Device {
	d.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: requirements}}}
	return d
}

// Consumes the value of each counter of a set.
func (d Device) Consumes(set, value string, names ...string) Device {
	c := resourcev1.DeviceCounterConsumption{CounterSet: set, Counters: map[string]resourcev1.Counter{}}
	for _, n := range names {
		c.Counters[n] = resourcev1.Counter{Value: resource.MustParse(value)}
	}
	d.ConsumesCounters = append(d.ConsumesCounters, c)
	return d
}

// Shared lets it be allocated several times at once.
func (d Device) Shared() Device {
	shared := true
	d.AllowMultipleAllocations = &shared
	return d
}

// Has gives it a capacity, with the policy that its shares must keep; nil for any amount.
func (d Device) Has(name resourcev1.QualifiedName, value string, policy *resourcev1.CapacityRequestPolicy) Device {
	if d.Capacity == nil {
		d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}
	}
	d.Capacity[name] = resourcev1.DeviceCapacity{Value: resource.MustParse(value), RequestPolicy: policy}
	return d
}

// Taint adds a device taint with the effect NoSchedule.
func (d Device) Taint(key, value string) Device {
	d.Taints = append(d.Taints, resourcev1.DeviceTaint{Key: key, Value: value, Effect: resourcev1.DeviceTaintEffectNoSchedule})
	return d
}

// Request is a claim for count devices of a class, in a request named "r".
func Request(class string, count int64) *resourcev1.ResourceClaimSpec {
	return &resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name:    "r",
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count},
	}}}}
}

// Claim is a ResourceClaim that holds the given device, as somebody other than Berth would allocate it.
func Claim(namespace, name string, d ...resourcev1.DeviceRequestAllocationResult) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Status:     resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: d}}},
	}
}

// Result is one allocated device.
func Result(driver, pool, device string) resourcev1.DeviceRequestAllocationResult {
	return resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: pool, Device: device}
}
