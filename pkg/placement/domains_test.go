package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/pkg/reason"
)

var placers = map[string]func() placement.Placer{
	"FirstFit": func() placement.Placer { return placement.FirstFit{} },
	"Scored":   func() placement.Placer { return placement.NewScored(0) },
}

// fleet is racks of hosts with one GPU each. taken says how many GPUs of each rack, from the first host on, somebody holds,
// each for a gang of its own.
func fleet(hosts int, taken ...int) placement.World {
	inv := worlds.GPURacks(len(taken), hosts, 1).Inventory()
	w := placement.World{Inventory: inv, Ledger: ledger.New(inv)}
	for r, n := range taken {
		for h := range n {
			w.Ledger.Take(ledger.Holding{Owner: fmt.Sprintf("x/%d-%d", r, h), Pool: gpuPool(r, h), Device: "gpu-0"})
		}
	}
	return w
}

func gpuPool(rack, host int) inventory.PoolID {
	return inventory.PoolID{Driver: worlds.Driver, Name: fmt.Sprintf("r%d-n%d", rack, host)}
}

func gpus(pods int, how gang.Interconnect) gang.Gang {
	g := asking("gpu", 1, pods)
	g.PodSets[0].Slices, g.PodSets[0].Interconnect = 0, how
	return g
}

func domainsOf(d placement.Decision) []string {
	var out []string
	for _, domain := range d.PodSets[0].Domains {
		out = append(out, domain.Value)
	}
	return out
}

// Scenario 22: the fleet has 16 free GPUs, no rack has.
func TestFreeButNotTogether(t *testing.T) {
	want := &reason.Refusal{
		Code:    reason.NoFreeSlice,
		Message: "16 gpu are free, but not together: no rack has 16 (rack-1 has 9, rack-0 has 7)",
		Evidence: []reason.Evidence{
			{Kind: "domain", Name: "rack-1", Code: reason.NoFreeSlice, Detail: "has 9 of 16 gpu"},
			{Kind: "domain", Name: "rack-0", Code: reason.NoFreeSlice, Detail: "has 7 of 16 gpu"},
		},
	}
	for name, placer := range placers {
		d := placer().Place(gpus(16, gang.Required), fleet(18, 11, 9, 18))
		if diff := cmp.Diff(want, d.Refusal); diff != "" || !d.Proved {
			t.Errorf("%s, proved %v: %s", name, d.Proved, diff)
		}
		// Who only prefers it gets them, and the decision says that they are apart.
		d = placer().Place(gpus(16, gang.Preferred), fleet(18, 11, 9, 18))
		if !d.Fits() || !slices.Equal(domainsOf(d), []string{"rack-0", "rack-1"}) || !d.PodSets[0].Across {
			t.Errorf("%s: %v in %v", name, d.Refusal, d.PodSets)
		}
	}
}

func TestRefusedByDomains(t *testing.T) {
	unlabelled := func(hosts int) placement.World {
		inv := worlds.GPURacks(1, hosts, 1).Tie("example.com/rack", func(*inventory.Device) string { return "" }).Inventory()
		return placement.World{Inventory: inv, Ledger: ledger.New(inv)}
	}
	untied := func() placement.World {
		inv := worlds.Groups("p", 4, [][]int{{0}, {1}}).Inventory()
		return placement.World{Inventory: inv, Ledger: ledger.New(inv)}
	}
	perPod := func(pods, count int) gang.Gang {
		g := gpus(pods, gang.Required)
		g.PodSets[0].Claims[0].Requests[0].Count = count
		return g
	}
	several := func() placement.World {
		inv := worlds.GPURacks(2, 3, 4).Inventory()
		w := placement.World{Inventory: inv, Ledger: ledger.New(inv)}
		w.Ledger.Take(ledger.Holding{Owner: "x/a", Pool: gpuPool(1, 1), Device: "gpu-2"})
		w.Ledger.Take(ledger.Holding{Owner: "x/b", Pool: gpuPool(0, 0), Device: "gpu-2"})
		w.Ledger.Take(ledger.Holding{Owner: "x/b", Pool: gpuPool(0, 1), Device: "gpu-2"})
		return w
	}
	slicesIn := func(domain func(name string) string) placement.World {
		site := worlds.Groups("p", 8, [][]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}}).Tie("cube", func(d *inventory.Device) string { return domain(d.Name) })
		inv := site.Inventory()
		return placement.World{Inventory: inv, Ledger: ledger.New(inv)}
	}
	three := func(k int) gang.Gang {
		g := asking("n2", 2, k)
		g.PodSets[0].Interconnect = gang.Required
		return g
	}
	for name, test := range map[string]struct {
		world placement.World
		gang  gang.Gang
		want  string
	}{
		"no rack is so large": {fleet(4, 0, 0), gpus(5, gang.Required), "NoFreeSlice: 5 gpu are needed in one rack, and the largest, rack-0, has 4 in all"},
		"nor would it be":     {fleet(4, 3, 2), gpus(5, gang.Required), "NoFreeSlice: 5 gpu are needed in one rack, and the largest, rack-0, has 4 in all"},
		"no labels":           {unlabelled(4), gpus(2, gang.Required), "NoFreeSlice: 2 gpu are needed in one rack, and none of them is in a rack"},
		"no interconnect": {untied(), func() gang.Gang { g := asking("n1", 1, 2); g.PodSets[0].Interconnect = gang.Required; return g }(),
			"ShapeUnknown: the devices must stand in one interconnect domain (annotation berth.dev/interconnect: required), and no AcceleratorPool of n1 names an interconnect"},
		"too few at all":  {fleet(4, 3, 4), gpus(2, gang.Required), "NoFreeSlice: 2 gpu are needed and only 1 is free: 7 of 8 are held by x/0-0, x/0-1, x/0-2, x/1-0, x/1-1 and 2 more"},
		"several per pod": {several(), perPod(3, 4), "NoFreeSlice: devices are free, but not together: no rack takes 3 pods (rack-1 takes 2, rack-0 takes 1)"},
		"slices": {slicesIn(func(name string) string { return map[string]string{"d0": "a", "d1": "a", "d2": "b"}[name] }), three(3),
			"NoFreeSlice: 3 n2 are needed in one cube, and the largest, a, has 2 in all"},
		"many racks": {fleet(3, 1, 1, 1, 1, 1, 1, 2), gpus(3, gang.Required),
			"NoFreeSlice: 13 gpu are free, but not together: no rack has 3 (rack-0 has 2, rack-1 has 2, rack-2 has 2, rack-3 has 2, rack-4 has 2, and 2 more)"},
	} {
		for placer, make := range placers {
			d := make().Place(test.gang, test.world)
			if d.Fits() || d.Refusal.Error() != test.want || !d.Proved {
				t.Errorf("%s, %s (proved %v):\n got %v\nwant %s", name, placer, d.Proved, d.Refusal, test.want)
			}
		}
	}
}

