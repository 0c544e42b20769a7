package dra_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/snapshot"
)

type classes []*resourcev1.DeviceClass

func (l classes) List() ([]*resourcev1.DeviceClass, error) { return l, nil }
func (l classes) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, c := range l {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no class %s", name)
}

func scheduler(t *testing.T, s *snapshot.Snapshot, spec *resourcev1.ResourceClaimSpec, node *corev1.Node) *resourcev1.AllocationResult {
	t.Helper()
	a, err := structured.NewAllocator(context.Background(), structured.Features{
		PartitionableDevices: true, DeviceTaints: true, ConsumableCapacity: true, DeviceBindingAndStatus: true,
	}, structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID]()}, classes(s.DeviceClasses), s.ResourceSlices, cel.NewCache(10, cel.Features{EnableConsumableCapacity: true}))
	if err != nil {
		t.Fatal(err)
	}
	results, err := a.Allocate(context.Background(), node, []*resourcev1.ResourceClaim{{Spec: *spec}})
	if err != nil || len(results) != 1 {
		t.Fatalf("the scheduler allocates nothing: %v", err)
	}
	return &results[0]
}

func config(parameters string) resourcev1.DeviceClassConfiguration {
	return resourcev1.DeviceClassConfiguration{DeviceConfiguration: resourcev1.DeviceConfiguration{
		Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(parameters)}},
	}}
}

// What the scheduler chooses is put through Allocation, which must build the same result.
func TestAllocationIsTheSchedulers(t *testing.T) {
	tolerated := dratest.Request("a", 1)
	tolerated.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{{Key: "bad", Operator: resourcev1.DeviceTolerationOpExists}}
	two := dratest.Request("a", 2)
	both := dratest.Request("a", 1)
	both.Devices.Requests = append(both.Devices.Requests, *both.Devices.Requests[0].DeepCopy(), *dratest.Request("b", 1).Devices.Requests[0].DeepCopy())
	both.Devices.Requests[1].Name, both.Devices.Requests[2].Name = "r2", "r3"

	binding := dratest.NewDevice("bind", "a").On("node-1")
	binding.BindingConditions, binding.BindingFailureConditions = []string{"ready"}, []string{"broken"}
	binds := dratest.NewDevice("binds", "a").On("node-1")
	binds.BindsToNode = ptr(true)
	part := dratest.Request("a", 1)
	part.Devices.Requests[0].Exactly.Capacity = needs("memory", "5Gi")
	policy := &resourcev1.CapacityRequestPolicy{Default: ptr(resource.MustParse("1Gi")), ValidRange: &resourcev1.CapacityRequestPolicyRange{
		Min: ptr(resource.MustParse("1Gi")), Step: ptr(resource.MustParse("1024Mi")),
	}}
	tests := map[string]struct {
		slice dratest.Slice
		spec  *resourcev1.ResourceClaimSpec
	}{
		"a share":                             {dratest.NewSlice("s", driver, "p").Device(dratest.NewDevice("d", "a").On("node-1").Shared().Has("memory", "16Gi", nil)), part},
		"a rounded share":                     {dratest.NewSlice("s", driver, "p").Device(dratest.NewDevice("d", "a").On("node-1").Shared().Has("memory", "16Gi", policy).Has("cores", "4", nil)), part},
		"whatever a share takes":              {dratest.NewSlice("s", driver, "p").Device(dratest.NewDevice("d", "a").On("node-1").Shared().Has("memory", "16Gi", policy)), dratest.Request("a", 1)},
		"a share of nothing":                  {dratest.NewSlice("s", driver, "p").Device(dratest.NewDevice("d", "a").On("node-1").Shared()), dratest.Request("a", 1)},
		"a whole device that is large enough": {dratest.NewSlice("s", driver, "p").Device(dratest.NewDevice("d", "a").On("node-1").Has("memory", "16Gi", nil)), part},
		"several hosts":                       {dratest.NewSlice("s", driver, "p").Device(dratest.NewDevice("d", "a").On("node-1", "node-2")), dratest.Request("a", 1)},
		"two devices":                         {dratest.NewSlice("s", driver, "p").Device(dratest.NewDevice("d", "a").On("node-1")).Device(dratest.NewDevice("e", "a").On("node-1")), two},
		"two selectors":                       {dratest.NewSlice("s", driver, "p").Device(dratest.NewDevice("d", "a").On("node-1", "node-2")).Device(dratest.NewDevice("e", "a").On("node-1")), two},
		"node's slice":                        {dratest.NewSlice("s", driver, "p").Node("node-1").Device(dratest.NewDevice("d", "a")), dratest.Request("a", 1)},
		"binds to a node":                     {dratest.NewSlice("s", driver, "p").Device(binds), dratest.Request("a", 1)},
		"binding":                             {dratest.NewSlice("s", driver, "p").Device(binding), dratest.Request("a", 1)},
		"tolerations":                         {dratest.NewSlice("s", driver, "p").Device(dratest.NewDevice("d", "a").On("node-1").Taint("bad", "")), tolerated},
		"several requests": {dratest.NewSlice("s", driver, "p").Node("node-1").Device(dratest.NewDevice("d", "a")).
			Device(dratest.NewDevice("e", "a")).Device(dratest.NewDevice("f", "b")), both},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := site(test.slice)
			s.DeviceClasses = []*resourcev1.DeviceClass{dratest.ByTopology("a", driver, "a"), dratest.ByTopology("b", driver, "b")}
			s.DeviceClasses[0].Spec.Config = []resourcev1.DeviceClassConfiguration{config(`{"x":1}`), config(`{"x":2}`)}
			s.DeviceClasses[1].Spec.Config = []resourcev1.DeviceClassConfiguration{config(`{"y":1}`)}
			want := scheduler(t, s, test.spec, s.Nodes[0])

			inv := read(s).Inventory
			var in placement.Instance
			for _, r := range want.Devices.Results {
				d := inv.Device(poolP, r.Device)
				chosen := placement.Device{Request: r.Request, Pool: d.Pool, Generation: d.Generation, Name: d.Name, Hosts: d.Hosts, Charge: d.Charge, Share: d.Shared}
				if d.Shared {
					claim, _, _ := dra.Claim(test.spec, "c", inv)
					chosen.Capacity, _ = d.Share(claim.Requests[0].Capacity)
				}
				in.Devices = append(in.Devices, chosen)
			}
			at := metav1.NewTime(time.Unix(7, 0))
			want.AllocationTimestamp = &at
			for i := range want.Devices.Results {
				r := &want.Devices.Results[i]
				if name == "tolerations" {
					r.Tolerations = append(r.Tolerations, resourcev1.DeviceToleration{Key: "bad", Operator: "Exists", Effect: "NoExecute"})
				}
				if r.ShareID != nil { // A random number, which Berth makes from the claim.
					r.ShareID = ptr(types.UID("8a116db9-4dc9-8351-a7ed-0300a6c9f6bc"))
				}
				r.Tolerations = append(r.Tolerations, resourcev1.DeviceToleration{Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr(int64(30))})
			}
			got, err := dra.Allocation(test.spec, "claim", in, s, at)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-scheduler +berth:\n%s", diff)
			}
		})
	}
}

