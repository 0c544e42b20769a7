package inventory_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

var id = inventory.PoolID{Driver: "d", Name: "p"}

func counters(name string, sets ...string) inventory.Published {
	s := inventory.Published{Name: name, Pool: id, Generation: 1, SliceCount: 2}
	for _, set := range sets {
		s.CounterSets = append(s.CounterSets, inventory.CounterSet{Name: set, Counters: []inventory.Counter{
			{Set: set, Name: "a", Milli: 4000}, {Set: set, Name: "b", Milli: 4000},
		}})
	}
	return s
}

func devices(name string, list ...inventory.PublishedDevice) inventory.Published {
	return inventory.Published{Name: name, Pool: id, Generation: 1, SliceCount: 2, Devices: list}
}

func dev(name string, hosts []string, consumes ...inventory.Charge) inventory.PublishedDevice {
	return inventory.PublishedDevice{Device: inventory.Device{Name: name, Hosts: hosts}, Consumes: consumes}
}

func takes(set, counter string, milli int64) inventory.Charge {
	return inventory.Charge{CounterSet: set, Counter: counter, Milli: milli}
}

func TestPoolProblems(t *testing.T) { // Scenarios 6, 8 and 24.
	h := []string{"n1"}
	older := func(p inventory.Published) inventory.Published { p.Generation = 0; return p }
	of := func(n int64, p inventory.Published) inventory.Published { p.SliceCount = n; return p }
	tests := map[string]struct {
		slices []inventory.Published
		want   string
	}{
		"valid":                    {[]inventory.Published{counters("c", "cs"), devices("s", dev("x", h, takes("cs", "a", 4000)))}, ""},
		"older slices are ignored": {[]inventory.Published{counters("c", "cs"), devices("s", dev("x", h)), older(devices("o", dev("x", h), dev("x", h)))}, ""},
		"newer slices replace": {[]inventory.Published{devices("s"), older(counters("c", "cs")), older(devices("o", dev("x", h)))},
			"PoolIncomplete: pool d/p: 1 of 2 slices of generation 1 are published"},
		"too many slices": {[]inventory.Published{of(1, devices("r")), of(1, devices("s"))}, "PoolInvalid: pool d/p: 2 slices of generation 1 are published, more than the 1 that they say there are"},
		"mixed counts":    {[]inventory.Published{of(3, devices("s")), devices("r")}, "PoolInvalid: pool d/p: slices disagree on resourceSliceCount: r says 2, s says 3"},
		"counters beside devices": {[]inventory.Published{counters("c", "cs"), func() inventory.Published {
			p := counters("both", "other")
			p.Devices = []inventory.PublishedDevice{dev("x", h)}
			return p
		}()}, "PoolInvalid: pool d/p: slice both holds both counters and devices; they belong in slices of their own"},
		"counter set twice": {[]inventory.Published{counters("c", "cs"), counters("e", "cs")}, "PoolInvalid: pool d/p: counter set cs is in slice c and in slice e"},
		"device twice":      {[]inventory.Published{devices("r", dev("x", h)), devices("s", dev("x", h))}, "PoolInvalid: pool d/p: device x is in slice r and in slice s"},
		"unknown set": {[]inventory.Published{counters("c", "cs"), devices("s", dev("x", h, takes("other", "a", 1)))},
			"PoolInvalid: pool d/p: slice s, device x: counter set other does not exist in the pool"},
		"unknown counter": {[]inventory.Published{counters("c", "cs"), devices("s", dev("x", h, takes("cs", "z", 1)))},
			"PoolInvalid: pool d/p: slice s, device x: counter z does not exist in counter set cs"},
		"more than there is": {[]inventory.Published{counters("c", "cs"), devices("s", dev("x", h, takes("cs", "a", 4001)))},
			"PoolInvalid: pool d/p: slice s, device x: consumes more of counter cs/a than there is"},
		"compatibility groups": {[]inventory.Published{counters("c", "cs"), devices("s", dev("x", h), func() inventory.PublishedDevice {
			d := dev("y", h, takes("cs", "a", 1))
			d.Grouped = true
			return d
		}())}, "PoolInvalid: pool d/p: slice s, device y: it has compatibility groups, which Berth cannot keep"},
		"negative": {[]inventory.Published{counters("c", "cs"), devices("s", dev("x", h, takes("cs", "a", -1)))},
			"PoolInvalid: pool d/p: slice s, device x: consumption of counter cs/a is negative"},
		"three sets": {[]inventory.Published{counters("c", "x", "y", "z"), devices("s", dev("x", h, takes("x", "a", 1), takes("y", "a", 1), takes("z", "a", 1)))},
			"PoolInvalid: pool d/p: slice s, device x: consumes from 3 counter sets, at most 2 are allowed"},
		"no counters where sizes differ": {[]inventory.Published{of(1, devices("s", dev("whole", []string{"n1", "n2"}), dev("half", []string{"n2"})))},
			"GateOff: pool d/p: devices half and whole share host n2 but no counter; the API server drops counters when its feature gate DRAPartitionableDevices is off"},
		"no nodes": {[]inventory.Published{func() inventory.Published { p := of(1, devices("s")); p.NoNodes = true; return p }()},
			"GateOff: pool d/p: slice s does not say which nodes it is for; the API server drops that when its feature gate DRAPartitionableDevices is off"},
		"equal devices without counters": {[]inventory.Published{of(1, devices("s", dev("x", []string{"n1", "n2"}), dev("y", []string{"n1", "n2"})))}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := inventory.NewPool(id, test.slices)
			got := ""
			if p.Problem != nil {
				got = p.Problem.Error()
			}
			if got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
			inv := inventory.Build(inventory.Input{Pools: []*inventory.Pool{p}, Classes: []inventory.ClassMatch{{Name: "c", Devices: []inventory.DeviceName{{Pool: id, Name: "x"}}}}})
			if c := inv.Class("c"); test.want != "" && len(c.Devices) > 0 {
				t.Error("a pool with a problem offers devices")
			}
		})
	}
	if p := inventory.NewPool(id, nil); p.Problem != nil || len(p.Devices) != 0 {
		t.Error("an empty pool is not empty")
	}
}

