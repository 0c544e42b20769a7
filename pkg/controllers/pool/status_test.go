package pool

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// site has one pool of four hosts with two pairs, a quad of both and a single of each host, all on counters.
func site() *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		AcceleratorPools: []*berth.AcceleratorPool{dratest.Pool(driver)},
		DeviceClasses: []*resourcev1.DeviceClass{
			dratest.ByTopology("single", driver, "1"), dratest.ByTopology("pair", driver, "2"), dratest.ByTopology("quad", driver, "4"),
			dratest.ByTopology("other", "other.example.com", "1"),
		},
	}
	hosts := []string{"h0", "h1", "h2", "h3"}
	devices := dratest.NewSlice("devices", driver, "pod-a").Of(2)
	for i, h := range hosts {
		s.Nodes = append(s.Nodes, dratest.Node(h))
		devices = devices.Device(dratest.NewDevice(fmt.Sprintf("single-%d", i), "1").On(h).Consumes("cs", "4", h))
	}
	for i := range 2 {
		devices = devices.Device(dratest.NewDevice(fmt.Sprintf("pair-%d", i), "2").On(hosts[2*i:2*i+2]...).Consumes("cs", "4", hosts[2*i:2*i+2]...))
	}
	devices = devices.Device(dratest.NewDevice("quad-0", "4").On(hosts...).Consumes("cs", "4", hosts...))
	counters := dratest.NewSlice("counters", driver, "pod-a").Of(2).Counters("cs", "4", hosts...)
	s.ResourceSlices = []*resourcev1.ResourceSlice{devices.ResourceSlice, counters.ResourceSlice}
	return s
}

func lookAt(s *snapshot.Snapshot) *view {
	return &view{snapshot: s, world: cluster.New().World(s), now: start, report: report(map[string]policy.Verdict{"/" + driver: policy.InForce})}
}

func condition(s berth.AcceleratorPoolStatus, kind string) string {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return "none"
}

func TestDescribe(t *testing.T) {
	s := site()
	s.AcceleratorPools[0].Generation = 5
	at := metav1.NewTime(start)
	want := berth.AcceleratorPoolStatus{
		ObservedGeneration: 5,
		Pools:              berth.PoolCounts{Total: 1, Usable: 1},
		Hosts:              berth.HostCounts{Total: 4, Usable: 4},
		Shapes: []berth.ShapeCounts{
			{Name: "quad", Hosts: 4, Devices: 1, Free: 1}, {Name: "pair", Hosts: 2, Devices: 2, Free: 2}, {Name: "single", Hosts: 1, Devices: 4, Free: 4},
		},
		Conditions: []metav1.Condition{
			{Type: "Ready", Status: "True", Reason: "Complete", Message: "1 pool is complete and valid", ObservedGeneration: 5, LastTransitionTime: at},
			{Type: "Fenced", Status: "True", Reason: "Fenced", Message: "writes by others are refused", ObservedGeneration: 5, LastTransitionTime: at},
		},
	}
	got := describe(s.AcceleratorPools[0], lookAt(s))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	// A later look that finds the same says the same, so nothing is written.
	s.AcceleratorPools[0].Status = got
	v := lookAt(s)
	v.now = start.Add(debounce)
	if again := describe(s.AcceleratorPools[0], v); !equality.Semantic.DeepEqual(got, again) {
		t.Error(cmp.Diff(got, again))
	}
}