var poolP = func() (id placement.Device) { id.Pool.Driver, id.Pool.Name = driver, "p"; return }().Pool

func TestAllocationFails(t *testing.T) {
	s := site(dratest.NewSlice("s", driver, "p").Device(dratest.NewDevice("d", "a").On("node-1")).Device(dratest.NewDevice("s", "a").On("node-1").Shared().Has("memory", "1", nil)))
	s.DeviceClasses = []*resourcev1.DeviceClass{dratest.ByTopology("a", driver, "a")}
	d := placement.Device{Request: "r", Pool: poolP, Generation: 1, Name: "d"}
	other := func(change func(*placement.Device)) placement.Instance {
		c := d
		change(&c)
		return placement.Instance{Devices: []placement.Device{c}}
	}
	for want, test := range map[string]struct {
		class string
		in    placement.Instance
	}{
		"device tpu.example.com/p/e is not published at generation 1 any more":                  {"a", other(func(d *placement.Device) { d.Name = "e" })},
		"device tpu.example.com/p/d is not published at generation 2 any more":                  {"a", other(func(d *placement.Device) { d.Generation = 2 })},
		`the claim has no request "x" for exactly one class`:                                    {"a", other(func(d *placement.Device) { d.Request = "x" })},
		"whether device tpu.example.com/p/d may be allocated several times at once has changed": {"a", other(func(d *placement.Device) { d.Share = true })},
		"whether device tpu.example.com/p/s may be allocated several times at once has changed": {"a", other(func(d *placement.Device) { d.Name = "s" })},
		"a share of device s takes something else than was decided on":                          {"a", other(func(d *placement.Device) { d.Name, d.Share = "s", true })},
		"DeviceClass z does not exist any more":                                                 {"z", other(func(*placement.Device) {})},
		"no device was chosen":                                                                  {"a", placement.Instance{}},
	} {
		if _, err := dra.Allocation(dratest.Request(test.class, 1), "claim", test.in, s, metav1.Now()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAllocationLeavesAFullListOfTolerationsAlone(t *testing.T) {
	s := site(dratest.NewSlice("s", driver, "p").Device(dratest.NewDevice("d", "a").On("node-1")))
	s.DeviceClasses = []*resourcev1.DeviceClass{dratest.ByTopology("a", driver, "a")}
	spec := dratest.Request("a", 1)
	for i := range resourcev1.DeviceTolerationsMaxLength {
		spec.Devices.Requests[0].Exactly.Tolerations = append(spec.Devices.Requests[0].Exactly.Tolerations,
			resourcev1.DeviceToleration{Key: fmt.Sprint("k", i), Operator: resourcev1.DeviceTolerationOpExists, Effect: resourcev1.DeviceTaintEffectNoSchedule})
	}
	got, err := dra.Allocation(spec, "claim", placement.Instance{Devices: []placement.Device{{Request: "r", Pool: poolP, Generation: 1, Name: "d"}}}, s, metav1.Now())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(spec.Devices.Requests[0].Exactly.Tolerations, got.Devices.Results[0].Tolerations); diff != "" {
		t.Error(diff)
	}
}