// One device is together with itself, wherever it stands.
func TestOneDeviceNeedsNoDomain(t *testing.T) {
	inv := worlds.GPURacks(1, 1, 1).Tie("example.com/rack", func(*inventory.Device) string { return "" }).Inventory()
	for name, placer := range placers {
		d := placer().Place(gpus(1, gang.Required), placement.World{Inventory: inv, Ledger: ledger.New(inv)})
		if !d.Fits() || d.PodSets[0].Across || len(d.PodSets[0].Domains) != 1 {
			t.Errorf("%s: %v", name, d.Refusal)
		}
	}
}

func TestScoredKeepsDomainsWhole(t *testing.T) {
	one := func(rack string) []string { return []string{rack} }
	for name, test := range map[string]struct {
		world placement.World
		gang  gang.Gang
		want  []string
	}{
		// Racks 1 and 2 have a holder each, and rack 2 fewer free GPUs.
		"whole racks stay whole":        {fleet(4, 0, 1, 0), gpus(3, gang.Preferred), one("rack-1")},
		"a single pod, too":             {fleet(4, 0, 1, 0), gpus(1, gang.Preferred), one("rack-1")},
		"the more holders, the better":  {fleet(6, 1, 3, 2), gpus(2, gang.Required), one("rack-1")},
		"one rack rather than leavings": {fleet(4, 3, 3, 0), gpus(2, gang.Preferred), one("rack-2")},
		"as few racks as possible":      {fleet(4, 2, 0, 2, 1), gpus(5, gang.Preferred), []string{"rack-0", "rack-1"}},
		"and of those the leavings":     {fleet(4, 0, 0, 2, 1), gpus(10, gang.Preferred), []string{"rack-0", "rack-1", "rack-2"}},
	} {
		d := placement.NewScored(0).Place(test.gang, test.world)
		if !d.Fits() || !slices.Equal(domainsOf(d), test.want) {
			t.Errorf("%s: in %v (%v), want %v", name, domainsOf(d), d.Refusal, test.want)
		}
	}
	// Of two racks with one holder each the one with less left is taken.
	w := fleet(6, 1, 0)
	for h := range 3 {
		w.Ledger.Take(ledger.Holding{Owner: "x/one", Reservation: "one", Pool: gpuPool(1, h), Device: "gpu-0"})
	}
	if d := placement.NewScored(0).Place(gpus(3, gang.Required), w); !slices.Equal(domainsOf(d), one("rack-1")) || !d.Proved {
		t.Errorf("in %v, proved %v", domainsOf(d), d.Proved)
	}
}

