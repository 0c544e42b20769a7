package cluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// The referee is kube-scheduler's own allocator. CEL cannot see a device's name, so each device gets an attribute of its
// own in a copy of the slices.
type referee struct {
	slices  []*resourcev1.ResourceSlice
	classes classLister
	state   structured.AllocatedState
	cel     *cel.Cache
}

type classLister []*resourcev1.DeviceClass

func (l classLister) List() ([]*resourcev1.DeviceClass, error) { return l, nil }
func (l classLister) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, c := range l {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no class %s", name)
}

func newReferee(s *snapshot.Snapshot) *referee {
	r := &referee{classes: s.DeviceClasses, cel: cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true})}
	r.state.AllocatedDevices = sets.New[structured.DeviceID]()
	r.state.AllocatedSharedDeviceIDs = sets.New[structured.SharedDeviceID]()
	r.state.AggregatedCapacity = structured.NewConsumedCapacityCollection()
	for _, sl := range s.ResourceSlices {
		sl = sl.DeepCopy()
		for i := range sl.Spec.Devices {
			d := &sl.Spec.Devices[i]
			if d.Attributes == nil {
				d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
			}
			d.Attributes["berth.test/name"] = resourcev1.DeviceAttribute{StringValue: ptr(sl.Spec.Pool.Name + "/" + d.Name)}
		}
		r.slices = append(r.slices, sl)
	}
	for _, c := range s.ResourceClaims {
		for _, d := range c.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(d.Driver, d.Pool, d.Device)
			if d.ShareID == nil {
				r.state.AllocatedDevices.Insert(id)
				continue
			}
			r.state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, d.ShareID))
			if d.ConsumedCapacity != nil {
				r.state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, d.ConsumedCapacity))
			}
		}
	}
	return r
}

// allocate asks for one device by name on a node; nil when the scheduler would not give it.
func (r *referee) allocate(t *testing.T, device *inventory.Device, spec *resourcev1.ResourceClaimSpec, node *corev1.Node) *resourcev1.AllocationResult {
	t.Helper()
	a, err := structured.NewAllocator(context.Background(), structured.Features{
		PartitionableDevices: true, DeviceTaints: true, AdminAccess: true, PrioritizedList: true, ConsumableCapacity: true, FractionalCapacityRange: true, DeviceBindingAndStatus: true,
	}, r.state, r.classes, r.slices, r.cel)
	if err != nil {
		t.Fatal(err)
	}
	spec = spec.DeepCopy()
	for i := range spec.Devices.Requests {
		spec.Devices.Requests[i].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: fmt.Sprintf(`device.attributes["berth.test"].name == %q`, device.Short()),
		}}}
	}
	results, err := a.Allocate(context.Background(), node, []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: *spec}})
	if err != nil || len(results) == 0 {
		return nil
	}
	return &results[0]
}

func compare(want, got *resourcev1.AllocationResult) string { return cmp.Diff(want, got) }