func TestHostsAndShapes(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*snapshot.Snapshot)
		hosts  berth.HostCounts
		// free devices of quad, pair and single.
		free [3]int32
	}{
		{"all free", func(*snapshot.Snapshot) {}, berth.HostCounts{Total: 4, Usable: 4}, [3]int32{1, 2, 4}},
		{"a pair is taken", func(s *snapshot.Snapshot) {
			s.ResourceClaims = []*resourcev1.ResourceClaim{dratest.Claim("x", "a", dratest.Result(driver, "pod-a", "pair-0"))}
		}, berth.HostCounts{Total: 4, Usable: 4, Reserved: 2}, [3]int32{0, 1, 2}},
		{"a single is taken: the other host of its pair is stranded", func(s *snapshot.Snapshot) {
			s.ResourceClaims = []*resourcev1.ResourceClaim{dratest.Claim("x", "a", dratest.Result(driver, "pod-a", "single-3"))}
		}, berth.HostCounts{Total: 4, Usable: 4, Reserved: 1, Stranded: 1}, [3]int32{0, 1, 3}},
		{"a host is not Ready", func(s *snapshot.Snapshot) { s.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown }, berth.HostCounts{Total: 4, Usable: 3, Stranded: 1}, [3]int32{0, 1, 3}},
		{"a host does not exist", func(s *snapshot.Snapshot) { s.Nodes = s.Nodes[1:] }, berth.HostCounts{Total: 4, Usable: 3, Stranded: 1}, [3]int32{0, 1, 3}},
		{"a host is quarantined", func(s *snapshot.Snapshot) {
			job := kueuetest.NewJob("a", "pair", 2)
			res := kueuetest.NewReservation("a", kueuetest.NewWorkload(job), job, "pair-0", "h0", "h1")
			res.Status.Phase = berth.PhaseReleasing
			res.Status.Quarantine = []berth.QuarantinedShare{{Node: "h1", Driver: driver, Pool: "pod-a"}}
			s.Reservations = []*berth.GangReservation{res}
		}, berth.HostCounts{Total: 4, Usable: 4, Quarantined: 1, Stranded: 1}, [3]int32{0, 1, 3}},
		{"a reservation without claims yet", func(s *snapshot.Snapshot) {
			job := kueuetest.NewJob("a", "pair", 2)
			s.Reservations = []*berth.GangReservation{kueuetest.NewReservation("a", kueuetest.NewWorkload(job), job, "pair-1", "h2", "h3")}
		}, berth.HostCounts{Total: 4, Usable: 4, Reserved: 2}, [3]int32{0, 1, 2}},
		{"a device is tainted, and what contains it", func(s *snapshot.Snapshot) {
			d := s.ResourceSlices[0].Spec.Devices
			d[4].Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: "NoSchedule"}}
		}, berth.HostCounts{Total: 4, Usable: 4, Stranded: 2}, [3]int32{0, 1, 4}},
		{"the fence's own taint is none", func(s *snapshot.Snapshot) {
			s.DeviceTaintRules = []*resourcev1.DeviceTaintRule{{
				ObjectMeta: metav1.ObjectMeta{Name: "fence", Labels: map[string]string{policy.KeyFence: driver}},
				Spec: resourcev1.DeviceTaintRuleSpec{
					DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: ptr.To(driver)},
					Taint:          resourcev1.DeviceTaint{Key: policy.KeyFence, Effect: "NoSchedule"},
				},
			}}
		}, berth.HostCounts{Total: 4, Usable: 4}, [3]int32{1, 2, 4}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := site()
			row.change(s)
			got := describe(s.AcceleratorPools[0], lookAt(s))
			if diff := cmp.Diff(row.hosts, got.Hosts); diff != "" {
				t.Error(diff)
			}
			if free := [3]int32{got.Shapes[0].Free, got.Shapes[1].Free, got.Shapes[2].Free}; free != row.free {
				t.Errorf("free %v, want %v", free, row.free)
			}
		})
	}
}

// Where there is nothing larger than a host no host is stranded.
func TestSingleHostPoolsStrandNothing(t *testing.T) {
	s := site()
	s.ResourceSlices[0].Spec.Devices = s.ResourceSlices[0].Spec.Devices[:4]
	s.ResourceClaims = []*resourcev1.ResourceClaim{dratest.Claim("x", "a", dratest.Result(driver, "pod-a", "single-3"))}
	if diff := cmp.Diff(berth.HostCounts{Total: 4, Usable: 4, Reserved: 1}, describe(s.AcceleratorPools[0], lookAt(s)).Hosts); diff != "" {
		t.Error(diff)
	}
}