// Several pod sets stand in one domain each, and what one of them can have of it is no reason for another to do without.
func TestPodSetsInDomains(t *testing.T) {
	for name, placer := range placers {
		g := gpus(3, gang.Required)
		g.PodSets = append(g.PodSets, gpus(4, gang.Preferred).PodSets[0], gpus(6, gang.Preferred).PodSets[0])
		g.PodSets[1].Name, g.PodSets[2].Name = "second", "third"
		d := placer().Place(g, fleet(5, 1, 2, 0))
		if d.Fits() {
			t.Fatalf("%s: 13 pods on 12 GPUs", name)
		}
		g.PodSets[2].Count = 5
		d = placer().Place(g, fleet(5, 1, 2, 0))
		if !d.Fits() || d.PodSets[0].Across || d.PodSets[1].Across || d.PodSets[2].Across {
			t.Errorf("%s: %v %v", name, d.Refusal, d.PodSets)
		}
		// Racks with 4, 3 and 4: five stand nowhere together, three still must and four still can.
		g.PodSets[2].Count = 4
		g.PodSets[1], g.PodSets[2] = g.PodSets[2], g.PodSets[1]
		g.PodSets[1].Count = 5
		g.PodSets = g.PodSets[:2]
		d = placer().Place(g, fleet(5, 1, 2, 1))
		if !d.Fits() || d.PodSets[0].Across || !d.PodSets[1].Across {
			t.Errorf("%s: %v %v", name, d.Refusal, d.PodSets)
		}
	}
}

// A pod's devices of other pools follow its host; where their pool names an interconnect as well, each kind stands together.
func TestCompanionsInDomains(t *testing.T) {
	site := worlds.GPURacks(2, 3, 1)
	nics := worlds.Groups("nics", 0, nil)
	for _, h := range site.Hosts {
		// One of the NICs of rack 0 is of another interconnect, whose only domain has the same name.
		plane := inventory.Domain{By: "attribute x/plane", Value: "plane-0"}
		if h.Name == "r0-n1-h0" {
			plane.By = "attribute y/plane"
		}
		nics.Add(&worlds.Site{Slices: []inventory.Published{{
			Name: "nic-" + h.Name, Pool: inventory.PoolID{Driver: worlds.Driver, Name: "nic-" + h.Name}, Generation: 1, SliceCount: 1,
			Devices: []inventory.PublishedDevice{{Device: inventory.Device{Name: "nic", Hosts: []string{h.Name}, Domain: plane}}},
		}}, Classes: map[string][]inventory.DeviceName{"nic": {{Pool: inventory.PoolID{Driver: worlds.Driver, Name: "nic-" + h.Name}, Name: "nic"}}}})
	}
	inv := site.Add(nics).Inventory()
	g := gpus(3, gang.Required)
	g.PodSets[0].Claims = append(g.PodSets[0].Claims, claim("nic", one("nic")))
	for name, placer := range placers {
		w := placement.World{Inventory: inv, Ledger: ledger.New(inv)}
		d := placer().Place(g, w)
		want := []inventory.Domain{{By: "attribute x/plane", Value: "plane-0"}, {By: "label example.com/rack", Value: "rack-1"}}
		if !d.Fits() || d.PodSets[0].Across {
			t.Fatalf("%s: %v", name, d.Refusal)
		}
		if diff := cmp.Diff(want, d.PodSets[0].Domains); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		// With rack 1 taken the NICs of rack 0 lie in two interconnects.
		w.Ledger.Take(ledger.Holding{Owner: "x/a", Pool: gpuPool(1, 0), Device: "gpu-0"})
		d = placer().Place(g, w)
		if wanted := "NoFreeSlice: devices are free, but not together: needs 3 of 5 free gpu in one rack, needs 3 of 6 free nic in one plane"; d.Fits() || d.Refusal.Error() != wanted || !d.Proved {
			t.Errorf("%s: proved %v, %v", name, d.Proved, d.Refusal)
		}
		preferring := gang.Gang{PodSets: []gang.PodSet{g.PodSets[0]}}
		preferring.PodSets[0].Interconnect = gang.Preferred
		if d = placer().Place(preferring, w); !d.Fits() || !d.PodSets[0].Across {
			t.Errorf("%s: %v", name, d.Refusal)
		}
	}
}

// Whether ten fit into one domain is not found out within the budget. They get their places all the same, and nobody says that
// it is proved.
func TestAcrossWhenTheBudgetEnds(t *testing.T) {
	var groups [][]int
	for i := range 19 {
		groups = append(groups, []int{i, (i + 1) % 19})
	}
	groups = append(groups, []int{19, 20})
	inv := worlds.Groups("p", 21, groups).Tie("rack", func(d *inventory.Device) string {
		return map[bool]string{true: "b", false: "a"}[d.Name == "d19"]
	}).Inventory()
	w := placement.World{Inventory: inv, Ledger: ledger.New(inv)}
	d := placement.FirstFit{Budget: 100}.Place(asking("n2", 2, 10), w)
	if !d.Fits() || d.Proved || !d.PodSets[0].Across {
		t.Errorf("proved %v, %v in %v", d.Proved, d.Refusal, d.PodSets)
	}
	g := asking("n2", 2, 10)
	g.PodSets[0].Interconnect = gang.Required
	d = placement.FirstFit{Budget: 100}.Place(g, w)
	if want := "NoFreeSlice: devices are free, but not together (not every combination was tried): needs 10 of 20 free n2 in one rack"; d.Fits() || d.Proved || d.Refusal.Error() != want {
		t.Errorf("proved %v, %v", d.Proved, d.Refusal)
	}
}
