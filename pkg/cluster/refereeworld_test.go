package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/snapshot"
	"github.com/berth-dev/berth/test/race"
)

// anyHardware is a small world of every kind of pool that a driver can publish: windows of hosts on counters, hosts with
// partitions of a device, devices of a node without counters, devices that match their hosts by label; some of it old,
// incomplete, tainted, or on hosts that are missing or cordoned.
func anyHardware(rng *rand.Rand) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		AcceleratorPools: []*berth.AcceleratorPool{dratest.Pool(driver)},
		DeviceClasses: []*resourcev1.DeviceClass{
			dratest.Class("all", "true"), dratest.ByTopology("even", driver, "even"), dratest.Class("other", `device.driver == "other.example.com"`),
		},
	}
	var names []string
	for i := range 2 + rng.IntN(5) {
		n := dratest.Node(fmt.Sprintf("node-%d", i))
		names = append(names, n.Name)
		if rng.IntN(2) == 0 {
			n.Labels["rack"] = fmt.Sprint(rng.IntN(2))
		}
		n.Spec.Unschedulable = rng.IntN(20) == 0
		if rng.IntN(25) > 0 {
			s.Nodes = append(s.Nodes, n)
		}
	}
	for i := range 1 + rng.IntN(3) {
		b := &poolBuilder{rng: rng, name: fmt.Sprint("pool-", i), hosts: names}
		[]func(){b.windows, b.partitions, b.nodeLocal, b.byLabel, b.shared}[rng.IntN(5)]()
		s.ResourceSlices = append(s.ResourceSlices, b.publish()...)
	}
	if len(s.Nodes) > 0 && rng.IntN(6) == 0 {
		s.Pods = append(s.Pods, pod("full", s.Nodes[0].Name, "30"))
	}
	return s
}

// poolBuilder makes the slices of one pool.
type poolBuilder struct {
	rng      *rand.Rand
	name     string
	hosts    []string
	slices   int
	counters []dratest.Slice
	devices  []dratest.Slice
}

func (b *poolBuilder) slice(kind string) dratest.Slice {
	b.slices++
	return dratest.NewSlice(fmt.Sprintf("%s-%s-%d", b.name, kind, b.slices), driver, b.name)
}

func (b *poolBuilder) device(i int) dratest.Device {
	d := dratest.NewDevice(fmt.Sprint("d-", i), []string{"even", "odd"}[i%2])
	if b.rng.IntN(10) == 0 {
		d = d.Taint([]string{"bad", "borne"}[b.rng.IntN(2)], "")
		d.Taints[0].Effect = []resourcev1.DeviceTaintEffect{"NoSchedule", "NoExecute", "None"}[b.rng.IntN(3)]
	}
	return d
}

// windows are devices of some hosts in a row, each of which takes a part of the hosts' counters in one or two sets.
func (b *poolBuilder) windows() {
	counters := b.slice("counters")
	sets := 1 + b.rng.IntN(2)
	for set := range sets {
		counters = counters.Counters(fmt.Sprint("cs-", set), "4", b.hosts...)
	}
	b.counters = append(b.counters, counters)
	devices := b.slice("devices")
	for i := range 3 + b.rng.IntN(8) {
		from := b.rng.IntN(len(b.hosts))
		on := b.hosts[from : from+1+b.rng.IntN(len(b.hosts)-from)]
		d := b.device(i).On(on...)
		for set := range sets {
			if b.rng.IntN(6) > 0 {
				d = d.Consumes(fmt.Sprint("cs-", set), fmt.Sprint(1+b.rng.IntN(4)), on...)
			}
		}
		if i == 5 {
			b.devices, devices = append(b.devices, devices), b.slice("devices")
		}
		devices = devices.Device(d)
	}
	b.devices = append(b.devices, devices)
}

// partitions are one device of a host as a whole and as parts, of which three may fit only two at a time.
func (b *poolBuilder) partitions() {
	node := b.hosts[b.rng.IntN(len(b.hosts))]
	counters := b.slice("counters").Counters("gpu", "8", "memory", "compute").Node(node)
	b.counters = append(b.counters, counters)
	devices := b.slice("devices").Node(node)
	devices = devices.Device(b.device(0).Consumes("gpu", "8", "memory", "compute"))
	for i := range 2 + b.rng.IntN(5) {
		devices = devices.Device(b.device(i+1).Consumes("gpu", fmt.Sprint(1+b.rng.IntN(5)), []string{"memory", "compute"}[:1+b.rng.IntN(2)]...))
	}
	b.devices = append(b.devices, devices)
}

