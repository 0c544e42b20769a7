package cluster_test

import (
	"fmt"
	"math/rand/v2"
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
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/snapshot"
	"github.com/berth-dev/berth/test/race"
)

// damage is what drivers, users and old API servers can leave behind. Each changes one thing.
var damage = []func(*rand.Rand, *snapshot.Snapshot){
	func(r *rand.Rand, s *snapshot.Snapshot) { s.Nodes = s.Nodes[:r.IntN(len(s.Nodes)+1)] },
	func(r *rand.Rand, s *snapshot.Snapshot) {
		s.ResourceSlices = s.ResourceSlices[:r.IntN(len(s.ResourceSlices)+1)]
	},
	func(r *rand.Rand, s *snapshot.Snapshot) {
		s.DeviceClasses = s.DeviceClasses[:r.IntN(len(s.DeviceClasses)+1)]
	},
	func(_ *rand.Rand, s *snapshot.Snapshot) {
		for _, sl := range s.ResourceSlices {
			sl.Spec.SharedCounters = nil
		}
	},
	func(r *rand.Rand, s *snapshot.Snapshot) {
		eachDevice(s, r, func(d *resourcev1.Device) { d.ConsumesCounters = nil })
	},
	func(r *rand.Rand, s *snapshot.Snapshot) {
		eachDevice(s, r, func(d *resourcev1.Device) { d.NodeSelector, d.Attributes = nil, nil })
	},
	func(r *rand.Rand, s *snapshot.Snapshot) {
		eachDevice(s, r, func(d *resourcev1.Device) { d.NodeSelector = &corev1.NodeSelector{} })
	},
	func(r *rand.Rand, s *snapshot.Snapshot) {
		eachDevice(s, r, func(d *resourcev1.Device) { d.NodeSelector, d.AllNodes = nil, ptr(true) })
	},
	func(r *rand.Rand, s *snapshot.Snapshot) {
		eachDevice(s, r, func(d *resourcev1.Device) { d.Name = "same" })
	},
	func(r *rand.Rand, s *snapshot.Snapshot) {
		eachDevice(s, r, func(d *resourcev1.Device) {
			for _, c := range d.ConsumesCounters {
				for name := range c.Counters {
					c.Counters[name] = resourcev1.Counter{Value: resource.MustParse([]string{"-1", "0", "9Ei", "1m"}[r.IntN(4)])}
				}
			}
		})
	},
	func(_ *rand.Rand, s *snapshot.Snapshot) {
		for _, sl := range s.ResourceSlices {
			sl.Spec.PerDeviceNodeSelection = nil
		}
	},
	func(_ *rand.Rand, s *snapshot.Snapshot) {
		s.DeviceClasses = append(s.DeviceClasses, &resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{}}}})
	},
	func(r *rand.Rand, s *snapshot.Snapshot) {
		s.Nodes = append(s.Nodes, &corev1.Node{}, dratest.Node("node-1"), &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{}}}})
	},
	func(_ *rand.Rand, s *snapshot.Snapshot) {
		s.Pods = append(s.Pods, &corev1.Pod{}, pod("p", "nowhere", "-1"))
	},
	func(_ *rand.Rand, s *snapshot.Snapshot) {
		c := dratest.Claim("x", "berth.x", dratest.Result(driver, pool, "tpu-4x4-00"), dratest.Result(driver, "no-pool", ""))
		c.Annotations = map[string]string{berth.AnnotationReservationUID: "u", berth.AnnotationDevices: "{]"}
		s.ResourceClaims = append(s.ResourceClaims, c, &resourcev1.ResourceClaim{}, dratest.Claim("", ""))
	},
	func(_ *rand.Rand, s *snapshot.Snapshot) {
		r := reserve("x", placement.Decision{})
		r.Spec.PodSets = []berth.ReservedPodSet{{Hosts: []string{"", "node-1"}, Claims: []berth.ReservedClaim{{Devices: make([]berth.ReservedDevice, 2)}}}}
		s.Reservations = append(s.Reservations, r, &berth.GangReservation{})
	},
	func(_ *rand.Rand, s *snapshot.Snapshot) {
		s.DeviceTaintRules = append(s.DeviceTaintRules, &resourcev1.DeviceTaintRule{}, &resourcev1.DeviceTaintRule{Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1.DeviceTaintSelector{Device: ptr("")}, Taint: resourcev1.DeviceTaint{Effect: "NoExecute"},
		}})
	},
}

func eachDevice(s *snapshot.Snapshot, r *rand.Rand, change func(*resourcev1.Device)) {
	for _, sl := range s.ResourceSlices {
		for i := range sl.Spec.Devices {
			if r.IntN(3) == 0 {
				change(&sl.Spec.Devices[i])
			}
		}
	}
}

// Invariant 9: any input gets a reason, nothing panics, and nothing is overdrawn that was not overdrawn before.
func TestAnything(t *testing.T) {
	codes := map[reason.Code]int{}
	seeds := 100
	if race.Enabled {
		seeds = 25
	}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 4))
		s := tpu(t)
		for range 1 + rng.IntN(3) {
			damage[rng.IntN(len(damage))](rng, s)
		}
		c := cluster.New()
		w := c.World(s)
		before := len(w.Ledger.Overdrawn())
		for _, class := range []string{"tpu-2x2", "tpu-4x4", "tpu-8x8", ""} {
			claim, _, _ := dra.Claim(dratest.Request(class, int64(rng.IntN(3))), "c", w.Inventory)
			g := gang.Gang{PodSets: []gang.PodSet{{Name: "a", Count: rng.IntN(17), Claims: []gang.Claim{claim}, Slices: rng.IntN(3)}}}
			d := placement.FirstFit{Budget: 2000}.Place(g, w)
			if d.Refusal != nil {
				codes[d.Refusal.Code]++
				if d.Refusal.Message == "" || len(d.Refusal.Message) > 1024 {
					t.Fatalf("seed %d: message %q", seed, d.Refusal.Message)
				}
				continue
			}
			codes["fits"]++
			after := *s
			after.Reservations = append(after.Reservations[:len(after.Reservations):len(after.Reservations)], reserve("new", d))
			if over := c.World(&after).Ledger.Overdrawn(); len(over) > before {
				t.Fatalf("seed %d: overdrawn %v", seed, over)
			}
		}
		for _, bad := range []*resourcev1.ResourceClaimSpec{{Devices: resourcev1.DeviceClaim{Requests: make([]resourcev1.DeviceRequest, 1)}}, {}} {
			_, _, _ = dra.Claim(bad, "c", w.Inventory) // must not panic; what it says is tested elsewhere
			if _, err := dra.Allocation(bad, "claim", placement.Instance{Devices: make([]placement.Device, 1)}, s, metav1.Now()); err == nil {
				t.Fatal("allocated nothing")
			}
		}
	}
	if len(codes) < 8 {
		t.Errorf("too little variety: %s", fmt.Sprint(codes))
	}
	t.Log(codes)
}
