package hardware

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// rack is hardware of one test: hosts in a row, a driver of its own, one DRA pool with a counter per host, and the
// DeviceClasses and templates for its devices.
type rack struct {
	*scene.Scene
	name, driver string
	hosts        []string
}

// cpus is how many CPUs a host of a rack has.
const cpus = "8"

// newRack makes hosts and classes. Nothing is published and no AcceleratorPool owns it yet.
func newRack(s *scene.Scene, name string, hosts int) *rack {
	s.Helper()
	r := &rack{Scene: s, name: name, driver: name + ".rack.example.com"}
	s.Cleanup(r.remove)
	for i := range hosts {
		r.hosts = append(r.hosts, fmt.Sprintf("%s-%d", name, i))
		s.Create(node(r.hosts[i]))
	}
	if err := s.Cluster.AwaitNodes(s.Context(), r.hosts...); err != nil {
		s.Fatal(err)
	}
	for _, class := range []string{single, pair, quad, whole} {
		s.Create(&resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: class},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: fmt.Sprintf(`device.driver == %q && device.attributes[%q].shape == %q`, r.driver, r.driver, class),
			}}}},
		})
		s.Create(s.Template(class))
	}
	return r
}

func node(name string) *corev1.Node {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpus), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}

// remove takes the rack out of the cluster. It runs after the controller has stopped.
func (r *rack) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var gone []client.Object
	gone = append(gone, r.owner(berth.FenceEnforce))
	var published resourcev1.ResourceSliceList
	if err := r.Client.List(ctx, &published); err != nil {
		r.Errorf("listing ResourceSlices: %v", err)
	}
	for i := range published.Items {
		if published.Items[i].Spec.Driver == r.driver {
			gone = append(gone, &published.Items[i])
		}
	}
	var rules resourcev1.DeviceTaintRuleList
	if err := r.Client.List(ctx, &rules); err != nil {
		r.Errorf("listing DeviceTaintRules: %v", err)
	}
	for i := range rules.Items {
		if s := rules.Items[i].Spec.DeviceSelector; s != nil && ptr.Deref(s.Driver, "") == r.driver {
			gone = append(gone, &rules.Items[i])
		}
	}
	for _, class := range []string{single, pair, quad, whole} {
		gone = append(gone, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: class}})
	}
	for _, host := range r.hosts {
		gone = append(gone, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host}})
	}
	for _, obj := range gone {
		if err := r.Client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			r.Errorf("removing %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

func (r *rack) owner(fence berth.FenceMode) *berth.AcceleratorPool {
	return &berth.AcceleratorPool{
		ObjectMeta: metav1.ObjectMeta{Name: r.name},
		Spec:       berth.AcceleratorPoolSpec{Driver: r.driver, Fence: fence},
	}
}

// own gives all pools of the rack's driver to Berth.
func (r *rack) own() { r.Helper(); r.Create(r.owner(berth.FenceEnforce)) }

// span is the class of devices over n hosts.
func (r *rack) span(n int) string {
	switch {
	case n == len(r.hosts):
		return whole
	default:
		return fmt.Sprintf("rack-%d", n)
	}
}

// device number i of those over n hosts each; the first stands on the first n hosts.
func (r *rack) device(n, i int) resourcev1.Device {
	hosts := r.hosts[n*i : n*(i+1)]
	class := r.span(n)
	return device(fmt.Sprintf("%s-%d", class, i), class, "hosts", hosts)
}

// device over hosts that takes all of their counters.
func device(name, class, counterSet string, hosts []string) resourcev1.Device {
	d := resourcev1.Device{
		Name:       name,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"shape": {StringValue: ptr.To(class)}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts}},
		}}},
	}
	if counterSet != "" {
		takes := map[string]resourcev1.Counter{}
		for _, h := range hosts {
			takes[h] = resourcev1.Counter{Value: resource.MustParse("4")}
		}
		d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: counterSet, Counters: takes}}
	}
	return d
}

// devices are all that fit side by side, for each number of hosts.
func (r *rack) devices(spans ...int) []resourcev1.Device {
	var all []resourcev1.Device
	for _, n := range spans {
		for i := range len(r.hosts) / n {
			all = append(all, r.device(n, i))
		}
	}
	return all
}

// counters is the ResourceSlice with what every host has, one of as many as the pool has at that generation.
func (r *rack) counters(generation, slices int64) *resourcev1.ResourceSlice {
	has := map[string]resourcev1.Counter{}
	for _, h := range r.hosts {
		has[h] = resourcev1.Counter{Value: resource.MustParse("4")}
	}
	s := r.slice("counters", generation, slices)
	s.Spec.AllNodes = ptr.To(true)
	s.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "hosts", Counters: has}}
	return s
}