// nodeLocal are devices of one node that share nothing.
func (b *poolBuilder) nodeLocal() {
	devices := b.slice("devices").Node(b.hosts[b.rng.IntN(len(b.hosts))])
	for i := range 1 + b.rng.IntN(4) {
		devices = devices.Device(b.device(i))
	}
	b.devices = append(b.devices, devices)
}

// byLabel are equal devices that stand on the nodes with a label, or without it.
func (b *poolBuilder) byLabel() {
	devices := b.slice("devices")
	r := []corev1.NodeSelectorRequirement{
		{Key: "rack", Operator: corev1.NodeSelectorOpExists}, {Key: "rack", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"0"}},
		{Key: "rack", Operator: corev1.NodeSelectorOpIn, Values: []string{"0", "1"}}, {Key: "rack", Operator: corev1.NodeSelectorOpDoesNotExist},
	}[b.rng.IntN(4)]
	for i := range 1 + b.rng.IntN(3) {
		devices = devices.Device(b.device(i).Matching(r))
	}
	b.devices = append(b.devices, devices)
}

// shared are devices of a node that may be allocated several times at once, some of them parts of one counter, beside one
// that may not.
func (b *poolBuilder) shared() {
	node := b.hosts[b.rng.IntN(len(b.hosts))]
	counted := b.rng.IntN(2) == 0
	if counted {
		b.counters = append(b.counters, b.slice("counters").Counters("gpu", "8", "memory").Node(node))
	}
	devices := b.slice("devices").Node(node)
	for i := range 2 + b.rng.IntN(3) {
		d := b.device(i).Has("memory", "16Gi", nil)
		if counted {
			d = d.Consumes("gpu", fmt.Sprint(2+b.rng.IntN(4)), "memory")
		}
		if b.rng.IntN(4) > 0 {
			d = d.Shared().Has("memory", "16Gi", b.policy("4Gi", "12Gi", "2Gi", "6Gi")).Has("cores", "8", b.policy("1", "6", "2", "3"))
			if b.rng.IntN(8) == 0 {
				d.Capacity = nil // Then shares take nothing, and there is no end to them.
			}
		}
		devices = devices.Device(d)
	}
	b.devices = append(b.devices, devices)
}

// policy is one of the kinds there are.
func (b *poolBuilder) policy(low, high, step, other string) *resourcev1.CapacityRequestPolicy {
	q := func(s string) *resource.Quantity { return ptr(resource.MustParse(s)) }
	p := &resourcev1.CapacityRequestPolicy{Default: q(low)}
	switch b.rng.IntN(6) {
	case 0:
		return nil
	case 1:
	case 2:
		p.ValidRange = &resourcev1.CapacityRequestPolicyRange{Min: q(low)}
	case 3:
		p.ValidRange = &resourcev1.CapacityRequestPolicyRange{Min: q(low), Max: q(high)}
	case 4:
		p.ValidRange = &resourcev1.CapacityRequestPolicyRange{Min: q(low), Step: q(step)}
	case 5:
		p.ValidValues = []resource.Quantity{*q(low), *q(other), *q(high)}
	}
	return p
}

// anyRequest is for one device, at times with what it needs of the device's capacities.
func anyRequest(rng *rand.Rand) *resourcev1.ResourceClaimSpec {
	spec := dratest.Request("all", 1)
	if rng.IntN(2) == 0 {
		spec.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{{Key: "borne", Operator: resourcev1.DeviceTolerationOpExists}}
	}
	if rng.IntN(2) == 0 {
		asks := map[resourcev1.QualifiedName]resource.Quantity{}
		if rng.IntN(2) == 0 {
			asks["memory"] = resource.MustParse([]string{"1Gi", "5Gi", "6144Mi", "7Gi", "12Gi", "13Gi", "20Gi"}[rng.IntN(7)])
		}
		if rng.IntN(2) == 0 {
			asks["cores"] = resource.MustParse([]string{"1", "1500m", "2", "3", "3500m", "5", "7"}[rng.IntN(7)])
		}
		if rng.IntN(8) == 0 {
			asks["unknown"] = resource.MustParse("1")
		}
		spec.Devices.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{Requests: asks}
	}
	return spec
}