// agree compares every device of the snapshot with the referee: whether it is free, and what the allocation looks like.
func agree(t *testing.T, s *snapshot.Snapshot, class string) (free, taken int) {
	t.Helper()
	w := cluster.New().World(s)
	ref := newReferee(s)
	nodesByName := map[string]*corev1.Node{}
	for _, n := range s.Nodes {
		nodesByName[n.Name] = n
	}
	for _, d := range w.Inventory.Class(class).Devices {
		spec := dratest.Request(class, 1)
		want := ref.allocate(t, d, spec, nodesByName[d.Hosts[0]])
		ours := w.Ledger.Free(d) && len(d.Taints) == 0
		if ours != (want != nil) {
			t.Fatalf("%s: free is %v, the scheduler says %v", d.ID(), ours, want != nil)
		}
		if want == nil {
			taken++
			continue
		}
		free++
		at := metav1.NewTime(time.Unix(1, 0))
		got, err := dra.Allocation(spec, "claim", placement.Instance{Devices: []placement.Device{{
			Request: "r", Pool: d.Pool, Generation: d.Generation, Name: d.Name, Hosts: d.Hosts,
		}}}, s, at)
		if err != nil {
			t.Fatal(err)
		}
		want.AllocationTimestamp = &at
		want.Devices.Results[0].Tolerations = []resourcev1.DeviceToleration{{
			Operator: resourcev1.DeviceTolerationOpExists, Effect: resourcev1.DeviceTaintEffectNoExecute, TolerationSeconds: ptr(int64(30)),
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: allocation differs from the scheduler's (-want +got):\n%s", d.ID(), diff)
		}
	}
	return free, taken
}

func TestAgreesWithSchedulerOnKEP4815(t *testing.T) {
	for _, class := range []string{"tpu-2x2", "tpu-4x4", "tpu-4x8", "tpu-8x8"} {
		s := tpu(t)
		if free, taken := agree(t, s, class); free == 0 || taken != 0 {
			t.Errorf("%s: %d free, %d taken in an empty pool", class, free, taken)
		}
		s.ResourceClaims = []*resourcev1.ResourceClaim{
			dratest.Claim("x", "a", dratest.Result(driver, pool, "tpu-4x4-00")),
			dratest.Claim("x", "b", dratest.Result(driver, pool, "tpu-2x2-33")),
		}
		if _, taken := agree(t, s, class); taken == 0 {
			t.Errorf("%s: nothing taken", class)
		}
	}
}

// Every published case, with as much of it taken as chance has it.
func TestAgreesWithSchedulerOnTakenHardware(t *testing.T) {
	for _, file := range []string{"../../test/testdata/kep4815-multihost.yaml", "../adapt/dra/testdata/aks-gb300-gpu.yaml", "../adapt/dra/testdata/oke-gb200-gpu.yaml", "../adapt/dra/testdata/oke-gb200-dranet.yaml"} {
		free, taken := 0, 0
		for seed := range uint64(12) {
			s := theCase(t, file)
			rng := rand.New(rand.NewPCG(seed, 5))
			for i := range 1 + rng.IntN(6) {
				w := cluster.New().World(s)
				all := w.Inventory.Class("all").Devices
				if d := all[rng.IntN(len(all))]; w.Ledger.Free(d) {
					s.ResourceClaims = append(s.ResourceClaims, dratest.Claim("x", fmt.Sprint("c", i), dratest.Result(d.Pool.Driver, d.Pool.Name, d.Name)))
				}
			}
			f, n := agree(t, s, "all")
			free, taken = free+f, taken+n
		}
		if free == 0 || taken < 12 {
			t.Errorf("%s: %d free, %d taken", file, free, taken)
		}
	}
}

// theCase is one whose every driver is managed, with the nodes that it names and a class for everything.
func theCase(t *testing.T, file string) *snapshot.Snapshot {
	s := dratest.Load(t, file)
	managed := map[string]bool{}
	for _, sl := range s.ResourceSlices {
		if !managed[sl.Spec.Driver] {
			managed[sl.Spec.Driver] = true
			s.AcceleratorPools = append(s.AcceleratorPools, dratest.Pool(sl.Spec.Driver))
		}
		if sl.Spec.NodeName != nil {
			s.Nodes = append(s.Nodes, dratest.Node(*sl.Spec.NodeName))
		}
	}
	s.DeviceClasses = append(s.DeviceClasses, dratest.Class("all", "true"))
	return s
}

func TestAgreesWithSchedulerOnPublishedHardware(t *testing.T) {
	for _, file := range []string{"aks-gb300-gpu", "oke-gb200-gpu", "oke-gb200-dranet"} {
		s := dratest.Load(t, "../adapt/dra/testdata/"+file+".yaml")
		for _, sl := range s.ResourceSlices {
			s.AcceleratorPools = append(s.AcceleratorPools, dratest.Pool(sl.Spec.Driver))
			if sl.Spec.NodeName != nil {
				s.Nodes = append(s.Nodes, dratest.Node(*sl.Spec.NodeName))
			}
		}
		s.DeviceClasses = []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: resourcev1.DeviceClassSpec{
			Config: []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: "x"}}}},
		}}}
		if free, _ := agree(t, s, "all"); free == 0 {
			t.Errorf("%s: no device", file)
		}
	}
}

