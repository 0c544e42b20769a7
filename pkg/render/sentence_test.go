package render

import (
	"fmt"
	"testing"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// TestSentences has one line for every state.
func TestSentences(t *testing.T) {
	id := inventory.PoolID{Driver: "d", Name: "pod-a"}
	fits := placement.Decision{Proved: true, PodSets: []placement.PodSet{{Name: "main", Hosts: []string{"n1", "n2"}, Claims: []placement.Claim{{
		PodClaim: "tpu", PodsPerClaim: 2, Instances: []placement.Instance{{Devices: []placement.Device{{Request: "r", Pool: id, Name: "dev", Hosts: []string{"n1", "n2"}}}}},
	}}}}}
	two := fits
	two.PodSets = append(two.PodSets, two.PodSets[0])
	two.PodSets[1].Name = "more"
	several := placement.Decision{Proved: true, PodSets: []placement.PodSet{{Name: "main", Hosts: []string{"n1", "n1", "n2"}, Claims: []placement.Claim{{
		PodClaim: "gpu", PodsPerClaim: 1, Instances: []placement.Instance{
			{Devices: []placement.Device{{Request: "r", Pool: inventory.PoolID{Driver: "d", Name: "n1"}, Name: "gpu-0", Hosts: []string{"n1"}}}},
			{Devices: []placement.Device{{Request: "r", Pool: inventory.PoolID{Driver: "d", Name: "n1"}, Name: "gpu-1", Hosts: []string{"n1"}}}},
			{Devices: []placement.Device{{
				Request: "r", Pool: inventory.PoolID{Driver: "d", Name: "n2"}, Name: "gpu-0", Hosts: []string{"n2"}, Share: true,
				Capacity: []inventory.Amount{{Name: "memory", Milli: 40_000}, {Name: "cores", Milli: 1500}},
			}}},
		},
	}}}}}
	inRack, across := several, several
	inRack.PodSets = []placement.PodSet{several.PodSets[0]}
	inRack.PodSets[0].Domains = []inventory.Domain{{By: "label example.com/rack", Value: "a"}}
	across.PodSets = []placement.PodSet{several.PodSets[0]}
	across.PodSets[0].Domains, across.PodSets[0].Across = []inventory.Domain{{By: "label example.com/rack"}, {By: "label example.com/rack", Value: "a"}}, true
	part := several.PodSets[0].Claims[0].Instances[2]
	part.Devices = []placement.Device{part.Devices[0]}
	part.Devices[0].Capacity = []inventory.Amount{{Name: "memory", Milli: 30 << 30 * 1000}}
	alike := placement.Decision{Proved: true, PodSets: []placement.PodSet{{Name: "main", Hosts: []string{"n2", "n2", "n2"}, Claims: []placement.Claim{{
		PodClaim: "gpu", PodsPerClaim: 1, Instances: []placement.Instance{part, part, several.PodSets[0].Claims[0].Instances[2]},
	}}}}}
	waits := placement.Decision{Proved: false, Refusal: &reason.Refusal{Code: reason.NoFreeSlice, Message: "none is free"}}
	refused := placement.Decision{Proved: true, Refusal: &reason.Refusal{Code: reason.NotDivisible, Message: "5 pods"}}
	w := NewWorkload("Job", "ns", "train")
	for _, row := range []struct {
		w    Workload
		want string
	}{
		{w.Decide(fits, nil), "Job ns/train fits: dev (pod-a) on n1, n2"},
		{w.Decide(several, nil), "Job ns/train fits: n1/gpu-0, n1/gpu-1, 1500m cores and 40 memory of n2/gpu-0 on n1 (2 pods), n2"},
		{w.Decide(inRack, nil), "Job ns/train fits: n1/gpu-0, n1/gpu-1, 1500m cores and 40 memory of n2/gpu-0 on n1 (2 pods), n2 in rack a"},
		{w.Decide(across, nil), "Job ns/train fits: n1/gpu-0, n1/gpu-1, 1500m cores and 40 memory of n2/gpu-0 on n1 (2 pods), n2 across no rack, rack a"},
		{w.Decide(alike, nil), "Job ns/train fits: 2 times 30Gi memory of gpu-0, 1500m cores and 40 memory of gpu-0 (n2) on n2 (3 pods)"},
		{w.Decide(two, nil), "Job ns/train fits: main: dev (pod-a) on n1, n2; more: dev (pod-a) on n1, n2"},
		{w.Reserve(PodSets(fits)), "Job ns/train has its slice: dev (pod-a) on n1, n2"},
		{w.Decide(waits, nil), "Job ns/train waits (NoFreeSlice): none is free (the search was cut short: a place may exist all the same)"},
		{w.Decide(refused, nil), "Job ns/train is refused (NotDivisible): 5 pods"},
		{w.Ignore("Finished", "it has ended"), "Job ns/train is ignored: it has ended"},
	} {
		if got := row.w.Sentence(); got != row.want {
			t.Errorf("got  %s\nwant %s", got, row.want)
		}
	}
	var names []string
	for i := range 18 {
		names = append(names, fmt.Sprint(i))
	}
	if got, want := Some(names), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 2 more"; got != want {
		t.Errorf("got %s", got)
	}
}
