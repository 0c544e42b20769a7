package cluster_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// Rules by which Berth is stricter than the scheduler. Each has a test of its own below.
const (
	vanishedDevices = "a device that is gone keeps what it had"
	upwardTaints    = "a taint on a part is one on the whole"
	missingHosts    = "every host must exist"
	roomOnHosts     = "every host must take a pod"
	malformedPools  = "nothing is given out of a malformed pool"
)

// stricter names the rules that keep a device from a gang although the scheduler would allocate it. It goes by the snapshot.
func stricter(s *snapshot.Snapshot, inv *inventory.Inventory, d *inventory.Device, tolerates func(inventory.Taint) bool) []string {
	var rules []string
	nodes := nodesOf(s)
	for _, c := range s.ResourceClaims {
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.Driver != d.Pool.Driver || r.Pool != d.Pool.Name || inv.Device(d.Pool, r.Device) != nil {
				continue
			}
			overlaps := c.Status.Allocation.NodeSelector == nil
			if !overlaps {
				values := c.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Values
				overlaps = slices.ContainsFunc(d.Hosts, func(h string) bool { return slices.Contains(values, h) })
				overlaps = overlaps || !slices.ContainsFunc(values, func(h string) bool { return nodes[h] != nil })
			}
			if overlaps {
				rules = append(rules, vanishedDevices)
			}
		}
	}
	p := inv.Pool(d.Pool)
	for _, part := range p.Devices {
		own := slices.ContainsFunc(ownTaints(s, part), func(t inventory.Taint) bool { return !tolerates(t) })
		if part != d && own && lies(p, part, d) {
			rules = append(rules, upwardTaints)
		}
	}
	for _, h := range d.Hosts {
		switch n := nodes[h]; {
		case n == nil:
			rules = append(rules, missingHosts)
		case n.Spec.Unschedulable || slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == h }):
			rules = append(rules, roomOnHosts)
		}
	}
	if p.Problem != nil && (p.Problem.Code == reason.GateOff || p.Problem.Code == reason.PoolInvalid) {
		rules = append(rules, malformedPools)
	}
	return rules
}

