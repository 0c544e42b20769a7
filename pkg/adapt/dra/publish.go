package dra

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// published reads one ResourceSlice of an AcceleratorPool. Taints are those that rules add, by device name. The missing hosts
// are returned beside it.
func published(s *resourcev1.ResourceSlice, t *topology, owner *berth.AcceleratorPoolSpec, taints map[string][]inventory.Taint) (inventory.Published, []inventory.Host) {
	rankLabel := owner.RankLabel
	out := inventory.Published{
		Name: s.Name, Pool: poolOf(s), Generation: s.Spec.Pool.Generation, SliceCount: s.Spec.Pool.ResourceSliceCount,
	}
	out.Breach = breach(&s.Spec)
	perDevice := ptr.Deref(s.Spec.PerDeviceNodeSelection, false)
	var whole place
	if !perDevice {
		out.NoNodes = ptr.Deref(s.Spec.NodeName, "") == "" && s.Spec.NodeSelector == nil && !ptr.Deref(s.Spec.AllNodes, false) && len(s.Spec.SharedCounters) == 0
		whole = t.resolve(s.Spec.NodeName, s.Spec.NodeSelector, s.Spec.AllNodes, rankLabel)
	}
	for _, set := range s.Spec.SharedCounters {
		c := inventory.CounterSet{Name: set.Name}
		for name, counter := range set.Counters {
			c.Counters = append(c.Counters, inventory.Counter{Set: set.Name, Name: name, Milli: floor(counter.Value)})
		}
		out.CounterSets = append(out.CounterSets, c)
	}
	missing := whole.missing
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		at := whole
		if perDevice {
			at = t.resolve(d.NodeName, d.NodeSelector, d.AllNodes, rankLabel)
			missing = append(missing, at.missing...)
		}
		device := publishedDevice(d, at, taints)
		device.Domain = t.domain(owner.Interconnect, s.Spec.Driver, d, at)
		out.Devices = append(out.Devices, device)
	}
	return out, missing
}

func publishedDevice(d *resourcev1.Device, at place, taints map[string][]inventory.Taint) inventory.PublishedDevice {
	out := inventory.PublishedDevice{Device: inventory.Device{
		Name: d.Name, Hosts: at.hosts, ByLabel: at.byLabel, Attributes: attributes(d),
	}}
	capacity, problem := capacities(d)
	out.Shared = ptr.Deref(d.AllowMultipleAllocations, false)
	if problem == "" {
		out.Capacity = capacity
	}
	if why := unusable(d, at, problem); why != "" {
		out.Unusable = &reason.Evidence{Kind: "device", Name: d.Name, Code: reason.Unsupported, Detail: why}
	}
	for _, t := range d.Taints {
		out.Taints = append(out.Taints, inventory.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	out.Taints = append(out.Taints, taints[""]...)
	out.Taints = append(out.Taints, taints[d.Name]...)
	for _, c := range d.ConsumesCounters {
		out.Grouped = out.Grouped || len(c.CompatibilityGroups) > 0
		for name, counter := range c.Counters {
			out.Consumes = append(out.Consumes, inventory.Charge{CounterSet: c.CounterSet, Counter: name, Milli: ceil(counter.Value)})
		}
	}
	return out
}

// unusable names features of a device that a reservation cannot keep its promise with. capacity is what is wrong with its
// capacities, which matters only where shares take of them.
func unusable(d *resourcev1.Device, at place, capacity string) string {
	shared := ptr.Deref(d.AllowMultipleAllocations, false)
	switch {
	case at.problem != "":
		return "its node selector cannot be read: " + at.problem
	case at.everywhere:
		return "every node reaches it, so it does not say where a gang would stand"
	case shared && len(at.hosts) > 1:
		return "it spans several hosts and may be allocated several times at once"
	case shared && capacity != "":
		return capacity
	case len(d.NodeAllocatableResources) > 0:
		return "it takes resources of its node, which only kube-scheduler counts"
	case ptr.Deref(d.BindsToNode, false) && len(at.hosts) > 1:
		return "it spans several hosts but binds to the first node that uses it"
	}
	return ""
}

func poolOf(s *resourcev1.ResourceSlice) inventory.PoolID {
	return inventory.PoolID{Driver: s.Spec.Driver, Name: s.Spec.Pool.Name}
}

// floor rounds what there is down to thousandths, ceil rounds what is taken up, so that tiny fractions never overdraw.
func floor(q resource.Quantity) int64 {
	m := ceil(q)
	if m > 0 && m != math.MaxInt64 && q.Cmp(*resource.NewMilliQuantity(m, resource.DecimalSI)) < 0 {
		m--
	}
	return m
}

// ceil ends at the largest and smallest number. Quantity.Value is no help with that: it is 0 for what exceeds an int64.
func ceil(q resource.Quantity) int64 {
	switch {
	case q.CmpInt64(math.MaxInt64/1000) > 0:
		return math.MaxInt64
	case q.CmpInt64(math.MinInt64/1000) < 0:
		return math.MinInt64
	}
	return q.MilliValue()
}

func attributes(d *resourcev1.Device) map[string]string {
	if len(d.Attributes) == 0 {
		return nil
	}
	out := make(map[string]string, len(d.Attributes))
	for name, a := range d.Attributes {
		out[string(name)] = attributeText(a)
	}
	return out
}

func attributeText(a resourcev1.DeviceAttribute) string {
	switch {
	case a.StringValue != nil:
		return *a.StringValue
	case a.IntValue != nil:
		return strconv.FormatInt(*a.IntValue, 10)
	case a.BoolValue != nil:
		return strconv.FormatBool(*a.BoolValue)
	case a.VersionValue != nil:
		return *a.VersionValue
	case a.StringValues != nil:
		return strings.Join(a.StringValues, ",")
	case a.VersionValues != nil:
		return strings.Join(a.VersionValues, ",")
	case a.IntValues != nil:
		return fmt.Sprint(a.IntValues)
	case a.BoolValues != nil:
		return fmt.Sprint(a.BoolValues)
	}
	return ""
}