func pools() []*berth.AcceleratorPool { return []*berth.AcceleratorPool{dratest.Pool(driver)} }

// randomWorld has one pool of overlapping devices on counters, some of them taken by strangers without overdraw.
func randomWorld(rng *rand.Rand) *snapshot.Snapshot {
	hosts := 2 + rng.IntN(6)
	s := &snapshot.Snapshot{AcceleratorPools: []*berth.AcceleratorPool{dratest.Pool(driver)}}
	var names, counters []string
	for h := range hosts {
		names, counters = append(names, fmt.Sprintf("node-%d", h)), append(counters, fmt.Sprintf("h%d", h))
		s.Nodes = append(s.Nodes, dratest.Node(names[h]))
	}
	devices := dratest.NewSlice("devices", driver, pool).Of(2)
	for i := range 3 + rng.IntN(10) {
		from := rng.IntN(hosts)
		n := 1 + rng.IntN(hosts-from)
		d := dratest.NewDevice(fmt.Sprintf("d-%d", i), fmt.Sprint(n)).On(names[from : from+n]...)
		if rng.IntN(8) > 0 {
			d = d.Consumes("cs", fmt.Sprint(1+rng.IntN(4)), counters[from:from+n]...)
		}
		devices = devices.Device(d)
	}
	counterSlice := dratest.NewSlice("counters", driver, pool).Of(2).Counters("cs", "4", counters...)
	s.ResourceSlices = []*resourcev1.ResourceSlice{devices.ResourceSlice, counterSlice.ResourceSlice}
	s.DeviceClasses = []*resourcev1.DeviceClass{dratest.Class("all", "true")}
	for n := range hosts {
		s.DeviceClasses = append(s.DeviceClasses, dratest.ByTopology(fmt.Sprint("t", n+1), driver, fmt.Sprint(n+1)))
	}
	for i := range rng.IntN(4) {
		w := cluster.New().World(s)
		d := w.Inventory.Class("all").Devices[rng.IntN(len(w.Inventory.Class("all").Devices))]
		if w.Ledger.Free(d) {
			s.ResourceClaims = append(s.ResourceClaims, dratest.Claim("x", fmt.Sprint("c", i), dratest.Result(driver, pool, d.Name)))
		}
	}
	return s
}

func TestAgreesWithSchedulerOnRandomPools(t *testing.T) {
	free, taken := 0, 0
	for seed := range uint64(60) {
		f, n := agree(t, randomWorld(rand.New(rand.NewPCG(seed, 2))), "all")
		free, taken = free+f, taken+n
	}
	if free < 50 || taken < 50 {
		t.Errorf("only %d free and %d taken devices were compared", free, taken)
	}
}

// exists is the dumb twin: it tries every set of devices of the class.
func exists(w placement.World, g gang.Gang) bool {
	set := g.PodSets[0]
	all := w.Inventory.Class(set.Claims[0].Requests[0].Class).Devices
	var try func(from, left int, chosen placement.PodSet) bool
	try = func(from, left int, chosen placement.PodSet) bool {
		if left == 0 {
			return placement.Recheck(g, placement.Decision{PodSets: []placement.PodSet{chosen}}, w) == nil
		}
		for i := from; i < len(all); i++ {
			next := chosen
			next.Hosts = append(slices.Clone(chosen.Hosts), all[i].Hosts...)
			in := placement.Instance{Devices: []placement.Device{{Request: "r", Pool: all[i].Pool, Name: all[i].Name}}}
			next.Claims = []placement.Claim{{PodClaim: "tpu", Instances: append(slices.Clone(chosen.Claims[0].Instances), in)}}
			if try(i+1, left-1, next) {
				return true
			}
		}
		return false
	}
	return try(0, set.Slices, placement.PodSet{Name: set.Name, Claims: []placement.Claim{{PodClaim: "tpu"}}})
}

