package kueue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// readable is Workloads with what they refer to.
func readable() *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		AcceleratorPools:       []*berth.AcceleratorPool{dratest.Pool(driver)},
		DeviceClasses:          []*resourcev1.DeviceClass{dratest.ByTopology("tpu-4x4", driver, "4x4"), dratest.ByTopology("tpu-2x2", driver, "2x2")},
		ResourceFlavors:        []*kueue.ResourceFlavor{kueuetest.NewFlavor(kueuetest.Flavor)},
		ResourceClaimTemplates: []*resourcev1.ResourceClaimTemplate{kueuetest.NewTemplate("tpu-4x4"), kueuetest.NewTemplate("tpu-2x2")},
		Nodes:                  []*corev1.Node{dratest.Node("node-1"), dratest.Node("node-2")},
		ResourceSlices: []*resourcev1.ResourceSlice{
			dratest.NewSlice("s", driver, "pod-a").Device(dratest.NewDevice("d", "4x4").On("node-1", "node-2")).Device(dratest.NewDevice("e", "2x2").On("node-1")).ResourceSlice,
		},
	}
	for i := range 6 {
		job := kueuetest.NewJob(fmt.Sprint("j", i), []string{"tpu-4x4", "tpu-2x2", "missing"}[i%3], int32(1+i))
		if i == 5 {
			job.Spec.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "own", ResourceClaimName: new("claim")}}
		}
		s.Jobs = append(s.Jobs, job)
		s.Workloads = append(s.Workloads, kueuetest.NewWorkload(job).QuotaReserved(kueuetest.Start).Workload)
	}
	return s
}

// another puts a changed copy in the place of an object, as an informer does.
func another[T interface{ DeepCopy() T }](rng *rand.Rand, list *[]T, change func(T)) {
	if len(*list) == 0 {
		return
	}
	i := rng.IntN(len(*list))
	o := (*list)[i].DeepCopy()
	change(o)
	*list = slices.Clone(*list)
	(*list)[i] = o
}

var upsets = []func(*rand.Rand, *snapshot.Snapshot){
	func(rng *rand.Rand, s *snapshot.Snapshot) {
		another(rng, &s.Workloads, func(w *kueue.Workload) { w.Spec.PodSets[0].Count = int32(1 + rng.IntN(4)) })
	},
	func(rng *rand.Rand, s *snapshot.Snapshot) {
		another(rng, &s.Workloads, func(w *kueue.Workload) {
			w.Status.Conditions[len(w.Status.Conditions)-1].LastTransitionTime = metav1.NewTime(kueuetest.Start.Add(time.Duration(rng.IntN(9)) * time.Minute))
		})
	},
	func(rng *rand.Rand, s *snapshot.Snapshot) {
		another(rng, &s.Workloads, func(w *kueue.Workload) {
			w.Status.AdmissionChecks[0].RetryCount = new(int32(rng.IntN(3)))
		})
	},
	func(rng *rand.Rand, s *snapshot.Snapshot) {
		s.Workloads = slices.Delete(slices.Clone(s.Workloads), 0, rng.IntN(2))
	},
	func(rng *rand.Rand, s *snapshot.Snapshot) {
		another(rng, &s.ResourceClaimTemplates, func(t *resourcev1.ResourceClaimTemplate) {
			t.CreationTimestamp = metav1.NewTime(kueuetest.Start.Add(time.Duration(rng.IntN(9)-4) * time.Minute))
			t.Spec.Spec.Devices.Requests[0].Exactly.Count = int64(1 + rng.IntN(2))
		})
	},
	func(rng *rand.Rand, s *snapshot.Snapshot) {
		if rng.IntN(2) == 0 {
			s.ResourceClaimTemplates = slices.Clone(s.ResourceClaimTemplates[:rng.IntN(len(s.ResourceClaimTemplates)+1)])
		} else {
			s.ResourceClaimTemplates = append(slices.Clone(s.ResourceClaimTemplates), kueuetest.NewTemplate([]string{"tpu-4x4", "tpu-2x2", "missing"}[rng.IntN(3)]))
		}
	},
	func(rng *rand.Rand, s *snapshot.Snapshot) {
		claim := dratest.Claim(kueuetest.Namespace, "claim")
		claim.Spec = *dratest.Request([]string{"tpu-4x4", "other"}[rng.IntN(2)], 1)
		s.ResourceClaims = []*resourcev1.ResourceClaim{claim}[:rng.IntN(2)]
	},
	func(rng *rand.Rand, s *snapshot.Snapshot) {
		another(rng, &s.ResourceFlavors, func(f *kueue.ResourceFlavor) {
			f.Spec.NodeLabels = map[string]string{"zone": fmt.Sprint(rng.IntN(2))}
		})
	},
	func(rng *rand.Rand, s *snapshot.Snapshot) {
		another(rng, &s.Jobs, func(j *batchv1.Job) {
			j.Annotations = map[string]string{berth.AnnotationSlices: fmt.Sprint(1 + rng.IntN(2))}
		})
	},
	func(rng *rand.Rand, s *snapshot.Snapshot) {
		another(rng, &s.Nodes, func(n *corev1.Node) { n.Labels["zone"] = fmt.Sprint(rng.IntN(2)) })
	},
	func(rng *rand.Rand, s *snapshot.Snapshot) {
		another(rng, &s.Nodes, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}}[:rng.IntN(2)]
		})
	},
	func(rng *rand.Rand, s *snapshot.Snapshot) { // A heartbeat.
		another(rng, &s.Nodes, func(n *corev1.Node) {
			n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(kueuetest.Start.Add(time.Duration(rng.IntN(99)) * time.Second))
		})
	},
	func(rng *rand.Rand, s *snapshot.Snapshot) {
		f := &berth.CapacityFold{ObjectMeta: metav1.ObjectMeta{Name: "f", Generation: int64(rng.IntN(1000))}}
		f.Spec = berth.CapacityFoldSpec{
			DeviceClasses: []string{"tpu-4x4"}, Flavor: []string{kueuetest.Flavor, "other"}[rng.IntN(2)], Resource: "berth.dev/shares",
			Targets: []berth.FoldTarget{{Kind: berth.FoldClusterQueue, Name: "q"}},
		}
		s.CapacityFolds = []*berth.CapacityFold{f}[:rng.IntN(2)]
	},
	func(rng *rand.Rand, s *snapshot.Snapshot) {
		s.AcceleratorPools = []*berth.AcceleratorPool{dratest.Pool(driver)}[:rng.IntN(2)]
	},
}

