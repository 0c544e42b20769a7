package dra_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
)

// Scenarios 8 and 24: a layout that the API refuses today, or that an API server without the gate makes of a good one, takes
// its pool out of use with a reason. The pool beside it keeps working.
func TestRefusedLayouts(t *testing.T) {
	counters := func() dratest.Slice {
		return dratest.NewSlice("counters", driver, "pod-a").Of(2).Counters("cs", "4", "h1", "h2")
	}
	devices := func() dratest.Slice { return dratest.NewSlice("devices", driver, "pod-a").Of(2) }
	one := func(name string) dratest.Device { return dratest.NewDevice(name, "x").On("node-1") }
	both := devices().Device(one("d").Consumes("cs", "4", "h1"))
	both.Spec.SharedCounters = counters().Spec.SharedCounters
	both.Spec.Pool.ResourceSliceCount = 1
	grouped := one("d").Consumes("cs", "1", "h1")
	grouped.ConsumesCounters[0].CompatibilityGroups = []string{"a"}
	for name, test := range map[string]struct {
		slices []dratest.Slice
		want   string
	}{
		"counters beside devices, as in 1.34": {[]dratest.Slice{both}, "PoolInvalid: pool tpu.example.com/pod-a: slice devices holds both counters and devices; they belong in slices of their own"},
		"unknown counter set": {[]dratest.Slice{counters(), devices().Device(one("d").Consumes("other", "4", "h1"))},
			"PoolInvalid: pool tpu.example.com/pod-a: slice devices, device d: counter set other does not exist in the pool"},
		"a counter that is not there": {[]dratest.Slice{counters(), devices().Device(one("d").Consumes("cs", "4", "h3"))},
			"PoolInvalid: pool tpu.example.com/pod-a: slice devices, device d: counter h3 does not exist in counter set cs"},
		"more than there is": {[]dratest.Slice{counters(), devices().Device(one("d").Consumes("cs", "5", "h1"))},
			"PoolInvalid: pool tpu.example.com/pod-a: slice devices, device d: consumes more of counter cs/h1 than there is"},
		"compatibility groups": {[]dratest.Slice{counters(), devices().Device(grouped)},
			"PoolInvalid: pool tpu.example.com/pod-a: slice devices, device d: it has compatibility groups, which Berth cannot keep"},
		"counters dropped": {[]dratest.Slice{devices().Of(1).Device(one("d")).Device(dratest.NewDevice("whole", "y").On("node-1", "node-2"))},
			"GateOff: pool tpu.example.com/pod-a: devices d and whole share host node-1 but no counter; the API server drops counters when its feature gate DRAPartitionableDevices is off"},
		"counters dropped from all but their own slice": {[]dratest.Slice{counters(), devices().Device(one("d")).Device(dratest.NewDevice("whole", "y").On("node-1", "node-2"))}, ""},
		"two answers": {[]dratest.Slice{func() dratest.Slice {
			s := devices().Of(1).Device(dratest.NewDevice("d", "x")).Node("node-1")
			s.Spec.AllNodes = ptr(true)
			return s
		}()}, "PoolInvalid: pool tpu.example.com/pod-a: slice devices: it sets more than one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection"},
		"no answer for a device": {[]dratest.Slice{devices().Of(1).Device(one("d")).Device(dratest.NewDevice("e", "x"))},
			"PoolInvalid: pool tpu.example.com/pod-a: slice devices: device e needs one of nodeName, nodeSelector and allNodes, because perDeviceNodeSelection is set"},
		"an answer for a device of a slice that has one": {[]dratest.Slice{devices().Of(1).Node("node-1").Device(one("d"))},
			"PoolInvalid: pool tpu.example.com/pod-a: slice devices: device d says which nodes reach it although perDeviceNodeSelection is not set"},
		"negative generation": {[]dratest.Slice{devices().Of(1).Generation(-1).Device(one("d"))},
			"PoolInvalid: pool tpu.example.com/pod-a: slice devices: its generation is -1"},
		"node selection dropped": {[]dratest.Slice{func() dratest.Slice {
			s := devices().Of(1).Device(dratest.NewDevice("d", "x"))
			s.Spec.PerDeviceNodeSelection = nil
			return s
		}()}, "GateOff: pool tpu.example.com/pod-a: slice devices does not say which nodes it is for; the API server drops that when its feature gate DRAPartitionableDevices is off"},
	} {
		t.Run(name, func(t *testing.T) {
			s := site(append(test.slices, dratest.NewSlice("good", driver, "pod-b").Device(one("g")))...)
			s.DeviceClasses = []*resourcev1.DeviceClass{dratest.Class("all", "true")}
			inv := read(s).Inventory
			got := ""
			if p := inv.Pool(podA); p.Problem != nil {
				got = p.Problem.Error()
			}
			if got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
			var offered []string
			for _, d := range inv.Class("all").Devices {
				offered = append(offered, d.Short())
			}
			if test.want != "" {
				if diff := cmp.Diff([]string{"pod-b/g"}, offered); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Scenario 25: pools, drivers and devices whose names are equal but for their case, or of which one begins with the other,
// stay apart in all that is read.
func TestNamesAreNeverMixed(t *testing.T) {
	s := site(
		dratest.NewSlice("a", driver, "pod").Device(dratest.NewDevice("d", "x").On("node-1")).Device(dratest.NewDevice("D", "x").On("node-1")),
		dratest.NewSlice("b", driver, "Pod").Device(dratest.NewDevice("d", "x").On("node-2")),
		dratest.NewSlice("c", driver, "pod-1").Device(dratest.NewDevice("d", "x").On("node-10")),
		dratest.NewSlice("d", driver+".org", "pod").Device(dratest.NewDevice("d", "x").On("node-10")),
	)
	s.ResourceClaims = []*resourcev1.ResourceClaim{
		dratest.Claim("x", "a", dratest.Result(driver, "pod", "d")), dratest.Claim("x", "b", dratest.Result(driver+".org", "pod", "D")),
	}
	view := read(s)
	var got []string
	for _, p := range view.Inventory.Pools() {
		for _, d := range p.Devices {
			got = append(got, d.ID()+" on "+d.Hosts[0])
		}
	}
	want := []string{"tpu.example.com/Pod/d on node-2", "tpu.example.com/pod/D on node-1", "tpu.example.com/pod/d on node-1", "tpu.example.com/pod-1/d on node-10"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	holdings := view.Holdings(s, nil)
	if len(holdings) != 1 || holdings[0].Pool != (inventory.PoolID{Driver: driver, Name: "pod"}) || holdings[0].Device != "d" {
		t.Errorf("%+v", holdings)
	}
}

// Scenario 28: which nodes a selector by label matches may change while the device is allocated. New gangs find the device
// where it stands now; what was allocated stays as it is, on the hosts on record.
func TestNodesChangeUnderAnAllocatedDevice(t *testing.T) {
	rack := func(op corev1.NodeSelectorOperator, values ...string) dratest.Device {
		return dratest.NewDevice("d", "x").Matching(corev1.NodeSelectorRequirement{Key: "rack", Operator: op, Values: values})
	}
	for name, test := range map[string]struct {
		device        dratest.Device
		before, after []string
	}{
		"Exists": {rack(corev1.NodeSelectorOpExists), []string{"node-1", "node-2"}, []string{"node-1"}},
		"NotIn":  {rack(corev1.NodeSelectorOpNotIn, "a"), []string{"node-2", "node-10"}, []string{"node-2", "node-10"}},
		"In":     {rack(corev1.NodeSelectorOpIn, "b"), []string{"node-2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := site(dratest.NewSlice("s", driver, "pod-a").Device(test.device))
			s.Nodes[0].Labels["rack"], s.Nodes[1].Labels["rack"] = "a", "b"
			cache := dra.NewCache()
			if diff := cmp.Diff(test.before, cache.Read(s).Inventory.Device(podA, "d").Hosts); diff != "" {
				t.Error(diff)
			}
			ours := dratest.Claim("ml", "berth.a-0", dratest.Result(driver, "pod-a", "d"))
			ours.Annotations = map[string]string{
				berth.AnnotationReservationUID: "uid",
				berth.AnnotationDevices:        `[{"request":"r","driver":"tpu.example.com","pool":"pod-a","device":"d","generation":1,"hosts":["node-1","node-2"]}]`,
			}
			s.ResourceClaims = []*resourcev1.ResourceClaim{ours}
			s.Nodes[1] = s.Nodes[1].DeepCopy()
			delete(s.Nodes[1].Labels, "rack")
			view := cache.Read(s)
			if diff := cmp.Diff(test.after, view.Inventory.Device(podA, "d").Hosts); diff != "" {
				t.Error(diff)
			}
			holdings := view.Holdings(s, nil)
			if len(holdings) != 1 {
				t.Fatalf("%+v", holdings)
			}
			if diff := cmp.Diff([]string{"node-1", "node-2"}, holdings[0].Hosts); diff != "" {
				t.Error(diff)
			}
		})
	}
}