func TestReadyCondition(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*snapshot.Snapshot)
		want   string
		worst  []berth.PoolProblem
	}{
		{"no driver", func(s *snapshot.Snapshot) { s.ResourceSlices = nil }, "False NoPools: no ResourceSlice of the driver matches: is the driver running, and is its name spelled the same?", nil},
		{"incomplete", func(s *snapshot.Snapshot) { s.ResourceSlices = s.ResourceSlices[:1] }, "False PoolIncomplete: 1 of 1 pool cannot be used: pool tpu.example.com/pod-a: 1 of 2 slices of generation 1 are published", []berth.PoolProblem{
			{Name: "pod-a", Reason: "PoolIncomplete", Message: "pool tpu.example.com/pod-a: 1 of 2 slices of generation 1 are published"},
		}},
		{"two pools", func(s *snapshot.Snapshot) {
			s.ResourceSlices = append(s.ResourceSlices, dratest.NewSlice("b", driver, "pod-b").Device(dratest.NewDevice("d", "1").On("h0")).ResourceSlice)
		}, "True Complete: 2 pools are complete and valid", nil},
		{"too many slices", func(s *snapshot.Snapshot) {
			for _, slice := range s.ResourceSlices {
				slice.Spec.Pool.ResourceSliceCount = 1
			}
		}, "False PoolInvalid: 1 of 1 pool cannot be used: pool tpu.example.com/pod-a: 2 slices of generation 1 are published, more than the 1 that they say there are", []berth.PoolProblem{
			{Name: "pod-a", Reason: "PoolInvalid", Message: "pool tpu.example.com/pod-a: 2 slices of generation 1 are published, more than the 1 that they say there are"},
		}},
		{"no Nodes", func(s *snapshot.Snapshot) { s.Nodes = nil }, "True Complete: 1 pool is complete and valid; no host is usable: 4 HostMissing", nil},
		{"some Nodes", func(s *snapshot.Snapshot) {
			s.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown
			s.Nodes = s.Nodes[:2]
		}, "True Complete: 1 pool is complete and valid; 3 of 4 hosts are not usable: 2 HostMissing, 1 HostUnusable", nil},
		{"one Node", func(s *snapshot.Snapshot) { s.Nodes = s.Nodes[1:] }, "True Complete: 1 pool is complete and valid; 1 of 4 hosts is not usable: 1 HostMissing", nil},
		{"an older one manages everything", func(s *snapshot.Snapshot) { s.AcceleratorPools = append(s.AcceleratorPools, older("z")) },
			"False Overlap: nothing is left for this one: DRA pool pod-a is managed by AcceleratorPool z, which is older", nil},
		{"an older one manages a part", func(s *snapshot.Snapshot) {
			s.AcceleratorPools = append(s.AcceleratorPools, older("z", "pod-b"))
			s.ResourceSlices = append(s.ResourceSlices, dratest.NewSlice("b", driver, "pod-b").Device(dratest.NewDevice("d", "1").On("h0")).ResourceSlice)
		}, "True Complete: 1 pool is complete and valid; DRA pool pod-b is managed by AcceleratorPool z, which is older", nil},
		{"one of two", func(s *snapshot.Snapshot) {
			s.ResourceSlices = append(s.ResourceSlices, dratest.NewSlice("b", driver, "pod-b").Of(3).Device(dratest.NewDevice("d", "1").On("h0")).ResourceSlice)
		}, "False PoolIncomplete: 1 of 2 pools cannot be used: pool tpu.example.com/pod-b: 1 of 3 slices of generation 1 are published", []berth.PoolProblem{
			{Name: "pod-b", Reason: "PoolIncomplete", Message: "pool tpu.example.com/pod-b: 1 of 3 slices of generation 1 are published"},
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := site()
			row.change(s)
			got := describe(s.AcceleratorPools[0], lookAt(s))
			if c := condition(got, berth.PoolReady); c != row.want {
				t.Errorf("\n got %s\nwant %s", c, row.want)
			}
			if diff := cmp.Diff(row.worst, got.WorstPools); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestListsAreBounded(t *testing.T) {
	s := site()
	for i := range 40 {
		pool := fmt.Sprintf("pool-%02d", i)
		s.ResourceSlices = append(s.ResourceSlices, dratest.NewSlice(pool, driver, pool).Of(2).Device(dratest.NewDevice("d", "1").On("h0")).ResourceSlice)
		s.ResourceClaims = append(s.ResourceClaims, dratest.Claim("x", pool, dratest.Result(driver, pool, "d")))
	}
	got := describe(s.AcceleratorPools[0], lookAt(s))
	if len(got.WorstPools) != 16 || len(got.Holders) != 16 || got.Pools.Total != 41 || got.Pools.Usable != 1 {
		t.Errorf("%d worst, %d holders, %+v", len(got.WorstPools), len(got.Holders), got.Pools)
	}
}

func TestFencedCondition(t *testing.T) {
	holders := func(s *snapshot.Snapshot) {
		s.ResourceClaims = []*resourcev1.ResourceClaim{
			dratest.Claim("y", "b", dratest.Result(driver, "pod-a", "single-0"), dratest.Result(driver, "pod-a", "single-2")),
			dratest.Claim("x", "a", dratest.Result(driver, "pod-a", "single-1")), dratest.Claim("x", "z", dratest.Result("other", "pod-a", "d")),
		}
	}
	bears := func(name string, tol ...resourcev1.DeviceToleration) *resourcev1.ResourceClaimTemplate {
		t := kueuetest.NewTemplate(name)
		t.Spec.Spec.Devices.Requests[0].Exactly.Tolerations = tol
		return t
	}
	first := kueuetest.NewTemplate("first")
	first.Spec.Spec.Devices.Requests[0] = resourcev1.DeviceRequest{Name: "r", FirstAvailable: []resourcev1.DeviceSubRequest{{
		Name: "s", Tolerations: []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}},
	}}}
	for _, row := range []struct {
		name   string
		change func(*snapshot.Snapshot, *view)
		want   string
	}{
		{"fenced", func(*snapshot.Snapshot, *view) {}, "True Fenced: writes by others are refused"},
		{"not in force", func(_ *snapshot.Snapshot, v *view) {
			v.report = report(map[string]policy.Verdict{"/" + driver: policy.Absent})
		}, "False NotInForce: nothing is reserved here until the fence is in force: said"},
		{"not tried", func(_ *snapshot.Snapshot, v *view) { v.report = report(nil) }, "False NotInForce: nothing is reserved here until the fence is in force: it has not been tried yet"},
		{"holders from before", func(s *snapshot.Snapshot, _ *view) { holders(s) }, "True Fenced: writes by others are refused; claims of others hold devices here from before: x/a, y/b"},
		{"tolerations", func(s *snapshot.Snapshot, _ *view) {
			s.ResourceClaimTemplates = []*resourcev1.ResourceClaimTemplate{
				first, bears("key", resourcev1.DeviceToleration{Key: policy.KeyFence, Operator: resourcev1.DeviceTolerationOpExists}),
				bears("all", resourcev1.DeviceToleration{Operator: resourcev1.DeviceTolerationOpExists}),
				bears("other", resourcev1.DeviceToleration{Key: "other", Operator: resourcev1.DeviceTolerationOpExists}), bears("none"),
			}
		}, "True Fenced: writes by others are refused; templates that tolerate the scheduler's taint and will fail at the policy instead: ml/all, ml/first, ml/key"},
		{"overdrawn", func(s *snapshot.Snapshot, _ *view) {
			s.ResourceClaims = []*resourcev1.ResourceClaim{dratest.Claim("x", "a", dratest.Result(driver, "pod-a", "pair-0")), dratest.Claim("x", "b", dratest.Result(driver, "pod-a", "single-0"))}
		}, "True Overdrawn: writes by others are refused; claims of others hold devices here from before: x/a, x/b; more is taken than there is: counter cs/h0 of pool pod-a (x/a, x/b)"},
		{"observe", func(s *snapshot.Snapshot, _ *view) { s.AcceleratorPools[0].Spec.Fence = berth.FenceObserve; holders(s) }, "False Observe: others may allocate from these pools: their claims are counted, nothing keeps them away"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := site()
			row.change(s, &view{})
			v := lookAt(s)
			row.change(s, v)
			if got := condition(describe(s.AcceleratorPools[0], v), berth.PoolFenced); got != row.want {
				t.Errorf("\n got %s\nwant %s", got, row.want)
			}
		})
	}
}

