package dratest

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Publish writes slices as the API has them: what pkg/adapt/dra reads as these. The attribute "shape" becomes "topology".
func Publish(published []inventory.Published) []*resourcev1.ResourceSlice {
	yes := true
	quantity := func(milli int64) resource.Quantity { return *resource.NewMilliQuantity(milli, resource.DecimalSI) }
	var out []*resourcev1.ResourceSlice
	for _, p := range published {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: p.Pool.Driver, Pool: resourcev1.ResourcePool{Name: p.Pool.Name, Generation: p.Generation, ResourceSliceCount: p.SliceCount},
		}}
		if len(p.CounterSets) > 0 {
			s.Spec.AllNodes = &yes
		} else {
			s.Spec.PerDeviceNodeSelection = &yes
		}
		for _, set := range p.CounterSets {
			c := resourcev1.CounterSet{Name: set.Name, Counters: map[string]resourcev1.Counter{}}
			for _, counter := range set.Counters {
				c.Counters[counter.Name] = resourcev1.Counter{Value: quantity(counter.Milli)}
			}
			s.Spec.SharedCounters = append(s.Spec.SharedCounters, c)
		}
		for _, d := range p.Devices {
			out := NewDevice(d.Name, d.Attributes["shape"]).On(d.Hosts...).Device
			of := map[string]map[string]resourcev1.Counter{}
			for _, c := range d.Consumes {
				if of[c.CounterSet] == nil {
					of[c.CounterSet] = map[string]resourcev1.Counter{}
				}
				of[c.CounterSet][c.Counter] = resourcev1.Counter{Value: quantity(c.Milli)}
			}
			for set, counters := range of {
				out.ConsumesCounters = append(out.ConsumesCounters, resourcev1.DeviceCounterConsumption{CounterSet: set, Counters: counters})
			}
			s.Spec.Devices = append(s.Spec.Devices, out)
		}
		out = append(out, s)
	}
	return out
}