// ownTaints are those that the driver published on the device itself.
func ownTaints(s *snapshot.Snapshot, d *inventory.Device) []inventory.Taint {
	var out []inventory.Taint
	for _, sl := range s.ResourceSlices {
		for _, dev := range sl.Spec.Devices {
			if sl.Spec.Pool.Name == d.Pool.Name && sl.Spec.Pool.Generation == d.Generation && dev.Name == d.Name {
				for _, t := range dev.Taints {
					if t.Effect != "None" {
						out = append(out, inventory.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
					}
				}
			}
		}
	}
	return out
}

// lies reports whether all of part is in whole, and the two cannot be held beside each other. A whole on more hosts may
// consume a coarser counter in place of one of the part's.
func lies(p *inventory.Pool, part, whole *inventory.Device) bool {
	for _, h := range part.Hosts {
		if !slices.Contains(whole.Hosts, h) {
			return false
		}
	}
	excludes := false
	for _, c := range part.Charge {
		i := slices.IndexFunc(whole.Charge, func(w inventory.Charge) bool { return w.CounterSet == c.CounterSet && w.Counter == c.Counter })
		if i < 0 && len(part.Hosts) > 0 && len(whole.Hosts) > len(part.Hosts) {
			continue
		}
		if i < 0 || whole.Charge[i].Milli < c.Milli {
			return false
		}
		at, _ := p.CounterIndex(c.CounterSet, c.Counter)
		excludes = excludes || whole.Charge[i].Milli+c.Milli > p.Counters[at].Milli
	}
	return excludes
}

// halves is a device of two hosts and its halves, on a counter each.
func halves() *snapshot.Snapshot {
	s := &snapshot.Snapshot{AcceleratorPools: pools(), DeviceClasses: []*resourcev1.DeviceClass{dratest.Class("all", "true")}}
	s.Nodes = []*corev1.Node{dratest.Node("node-0"), dratest.Node("node-1")}
	s.ResourceSlices = []*resourcev1.ResourceSlice{
		dratest.NewSlice("counters", driver, pool).Of(2).Counters("cs", "4", "h0", "h1").ResourceSlice,
		dratest.NewSlice("devices", driver, pool).Of(2).
			Device(dratest.NewDevice("whole", "2").On("node-0", "node-1").Consumes("cs", "4", "h0", "h1")).
			Device(dratest.NewDevice("half-0", "1").On("node-0").Consumes("cs", "4", "h0")).
			Device(dratest.NewDevice("half-1", "1").On("node-1").Consumes("cs", "4", "h1")).ResourceSlice,
	}
	return s
}

// verdict is what the scheduler would do with a device, and why Berth does not.
func verdict(t *testing.T, s *snapshot.Snapshot, device string) (allocates bool, why string) {
	t.Helper()
	w := cluster.New().World(s)
	spec := dratest.Request("all", 1)
	claim, _, refusal := dra.Claim(spec, "tpu", w.Inventory)
	if refusal != nil {
		t.Fatal(refusal)
	}
	d := w.Inventory.Device(inventory.PoolID{Driver: driver, Name: pool}, device)
	if r := feasible(w, d, claim); r != nil {
		why = r.Error()
	}
	return newReferee(s).pinned(t, d, spec, nodesOf(s)) != nil, why
}

// expect holds the verdicts on the three devices against what Berth says; the scheduler would allocate each.
func expect(t *testing.T, s *snapshot.Snapshot, want map[string]string) {
	t.Helper()
	for _, device := range []string{"whole", "half-0", "half-1"} {
		allocates, why := verdict(t, s, device)
		if !allocates || why != want[device] {
			t.Errorf("%s: the scheduler allocates it: %v\n got %q\nwant %q", device, allocates, why, want[device])
		}
	}
}

func TestBothAllocateWhatIsFree(t *testing.T) { expect(t, halves(), nil) }

// The scheduler books a device that is published no more at nothing, and gives its hardware out again.
func TestStricterVanishedDevices(t *testing.T) {
	s := halves()
	claim := dratest.Claim("x", "old", dratest.Result(driver, pool, "half-of-another-name"))
	claim.Status.Allocation.NodeSelector = dratest.NewDevice("", "").On("node-0").NodeSelector
	s.ResourceClaims = []*resourcev1.ResourceClaim{claim}
	expect(t, s, map[string]string{
		"whole": "SliceLost: device pod-a/whole: held by x/old", "half-0": "SliceLost: device pod-a/half-0: held by x/old",
	})
	// It says nowhere where it stands: then nothing of the pool is given out.
	claim.Status.Allocation.NodeSelector = nil
	expect(t, s, map[string]string{
		"whole": "SliceLost: device pod-a/whole: held by x/old", "half-0": "SliceLost: device pod-a/half-0: held by x/old", "half-1": "SliceLost: device pod-a/half-1: held by x/old",
	})
}

// The scheduler looks at a device's own taints only, and would put a gang on a slice of which a part is broken.
func TestStricterUpwardTaints(t *testing.T) {
	s := halves()
	s.ResourceSlices[1].Spec.Devices[2].Taints = []resourcev1.DeviceTaint{{Key: "ecc", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	for device, want := range map[string]string{"whole": "SliceLost: device pod-a/whole: pod-a/whole ecc:NoSchedule", "half-0": ""} {
		if allocates, why := verdict(t, s, device); !allocates || why != want {
			t.Errorf("%s: the scheduler allocates it: %v, %q", device, allocates, why)
		}
	}
	if allocates, why := verdict(t, s, "half-1"); allocates || why != "SliceLost: device pod-a/half-1: pod-a/half-1 ecc:NoSchedule" {
		t.Errorf("half-1: the scheduler allocates it: %v, %q", allocates, why)
	}
}

// The scheduler asks whether the one node that it looks at matches.
func TestStricterMissingHosts(t *testing.T) {
	s := halves()
	s.Nodes = s.Nodes[:1]
	for device, want := range map[string]string{"whole": "SliceLost: device pod-a/whole: host node-1 does not exist", "half-0": ""} {
		if allocates, why := verdict(t, s, device); !allocates || why != want {
			t.Errorf("%s: the scheduler allocates it: %v, %q", device, allocates, why)
		}
	}
}

// The scheduler's allocator leaves room and readiness to others, one node at a time.
func TestStricterRoomOnHosts(t *testing.T) {
	s := halves()
	s.Pods = []*corev1.Pod{pod("x", "node-1", "30")}
	expect(t, s, map[string]string{
		"whole": "SliceLost: host node-1 needs 4 cpu, has 2 (pod ml/x)", "half-1": "SliceLost: host node-1 needs 4 cpu, has 2 (pod ml/x)",
	})
	s.Pods = nil
	s.Nodes[1].Spec.Unschedulable = true
	expect(t, s, map[string]string{
		"whole": "SliceLost: device pod-a/whole: host node-1 is cordoned", "half-1": "SliceLost: device pod-a/half-1: host node-1 is cordoned",
	})
}

// The scheduler judges the slices that the one node sees; Berth the pool.
func TestStricterMalformedPools(t *testing.T) {
	s := halves()
	s.ResourceSlices = append(s.ResourceSlices, dratest.NewSlice("more", driver, pool).Of(3).
		Device(dratest.NewDevice("half-1", "1").On("node-1").Consumes("cs", "4", "h1")).ResourceSlice)
	for _, sl := range s.ResourceSlices {
		sl.Spec.Pool.ResourceSliceCount = 3
	}
	if allocates, why := verdict(t, s, "half-0"); !allocates || why != "SliceLost: pool tpu.example.com/pod-a: device half-1 is in slice devices and in slice more" {
		t.Errorf("the scheduler allocates it: %v, %q", allocates, why)
	}
	// An API server without partitionable devices drops the counters and refuses what only they could tell apart.
	s = halves()
	s.ResourceSlices = s.ResourceSlices[1:]
	for i := range s.ResourceSlices[0].Spec.Devices {
		s.ResourceSlices[0].Spec.Devices[i].ConsumesCounters = nil
	}
	s.ResourceSlices[0].Spec.Pool.ResourceSliceCount = 1
	if allocates, why := verdict(t, s, "half-0"); !allocates || why != "SliceLost: pool tpu.example.com/pod-a: devices half-0 and whole share host node-0 but no counter; "+
		"the API server drops counters when its feature gate DRAPartitionableDevices is off" {
		t.Errorf("the scheduler allocates it: %v, %q", allocates, why)
	}
}