func TestTaintsSpreadUpward(t *testing.T) {
	bad := inventory.Taint{Key: "bad", Effect: inventory.NoSchedule}
	half := func(name, host, counter string) inventory.PublishedDevice {
		return dev(name, []string{host}, takes("cs", counter, 4000))
	}
	tainted := func(d inventory.PublishedDevice, taints ...inventory.Taint) inventory.PublishedDevice {
		d.Taints = taints
		return d
	}
	whole := dev("whole", []string{"n1", "n2"}, takes("cs", "a", 4000), takes("cs", "b", 4000))
	tests := map[string]struct {
		devices []inventory.PublishedDevice
		want    []string
	}{
		"part to whole":                  {[]inventory.PublishedDevice{tainted(half("h1", "n1", "a"), bad), half("h2", "n2", "b"), whole}, []string{"h1", "whole"}},
		"whole to none":                  {[]inventory.PublishedDevice{half("h1", "n1", "a"), half("h2", "n2", "b"), tainted(whole, bad)}, []string{"whole"}},
		"other effects":                  {[]inventory.PublishedDevice{tainted(half("h1", "n1", "a"), inventory.Taint{Key: "info", Effect: "None"}), whole}, nil},
		"siblings on a counter":          {[]inventory.PublishedDevice{tainted(dev("m1", []string{"n1"}, takes("cs", "a", 1000)), bad), dev("m2", []string{"n1"}, takes("cs", "a", 1000)), dev("gpu", []string{"n1"}, takes("cs", "a", 4000))}, []string{"gpu", "m1"}},
		"without counters":               {[]inventory.PublishedDevice{tainted(dev("g1", []string{"n1"}), bad), dev("g2", []string{"n1"})}, []string{"g1"}},
		"larger, on another counter":     {[]inventory.PublishedDevice{tainted(half("h1", "n1", "a"), bad), dev("both", []string{"n1", "n2"}, takes("cs", "b", 4000))}, []string{"h1"}},
		"larger, and allocatable beside": {[]inventory.PublishedDevice{tainted(dev("m1", []string{"n1"}, takes("cs", "a", 1000), takes("cs", "b", 4000)), bad), dev("both", []string{"n1", "n2"}, takes("cs", "a", 3000))}, []string{"m1"}},
		"same host, one counter less":    {[]inventory.PublishedDevice{tainted(dev("m1", []string{"n1"}, takes("cs", "a", 4000), takes("cs", "b", 1000)), bad), dev("m2", []string{"n1"}, takes("cs", "a", 4000))}, []string{"m1"}},
		"same hardware, two names":       {[]inventory.PublishedDevice{tainted(half("h1", "n1", "a"), bad), half("alias", "n1", "a")}, []string{"alias", "h1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := inventory.NewPool(id, []inventory.Published{counters("c", "cs"), devices("s", test.devices...)})
			var got []string
			for _, d := range p.Devices {
				if len(d.Taints) > 0 {
					got = append(got, d.Name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A device of several cubes consumes counters of cubes only, those inside a cube consume counters of hosts, too.
func TestTaintsSpreadToSeveralCubes(t *testing.T) {
	for tainted, want := range map[string][]string{
		"c0-1-3":  {"c0-1-3", "c0-2-2", "c0-4-0", "c0-8-0", "c0-16-0", "m2-0", "m4-0"},
		"c1-8-8":  {"c1-8-8", "c1-16-0", "m2-0", "m4-0"},
		"c2-16-0": {"c2-16-0", "m2-2", "m4-0"},
		"m2-0":    {"m2-0", "m4-0"},
		"m4-0":    {"m4-0"},
	} {
		site := worlds.Cubes(4)("p")
		for i := range site.Slices {
			for j := range site.Slices[i].Devices {
				if d := &site.Slices[i].Devices[j]; d.Name == tainted {
					d.Taints = []inventory.Taint{{Key: "bad", Effect: inventory.NoExecute}}
				}
			}
		}
		var got []string
		for _, d := range site.Inventory().Pools()[0].Devices {
			if len(d.Taints) > 0 {
				got = append(got, d.Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is tainted: %s", tainted, diff)
		}
	}
}

func TestPoolDoesNotDependOnOrder(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		list := []inventory.Published{counters("c1", "x"), counters("c2", "y")}
		for i := range 6 {
			d := dev(fmt.Sprint("d", rng.IntN(5)), []string{fmt.Sprint("n", i)}, takes([]string{"x", "y", "z"}[rng.IntN(3)], "a", int64(rng.IntN(5000))))
			d.Taints = []inventory.Taint{{Key: fmt.Sprint(rng.IntN(2)), Effect: inventory.NoExecute}}
			list = append(list, devices(fmt.Sprint("s", i), d))
		}
		for i := range list {
			list[i].SliceCount = int64(len(list))
		}
		want := inventory.NewPool(id, list)
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		if diff := cmp.Diff(want, inventory.NewPool(id, list), cmpopts.IgnoreUnexported(inventory.Pool{})); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestNatural(t *testing.T) {
	want := []string{"", "a", "a0", "a01", "a1", "a2", "a10", "a10b", "b", "node-2", "node-10", "node-18446744073709551616", "node-x"}
	got := slices.Clone(want)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, inventory.Natural)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, a := range want {
		for _, b := range want {
			if x, y := inventory.Natural(a, b), inventory.Natural(b, a); (x < 0) != (y > 0) || (x == 0) != (a == b) {
				t.Errorf("%q and %q: %d and %d", a, b, x, y)
			}
		}
	}
}