func TestHolders(t *testing.T) {
	s := site()
	ours := dratest.Claim("ml", "berth.a-0", dratest.Result(driver, "pod-a", "pair-1"))
	ours.Annotations = map[string]string{berth.AnnotationReservationUID: "uid"}
	s.ResourceClaims = []*resourcev1.ResourceClaim{ours, dratest.Claim("x", "a", dratest.Result(driver, "pod-a", "single-1"))}
	want := []berth.ForeignHolder{{Namespace: "x", Name: "a", Device: "pod-a/single-1"}}
	if diff := cmp.Diff(want, describe(s.AcceleratorPools[0], lookAt(s)).Holders); diff != "" {
		t.Error(diff)
	}
}

// older is an AcceleratorPool from before the site's own, for all DRA pools or for some.
func older(name string, pools ...string) *berth.AcceleratorPool {
	p := dratest.Pool(driver)
	p.Name, p.CreationTimestamp = name, metav1.NewTime(time.Time{}.Add(-time.Hour))
	if len(pools) > 0 {
		p.Spec.PoolSelector = &berth.PoolSelector{Names: pools}
	}
	return p
}

// A second AcceleratorPool for the same DRA pool changes nothing for the first, whatever it is called.
func TestTheFirstKeepsItsCounts(t *testing.T) {
	s := site()
	s.AcceleratorPools[0].CreationTimestamp = metav1.NewTime(start)
	s.ResourceClaims = []*resourcev1.ResourceClaim{dratest.Claim("x", "a", dratest.Result(driver, "pod-a", "pair-0"))}
	alone := describe(s.AcceleratorPools[0], lookAt(s))
	second := dratest.Pool(driver)
	second.Name, second.CreationTimestamp, second.Spec.Fence = "a-second", metav1.NewTime(start.Add(time.Minute)), berth.FenceObserve
	s.AcceleratorPools = append(s.AcceleratorPools, second)
	v := lookAt(s)
	if diff := cmp.Diff(alone, describe(s.AcceleratorPools[0], v)); diff != "" {
		t.Error(diff)
	}
	got := describe(second, v)
	if c, want := condition(got, berth.PoolReady), "False Overlap: nothing is left for this one: DRA pool pod-a is managed by AcceleratorPool "+driver+", which is older"; c != want {
		t.Errorf("\n got %s\nwant %s", c, want)
	}
	if got.Pools.Total != 0 || got.Hosts != (berth.HostCounts{}) || len(got.Shapes)+len(got.Holders) > 0 {
		t.Errorf("it counts what is not its own: %+v", got)
	}
}