// publish puts the slices together and, at times, spoils them.
func (b *poolBuilder) publish() []*resourcev1.ResourceSlice {
	all := slices.Concat(b.counters, b.devices)
	count := int64(len(all))
	var out []*resourcev1.ResourceSlice
	for _, s := range all {
		out = append(out, s.Of(count).Generation(2).ResourceSlice)
	}
	last := b.devices[len(b.devices)-1].ResourceSlice
	switch b.rng.IntN(16) {
	case 0: // A slice of an older generation is still there.
		old := last.DeepCopy()
		old.Name, old.Spec.Pool.Generation = "old-"+b.name, 1
		out = append(out, old)
	case 1: // Not everything is there yet.
		for _, s := range out {
			s.Spec.Pool.ResourceSliceCount++
		}
	case 2: // A name twice.
		last.Spec.Devices = append(last.Spec.Devices, *last.Spec.Devices[0].DeepCopy())
	case 3: // A counter set, and a counter, that nobody published.
		if c := last.Spec.Devices[0].ConsumesCounters; len(c) > 0 {
			c[0].CounterSet = "unknown"
		}
	case 4:
		for i := range last.Spec.Devices {
			if c := last.Spec.Devices[i].ConsumesCounters; len(c) > 0 {
				c[0].Counters["unknown"] = resourcev1.Counter{}
			}
		}
	case 5: // Devices that may stand beside some others only.
		if c := last.Spec.Devices[0].ConsumesCounters; len(c) > 0 {
			c[0].CompatibilityGroups = []string{"a"}
		}
	}
	return out
}

// occupyAtRandom lets strangers hold what the scheduler would give them, and now and then something that is gone.
func occupyAtRandom(t *testing.T, rng *rand.Rand, s *snapshot.Snapshot) {
	t.Helper()
	inv := cluster.New().World(s).Inventory
	for i := range rng.IntN(5) {
		all := inv.Class("all").Devices
		if len(all) == 0 {
			return
		}
		d := all[rng.IntN(len(all))]
		claim := dratest.Claim("x", fmt.Sprint("c", i), dratest.Result(d.Pool.Driver, d.Pool.Name, d.Name))
		got := newReferee(s).pinned(t, d, anyRequest(rng), nodesOf(s))
		if rng.IntN(8) == 0 {
			claim.Status.Allocation.Devices.Results[0].Device = "gone"
			if rng.IntN(2) == 0 {
				claim.Status.Allocation.NodeSelector = dratest.NewDevice("", "").On(d.Hosts...).NodeSelector
			}
		} else if got == nil {
			continue
		} else {
			claim.Status.Allocation.Devices.Results = got.Devices.Results
		}
		s.ResourceClaims = append(s.ResourceClaims, claim)
	}
}

func nodesOf(s *snapshot.Snapshot) map[string]*corev1.Node {
	byName := map[string]*corev1.Node{}
	for _, n := range s.Nodes {
		byName[n.Name] = n
	}
	return byName
}

// pinned is what the scheduler would allocate of one device, on whichever of its nodes; nil when it would not.
func (r *referee) pinned(t *testing.T, d *inventory.Device, spec *resourcev1.ResourceClaimSpec, nodes map[string]*corev1.Node) *resourcev1.AllocationResult {
	t.Helper()
	for _, h := range d.Hosts {
		if n := nodes[h]; n != nil {
			if result := r.allocate(t, d, spec, n); result != nil {
				return result
			}
		}
	}
	return nil
}

// TestFeasibleIsWhatTheSchedulerAllocates: on random worlds a device serves a gang exactly when the scheduler's allocator can
// allocate a claim pinned to it, but for the rules by which Berth is stricter.
func TestFeasibleIsWhatTheSchedulerAllocates(t *testing.T) {
	seeds := uint64(2000)
	if race.Enabled || testing.Short() {
		seeds = 200
	}
	free, taken, shares, more, rules := 0, 0, 0, 0, map[string]int{}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 21))
		s := anyHardware(rng)
		occupyAtRandom(t, rng, s)
		w, ref, nodes := cluster.New().World(s), newReferee(s), nodesOf(s)
		spec := anyRequest(rng)
		claim, _, refusal := dra.Claim(spec, "tpu", w.Inventory)
		if refusal != nil {
			t.Fatal(refusal)
		}
		tolerates := func(taint inventory.Taint) bool { return placement.Tolerated(taint, claim.Requests[0].Tolerations) }
		for _, p := range w.Inventory.Pools() {
			for _, d := range p.Devices {
				want := ref.pinned(t, d, spec, nodes)
				ours := feasible(w, d, claim)
				if n := stranger(rng, s, d); n != nil && ref.allocate(t, d, spec, n) != nil {
					t.Fatalf("seed %d: the scheduler allocates %s, which stands on %v, on %s", seed, d.ID(), d.Hosts, n.Name)
				}
				where := fmt.Sprintf("seed %d: %s on %v", seed, d.ID(), d.Hosts)
				switch {
				case ours == nil && want == nil:
					t.Fatalf("%s: the scheduler would not allocate it", where)
				case ours != nil && want != nil:
					broken := stricter(s, w.Inventory, d, tolerates)
					if len(broken) == 0 {
						t.Fatalf("%s: the scheduler would allocate it, and no rule is against it: %v", where, ours)
					}
					for _, r := range slices.Compact(broken) {
						rules[r]++
					}
				case want == nil:
					taken++
				default:
					free++
					if d.Shared {
						shares++
						if !w.Ledger.Free(d) {
							more++
						}
					}
					sameAllocation(t, where, s, d, spec, want)
				}
			}
		}
	}
	t.Logf("%d free, %d of them shares and %d not the first ones, %d taken, %v", free, shares, more, taken, rules)
	if shares < int(seeds)/10 || more < int(seeds)/50 {
		t.Errorf("only %d shares, of which %d are not the first ones", shares, more)
	}
	for _, r := range []string{vanishedDevices, upwardTaints, missingHosts, roomOnHosts, malformedPools} {
		if seeds == 2000 && rules[r] < 20 {
			t.Errorf("%q mattered %d times only", r, rules[r])
		}
	}
	if free < int(seeds) || taken < int(seeds) {
		t.Errorf("only %d free and %d taken devices were compared", free, taken)
	}
}