// offer is the ResourceSlice with devices.
func (r *rack) offer(generation, slices int64, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	s := r.slice("devices", generation, slices)
	s.Spec.PerDeviceNodeSelection = ptr.To(true)
	s.Spec.Devices = devices
	return s
}

func (r *rack) slice(part string, generation, slices int64) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d", r.name, part, generation)},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: r.driver, Pool: resourcev1.ResourcePool{Name: r.name, Generation: generation, ResourceSliceCount: slices},
		},
	}
}

// publish creates generation 1 of the pool in two ResourceSlices.
func (r *rack) publish(devices ...resourcev1.Device) {
	r.Helper()
	r.Create(r.counters(1, 2))
	r.Create(r.offer(1, 2, devices...))
}

// withdraw deletes the ResourceSlices of a generation.
func (r *rack) withdraw(generation int64) {
	r.Helper()
	for _, part := range []string{"counters", "devices"} {
		if err := r.Client.Delete(r.Context(), r.slice(part, generation, 0)); err != nil {
			r.Fatalf("withdrawing the %s: %v", part, err)
		}
	}
}

// standard is what most tests play with: 8 hosts as whole rack, quads, pairs and single hosts, owned by Berth.
func standard(s *scene.Scene, name string) *rack {
	s.Helper()
	r := newRack(s, name, 8)
	r.publish(r.devices(8, 4, 2, 1)...)
	r.own()
	return r
}

// fill binds a pod to the host that leaves no CPU there.
func (r *rack) fill(host string) *corev1.Pod { r.Helper(); return fill(r.Scene, host, cpus) }

func fill(s *scene.Scene, host, cpu string) *corev1.Pod {
	s.Helper()
	return fillWith(s, host, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	})
}

// fillWith binds a pod to the host that takes something there.
func fillWith(s *scene.Scene, host string, what func(*corev1.Pod)) *corev1.Pod {
	s.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "filler-" + host},
		Spec: corev1.PodSpec{
			NodeName: host, TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{Name: "filler", Image: "filler"}},
		},
	}
	what(pod)
	s.Create(pod)
	s.Cleanup(func() { clearOut(s, pod) })
	return pod
}

// clearOut removes a filler; it may be gone already.
func clearOut(s *scene.Scene, pod *corev1.Pod) {
	s.Helper()
	err := s.Client.Delete(context.Background(), pod, client.GracePeriodSeconds(0))
	if err != nil && !apierrors.IsNotFound(err) {
		s.Errorf("removing pod %s: %v", pod.Name, err)
	}
}

// condition of the rack's AcceleratorPool as "status reason: message".
func (r *rack) condition(ctx context.Context, kind string) (string, error) {
	p := r.owner("")
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
		return "", err
	}
	c := apimeta.FindStatusCondition(p.Status.Conditions, kind)
	if c == nil {
		return "", fmt.Errorf("AcceleratorPool %s has no condition %s", p.Name, kind)
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), nil
}

// awaitCondition waits until a condition of the rack's AcceleratorPool reads as wanted.
func (r *rack) awaitCondition(kind, want string) {
	r.Helper()
	r.Eventually("condition "+kind+" of AcceleratorPool "+r.name, func(ctx context.Context) error {
		have, err := r.condition(ctx, kind)
		if err == nil && have != want {
			err = fmt.Errorf("it reads\n  %s\nand should read\n  %s", have, want)
		}
		return err
	})
}

// awaitShapes waits until the AcceleratorPool counts its devices as "class free/devices", largest first.
func (r *rack) awaitShapes(want ...string) {
	r.Helper()
	r.Eventually("shapes of AcceleratorPool "+r.name, func(ctx context.Context) error {
		p := r.owner("")
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		var have []string
		for _, s := range p.Status.Shapes {
			have = append(have, fmt.Sprintf("%s %d/%d", s.Name, s.Free, s.Devices))
		}
		if !slices.Equal(have, want) {
			return fmt.Errorf("they are %s and should be %s", strings.Join(have, ", "), strings.Join(want, ", "))
		}
		return nil
	})
}

// on is the text of GangReserved for a device of the rack and its hosts in rank order.
func (r *rack) on(device string, hosts []string) string {
	return fmt.Sprintf("True Reserved: %s (%s) on %s", device, r.name, strings.Join(hosts, ", "))
}
