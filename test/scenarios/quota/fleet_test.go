package quota

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
)

func parse(amount string) resource.Quantity { return resource.MustParse(amount) }

// chips is what a host has of its counter.
const chips = 4

// dev is one device of a pool: on some of its hosts, each of which gives some of its chips for it.
type dev struct {
	name, class string
	hosts       []string
	chips       int
}

// pool is a DRA pool of its own driver, with one counter for each of its hosts.
type pool struct {
	driver, name string
	hosts        []string
	devices      []dev
}

// newPool has as many hosts as it is told, named after it. Its driver is name.fleet.example.com.
func newPool(driver, name string, hosts int) *pool {
	p := &pool{driver: driver + ".fleet.example.com", name: name}
	for i := range hosts {
		p.hosts = append(p.hosts, fmt.Sprintf("%s-%d", name, i))
	}
	return p
}

// whole adds devices that take whole hosts, each as many in a row, from the host at the first position on.
func (p *pool) whole(class string, span int, first ...int) *pool {
	for i, from := range first {
		p.devices = append(p.devices, dev{fmt.Sprintf("%s-%d", class, i), class, p.hosts[from : from+span], chips})
	}
	return p
}

// parts adds one device for each chip of each host.
func (p *pool) parts(class string) *pool {
	for i, h := range p.hosts {
		for chip := range chips {
			p.devices = append(p.devices, dev{fmt.Sprintf("%s-%d-%d", class, i, chip), class, []string{h}, 1})
		}
	}
	return p
}

// perSet is how many hosts share a counter set. One takes 32 counters at most, and a device uses two sets at most.
const perSet = 16

func counterSet(at int) string { return fmt.Sprintf("set-%d", at/perSet) }

// slices are the ResourceSlices of the pool.
func (p *pool) slices() []*resourcev1.ResourceSlice {
	of := func(part string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: p.name + "-" + part},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: p.driver, Pool: resourcev1.ResourcePool{Name: p.name, Generation: 1, ResourceSliceCount: 2},
			},
		}
	}
	counters := of("counters")
	counters.Spec.AllNodes = ptr.To(true)
	at := map[string]int{}
	for i, h := range p.hosts {
		if i%perSet == 0 {
			counters.Spec.SharedCounters = append(counters.Spec.SharedCounters, resourcev1.CounterSet{Name: counterSet(i), Counters: map[string]resourcev1.Counter{}})
		}
		counters.Spec.SharedCounters[i/perSet].Counters[h] = resourcev1.Counter{Value: *resource.NewQuantity(chips, resource.DecimalSI)}
		at[h] = i
	}
	devices := of("devices")
	devices.Spec.PerDeviceNodeSelection = ptr.To(true)
	for _, d := range p.devices {
		devices.Spec.Devices = append(devices.Spec.Devices, d.device(at))
	}
	return []*resourcev1.ResourceSlice{counters, devices}
}

func (d dev) device(at map[string]int) resourcev1.Device {
	out := resourcev1.Device{
		Name:       d.name,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"shape": {StringValue: ptr.To(d.class)}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: d.hosts}},
		}}},
	}
	for _, h := range d.hosts {
		set := counterSet(at[h])
		if n := len(out.ConsumesCounters); n == 0 || out.ConsumesCounters[n-1].CounterSet != set {
			out.ConsumesCounters = append(out.ConsumesCounters, resourcev1.DeviceCounterConsumption{CounterSet: set, Counters: map[string]resourcev1.Counter{}})
		}
		out.ConsumesCounters[len(out.ConsumesCounters)-1].Counters[h] = resourcev1.Counter{Value: *resource.NewQuantity(int64(d.chips), resource.DecimalSI)}
	}
	return out
}

// classes are the DeviceClasses of the pool's devices, named as the devices say.
func (p *pool) classes() []client.Object {
	var out []client.Object
	seen := map[string]bool{}
	for _, d := range p.devices {
		if !seen[d.class] {
			seen[d.class] = true
			out = append(out, class(d.class, p.driver, fmt.Sprintf("device.attributes[%q].shape == %q", p.driver, d.class)))
		}
	}
	return out
}

// class selects devices of a driver.
func class(name, driver, where string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: fmt.Sprintf("device.driver == %q && %s", driver, where),
		}}}},
	}
}

// owner gives a driver's pools to Berth. Others may hold devices of them.
func owner(p *pool) *berth.AcceleratorPool {
	return &berth.AcceleratorPool{
		ObjectMeta: metav1.ObjectMeta{Name: strings.TrimSuffix(p.driver, ".fleet.example.com")},
		Spec:       berth.AcceleratorPoolSpec{Driver: p.driver, Fence: berth.FenceObserve},
	}
}

// node is one that KWOK plays.
func node(name string) *corev1.Node {
	amounts := corev1.ResourceList{corev1.ResourceCPU: parse("8"), corev1.ResourceMemory: parse("64Gi"), corev1.ResourcePods: parse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}

// build makes the hardware of pools. It goes with the test.
func (s *stage) build(pools ...*pool) {
	s.Helper()
	var hosts []string
	done := map[string]bool{}
	once := func(obj client.Object) {
		if key := fmt.Sprintf("%T %s", obj, obj.GetName()); !done[key] {
			done[key] = true
			s.make(obj)
		}
	}
	for _, p := range pools {
		once(owner(p))
		for _, c := range p.classes() {
			once(c)
		}
		for _, slice := range p.slices() {
			once(slice)
		}
		for _, h := range p.hosts {
			once(node(h))
		}
		hosts = append(hosts, p.hosts...)
	}
	if err := s.Cluster.AwaitNodes(s.Context(), hosts...); err != nil {
		s.Fatal(err)
	}
}

// secondPod puts another pool like that of KEP-4815 beside the scene's: pod-b on hosts west-0 to west-15.
func (s *stage) secondPod() (hosts []string) {
	s.Helper()
	root, err := cluster.FindRepository(".")
	if err != nil {
		s.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "test/testdata/kep4815-multihost.yaml"))
	if err != nil {
		s.Fatal(err)
	}
	text := strings.NewReplacer("node-", "west-", "pod-a", "pod-b", "tpu-counters", "tpu-counters-b", "tpu-devices", "tpu-devices-b").Replace(string(raw))
	for _, document := range strings.Split(text, "\n---\n") {
		var obj client.Object
		switch {
		case strings.Contains(document, "\nkind: Node\n"):
			obj = &corev1.Node{}
		case strings.Contains(document, "\nkind: ResourceSlice\n"):
			obj = &resourcev1.ResourceSlice{}
		default:
			continue // the classes select devices of both
		}
		if err := yaml.Unmarshal([]byte(document), obj); err != nil {
			s.Fatal(err)
		}
		if _, is := obj.(*corev1.Node); is {
			hosts = append(hosts, obj.GetName())
		}
		s.make(obj)
	}
	if err := s.Cluster.AwaitNodes(s.Context(), hosts...); err != nil {
		s.Fatal(err)
	}
	return hosts
}
