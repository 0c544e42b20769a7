package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/snapshot"
	"github.com/berth-dev/berth/test/race"
)

// TestSharesAreWhatTheSchedulerAllocates fills devices that may be allocated several times at once: every share that Berth
// finds the scheduler finds, with the same amounts to the letter, and none beside them.
func TestSharesAreWhatTheSchedulerAllocates(t *testing.T) {
	given, refused, rounded := 0, 0, 0
	seeds := 250
	if race.Enabled {
		seeds = 40
	}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 22))
		s := &snapshot.Snapshot{AcceleratorPools: pools(), DeviceClasses: []*resourcev1.DeviceClass{dratest.Class("all", "true")}}
		s.Nodes = []*corev1.Node{dratest.Node("node-0")}
		b := &poolBuilder{rng: rng, name: "pool", hosts: []string{"node-0"}}
		b.shared()
		for _, sl := range append(b.counters, b.devices...) {
			s.ResourceSlices = append(s.ResourceSlices, sl.Of(int64(len(b.counters)+len(b.devices))).ResourceSlice)
		}
		for i := range 8 {
			w, ref, spec := cluster.New().World(s), newReferee(s), anyRequest(rng)
			claim, _, refusal := dra.Claim(spec, "tpu", w.Inventory)
			if refusal != nil {
				t.Fatal(refusal)
			}
			var next []resourcev1.DeviceRequestAllocationResult
			for _, d := range w.Inventory.Class("all").Devices {
				where := fmt.Sprintf("seed %d, claim %d: %s for %v", seed, i, d.Name, claim.Requests[0].Capacity)
				want, why := ref.pinned(t, d, spec, nodesOf(s)), feasible(w, d, claim)
				if len(d.Taints) == 0 && (want != nil) != (why == nil) {
					t.Fatalf("%s: the scheduler allocates %v, and Berth says %v", where, want, why)
				}
				if want == nil || why != nil {
					refused++
					continue
				}
				given++
				sameAllocation(t, where, s, d, spec, want)
				next = want.Devices.Results
				for _, a := range claim.Requests[0].Capacity {
					if q, has := next[0].ConsumedCapacity[resourcev1.QualifiedName(a.Name)]; has && q.MilliValue() != a.Milli {
						rounded++
					}
				}
			}
			if next != nil {
				s.ResourceClaims = append(s.ResourceClaims, dratest.Claim("x", fmt.Sprint("c", i), next...))
			}
			if over := cluster.New().World(s).Ledger.Overdrawn(); len(over) > 0 {
				t.Fatalf("seed %d, claim %d: overdrawn %v", seed, i, over)
			}
		}
	}
	t.Logf("%d given, %d of them rounded up, %d refused", given, rounded, refused)
	if given < 4*seeds || refused < 4*seeds || rounded < seeds*2/5 {
		t.Errorf("only %d given, %d of them rounded up, and %d refused", given, rounded, refused)
	}
}