func TestPlacersNeverOverdraw(t *testing.T) {
	for name, placer := range map[string]placement.Placer{"FirstFit": placement.FirstFit{}, "Scored": placement.NewScored(0)} {
		t.Run(name, func(t *testing.T) { neverOverdraws(t, placer) })
	}
}

func neverOverdraws(t *testing.T, placer placement.Placer) {
	placed, refused := 0, 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s := randomWorld(rng)
		c := cluster.New()
		for i := range 4 {
			span := 1 + rng.IntN(4)
			g := ask(fmt.Sprint("t", span), span*(1+rng.IntN(2)), 5)
			g.PodSets[0].Slices = g.PodSets[0].Count / span
			d := placer.Place(g, c.World(s))
			if d.Refusal != nil {
				refused++
				if len(d.PodSets) != 0 || d.Refusal.Message == "" || len(d.Refusal.Message) > 1024 {
					t.Fatalf("seed %d: %+v", seed, d)
				}
				if d.Proved && exists(c.World(s), g) {
					t.Fatalf("seed %d: refused although there is a place: %v", seed, d.Refusal)
				}
				continue
			}
			placed++
			if hosts := d.PodSets[0].Hosts; len(hosts) != g.PodSets[0].Count {
				t.Fatalf("seed %d: %d hosts for %d pods", seed, len(hosts), g.PodSets[0].Count)
			}
			if r := placement.Recheck(g, d, c.World(s)); r != nil {
				t.Fatalf("seed %d: decision does not survive its own check: %v", seed, r)
			}
			s.Reservations = append(s.Reservations, reserve(fmt.Sprint("g", i), d))
			if over := c.World(s).Ledger.Overdrawn(); len(over) > 0 {
				t.Fatalf("seed %d: overdrawn %v", seed, over)
			}
		}
	}
	if placed < 50 || refused < 50 {
		t.Errorf("only %d placed and %d refused", placed, refused)
	}
}

// TestScoredAgreesWithScheduler compares, on random pools, what Scored offers for a pod of one device (the chosen one and,
// where there are few, all others as runners-up) with what the scheduler's allocator would give.
func TestScoredAgreesWithScheduler(t *testing.T) {
	placer := placement.NewScored(0)
	compared := 0
	for seed := range uint64(60) {
		s := randomWorld(rand.New(rand.NewPCG(seed, 4)))
		w, ref := cluster.New().World(s), newReferee(s)
		nodesByName := map[string]*corev1.Node{}
		for _, n := range s.Nodes {
			nodesByName[n.Name] = n
		}
		for _, class := range w.Inventory.Classes() {
			for _, span := range class.Spans() {
				var want, got []string
				for _, d := range span.Devices {
					if class.Name != "all" && ref.allocate(t, d, dratest.Request(class.Name, 1), nodesByName[d.Hosts[0]]) != nil {
						want = append(want, d.Name)
					}
				}
				if class.Name == "all" || len(want) > 6 {
					continue
				}
				if d := placer.Place(ask(class.Name, span.Hosts, 1), w); d.Fits() {
					got = append(got, d.PodSets[0].Claims[0].Instances[0].Devices[0].Name)
					for _, up := range d.RunnersUp {
						got = append(got, up.Name)
					}
				}
				slices.Sort(want)
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d, %s: (-scheduler +Scored)\n%s", seed, class.Name, diff)
				}
				compared += len(want)
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d devices were compared", compared)
	}
}