// stranger is a node on which the device does not stand, or nil.
func stranger(rng *rand.Rand, s *snapshot.Snapshot, d *inventory.Device) *corev1.Node {
	if len(s.Nodes) == 0 {
		return nil
	}
	if n := s.Nodes[rng.IntN(len(s.Nodes))]; !slices.Contains(d.Hosts, n.Name) {
		return n
	}
	return nil
}

// feasible says why a device cannot serve a gang with one pod on each of its hosts, or nil.
func feasible(w placement.World, d *inventory.Device, claim gang.Claim) *reason.Refusal {
	g := gang.Gang{PodSets: []gang.PodSet{{
		Name: "main", Count: len(d.Hosts), Claims: []gang.Claim{claim}, Requests: map[string]int64{"cpu": 4000, "pods": 1000},
	}}}
	chosen := placement.Device{Request: claim.Requests[0].Name, Pool: d.Pool, Name: d.Name}
	return placement.Recheck(g, placement.Decision{PodSets: []placement.PodSet{{
		Name: "main", Hosts: d.Hosts, Claims: []placement.Claim{{PodClaim: claim.PodClaim, PodsPerClaim: len(d.Hosts), Instances: []placement.Instance{{Devices: []placement.Device{chosen}}}}},
	}}}, w)
}

// sameAllocation compares what Berth would write with what the scheduler would, but for time and tolerations.
func sameAllocation(t *testing.T, where string, s *snapshot.Snapshot, d *inventory.Device, spec *resourcev1.ResourceClaimSpec, want *resourcev1.AllocationResult) {
	t.Helper()
	chosen := placement.Device{Request: "r", Pool: d.Pool, Generation: d.Generation, Name: d.Name, Hosts: d.Hosts, Share: d.Shared}
	if claim, _, _ := dra.Claim(spec, "tpu", cluster.New().World(s).Inventory); d.Shared {
		chosen.Capacity, _ = d.Share(claim.Requests[0].Capacity)
	}
	got, err := dra.Allocation(spec, "claim", placement.Instance{Devices: []placement.Device{chosen}}, s, metav1.Now())
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	want = want.DeepCopy()
	want.AllocationTimestamp = got.AllocationTimestamp
	for i := range want.Devices.Results {
		w, g := &want.Devices.Results[i], &got.Devices.Results[i]
		w.Tolerations, g.Tolerations = nil, nil
		if (w.ShareID == nil) != (g.ShareID == nil) || fmt.Sprint(written(w)) != fmt.Sprint(written(g)) {
			t.Fatalf("%s: share %v of %v, the scheduler writes share %v of %v", where, g.ShareID, written(g), w.ShareID, written(w))
		}
		w.ShareID, g.ShareID = nil, nil // It is a random number.
	}
	if diff := compare(want, got); diff != "" {
		t.Fatalf("%s: allocation differs from the scheduler's (-want +got):\n%s", where, diff)
	}
}

// written is what a result consumes, letter by letter.
func written(r *resourcev1.DeviceRequestAllocationResult) map[resourcev1.QualifiedName]string {
	out := map[resourcev1.QualifiedName]string{}
	for name, q := range r.ConsumedCapacity {
		out[name] = q.String()
	}
	return out
}