// What is kept is what Read says now, whatever became another in between.
func TestReadingsSayWhatReadSays(t *testing.T) {
	fits, refused, epochs := 0, 0, map[string]bool{}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 61))
		s, kept := readable(), &adaptkueue.Readings{}
		var folds adaptkueue.FoldCompiler
		eligible, hardware := nodes.NewEligibility(nil), dra.NewCache().Read(s).Inventory
		for step := range 40 {
			pools := s.AcceleratorPools
			for range rng.IntN(3) {
				upsets[rng.IntN(len(upsets))](rng, s)
			}
			if len(pools) != len(s.AcceleratorPools) {
				hardware = dra.NewCache().Read(s).Inventory
			}
			kept.Sweep()
			eligible = eligible.For(s.Nodes)
			in := adaptkueue.NewLookup(s, hardware, folds.Compile(s.CapacityFolds, hardware))
			plain := in
			in.Nodes = eligible
			for _, wl := range s.Workloads {
				if rng.IntN(4) == 0 {
					continue // It wants no answer in this pass.
				}
				got, why := kept.Read(wl, in)
				want, wantWhy := adaptkueue.Read(wl, plain)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d, step %d, %s: (-read now +kept)\n%s", seed, step, wl.Name, diff)
				}
				if diff := cmp.Diff(wantWhy, why); diff != "" {
					t.Fatalf("seed %d, step %d, %s: (-refused now +kept)\n%s", seed, step, wl.Name, diff)
				}
				check := wl.Status.AdmissionChecks[0].Name
				epoch := kept.Epoch(wl, check)
				if epoch != adaptkueue.Epoch(wl, check) {
					t.Fatalf("seed %d, step %d, %s: epoch %s, kept %s", seed, step, wl.Name, adaptkueue.Epoch(wl, check), epoch)
				}
				epochs[epoch] = true
				if why != nil {
					refused++
				} else if got.Managed {
					fits++
				}
			}
		}
	}
	if fits < 500 || refused < 500 || len(epochs) < 50 {
		t.Errorf("too little variety: %d requests, %d refusals, %d epochs", fits, refused, len(epochs))
	}
}

// A Workload of which nothing is another costs no reading, and one that is gone is forgotten.
func TestReadingsReadOnce(t *testing.T) {
	s, kept := readable(), &adaptkueue.Readings{}
	in := adaptkueue.NewLookup(s, dra.NewCache().Read(s).Inventory, nil)
	wl := s.Workloads[0]
	read := func() {
		if req, why := kept.Read(wl, in); why != nil || !req.Managed {
			t.Fatal(why)
		}
	}
	if allocs := testing.AllocsPerRun(20, read); allocs != 0 {
		t.Errorf("%v allocations for what is kept", allocs)
	}
	for pass, want := range []int{1, 0} {
		if kept.Sweep(); kept.Len() != want {
			t.Errorf("sweep %d: %d are kept, want %d", pass, kept.Len(), want)
		}
	}
}
