package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
)

// sharedGPUs is hosts with one GPU of 16Gi each that may be shared; on the first of them somebody has a share of 10Gi.
func sharedGPUs(hosts int) placement.World {
	s := newSite()
	for i := range hosts {
		s.hosts = append(s.hosts, newSite(fmt.Sprint("n", i)).hosts[0])
		s.device("gpu", fmt.Sprintf("n%d/g", i), []string{fmt.Sprint("n", i)})
		d := &s.pools[fmt.Sprint("n", i)].Devices[0]
		d.Shared, d.Capacity = true, []inventory.Capacity{{Name: "memory", Milli: gi(16)}}
	}
	w := s.world()
	w.Ledger.Take(ledger.Holding{Owner: "x/a", Pool: inventory.PoolID{Driver: "d", Name: "n0"}, Device: "g", Share: "s", Capacity: memory(10)})
	return w
}

func gi(n int64) int64 { return n << 30 * 1000 }

func memory(n int64) []inventory.Amount { return []inventory.Amount{{Name: "memory", Milli: gi(n)}} }

// sharing is a gang of pods with a share each. They need a core, so that eight fit on a host.
func sharing(pods int, capacity []inventory.Amount) gang.Gang {
	g := gang.Gang{PodSets: []gang.PodSet{set(pods, claim("gpu", gang.Request{Name: "r", Class: "gpu", Count: 1, Capacity: capacity}))}}
	g.PodSets[0].Requests = map[string]int64{"cpu": 1000, "pods": 1000}
	return g
}

func TestShares(t *testing.T) {
	for name, test := range map[string]struct {
		hosts int
		gang  gang.Gang
		// devices of the pods in order, for both placers unless one of them says otherwise.
		first, scored []string
		refusal       string
	}{
		"beside somebody":        {2, sharing(1, memory(6)), []string{"n0"}, []string{"n0"}, ""},
		"no room beside":         {2, sharing(1, memory(7)), []string{"n1"}, []string{"n1"}, ""},
		"several on one":         {2, sharing(4, memory(4)), []string{"n0", "n1", "n1", "n1"}, []string{"n0", "n1", "n1", "n1"}, ""},
		"who asks for none":      {2, sharing(1, nil), []string{"n1"}, []string{"n1"}, ""},
		"too many":               {2, sharing(6, memory(4)), nil, nil, "NoFreeSlice: 6 gpu are needed and only 5 are free, counting shares"},
		"too many, one is full":  {3, sharing(5, memory(7)), nil, nil, "NoFreeSlice: 5 gpu are needed and only 4 are free, counting shares: 1 of 3 is held by x/a"},
		"too large":              {2, sharing(1, memory(17)), nil, nil, "ShapeUnknown: no gpu is free: 2 of 2 are too small: n0/g cannot give 17Gi memory, n1/g cannot give 17Gi memory"},
		"the first is too full":  {1, sharing(1, memory(7)), nil, nil, "NoFreeSlice: no gpu is free: 1 of 1 is held by x/a"},
		"no such capacity":       {1, sharing(1, []inventory.Amount{{Name: "cores", Milli: 1000}}), nil, nil, "ShapeUnknown: no gpu is free: 1 of 1 is too small: n0/g cannot give 1 cores"},
		"two claims on one":      {1, gangOfTwoClaims(), []string{"n0", "n0"}, []string{"n0", "n0"}, ""},
		"no two in one request":  {1, twice(memory(1)), nil, nil, "NoFreeSlice: 2 gpu are needed and only 1 is free, counting shares"},
		"two of two hosts' GPUs": {2, twice(memory(1)), nil, nil, "NoFreeSlice: devices are free, but not together: 0 pods find all their devices on one host, 1 is needed (gpu)"},
	} {
		for placer, make := range placers {
			d := make().Place(test.gang, sharedGPUs(test.hosts))
			want := test.first
			if placer == "Scored" {
				want = test.scored
			}
			if want == nil {
				if d.Fits() || d.Refusal.Error() != test.refusal || !d.Proved {
					t.Errorf("%s, %s (proved %v):\n got %v\nwant %s", name, placer, d.Proved, d.Refusal, test.refusal)
				}
				continue
			}
			var got []string
			if d.Fits() {
				for _, c := range d.PodSets[0].Claims {
					for _, in := range c.Instances {
						got = append(got, in.Devices[0].Pool.Name)
						if !in.Devices[0].Share || len(in.Devices[0].Capacity) != 1 {
							t.Errorf("%s, %s: %+v", name, placer, in.Devices[0])
						}
					}
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: on %v (%v), want %v", name, placer, got, d.Refusal, want)
			}
			if r := placement.Recheck(test.gang, d, sharedGPUs(test.hosts)); r != nil {
				t.Errorf("%s, %s: %v", name, placer, r)
			}
		}
	}
}

func gangOfTwoClaims() gang.Gang {
	g := sharing(1, memory(3))
	g.PodSets[0].Claims = append(g.PodSets[0].Claims, claim("more", gang.Request{Name: "r", Class: "gpu", Count: 1, Capacity: memory(3)}))
	return g
}

func twice(capacity []inventory.Amount) gang.Gang {
	g := sharing(1, capacity)
	g.PodSets[0].Claims[0].Requests[0].Count = 2
	return g
}

// A device that nobody shares serves only requests that it is large enough for.
func TestCapacityOfWholeDevices(t *testing.T) {
	s := newSite("n0", "n1").device("gpu", "n0/g", []string{"n0"}).device("gpu", "n1/g", []string{"n1"})
	for i, n := range []int64{8, 16} {
		s.pools[fmt.Sprint("n", i)].Devices[0].Capacity = []inventory.Capacity{{Name: "memory", Milli: gi(n)}}
	}
	for name, placer := range placers {
		d := placer().Place(sharing(1, memory(9)), s.world())
		if !d.Fits() || d.PodSets[0].Hosts[0] != "n1" || d.PodSets[0].Claims[0].Instances[0].Devices[0].Share {
			t.Errorf("%s: %+v", name, d)
		}
		d = placer().Place(sharing(2, memory(9)), s.world())
		if want := "ShapeUnknown: 2 gpu are needed and only 1 is free: 1 of 2 is too small: n0/g cannot give 9Gi memory"; d.Fits() || d.Refusal.Error() != want {
			t.Errorf("%s: %v", name, d.Refusal)
		}
	}
}
