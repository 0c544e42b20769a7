package fold_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

func everywhere(inventory.PoolID) bool { return true }

func named(names ...string) func(inventory.PoolID) bool {
	return func(id inventory.PoolID) bool { return slices.Contains(names, id.Name) }
}

// tpus is a fold of the classes into quota of a Cohort.
func tpus(name string, in func(inventory.PoolID) bool, classes ...string) fold.Fold {
	return fold.Fold{Name: name, Classes: classes, In: in, Flavor: name, Resource: "berth.dev/shares", Writes: []string{"Cohort research"}}
}

// stands is a fold that has promised something.
func stands(f fold.Fold) fold.Fold {
	f.Stands = true
	return f
}

// singles is a pool of hosts with four GPUs each, offered one by one, by two, and as a rack of all hosts.
func singles(pool string, hosts int) *worlds.Site {
	site := &worlds.Site{Classes: map[string][]inventory.DeviceName{}}
	id := inventory.PoolID{Driver: worlds.Driver, Name: pool}
	set := inventory.CounterSet{Name: "gpus"}
	var devices []inventory.PublishedDevice
	add := func(class, name string, on []string, consumes ...inventory.Charge) {
		devices = append(devices, inventory.PublishedDevice{Device: inventory.Device{Name: name, Hosts: on}, Consumes: consumes})
		site.Classes[class] = append(site.Classes[class], inventory.DeviceName{Pool: id, Name: name})
	}
	var all []string
	var whole []inventory.Charge
	for h := range hosts {
		host := fmt.Sprintf("%s-h%d", pool, h)
		all = append(all, host)
		site.Hosts = append(site.Hosts, inventory.Host{Name: host, Hostname: host, Rank: host})
		for g := range 4 {
			counter := fmt.Sprintf("h%dg%d", h, g)
			set.Counters = append(set.Counters, inventory.Counter{Set: "gpus", Name: counter, Milli: 1000})
			gpu := inventory.Charge{CounterSet: "gpus", Counter: counter, Milli: 1000}
			whole = append(whole, gpu)
			add("gpu", fmt.Sprintf("gpu-%d-%d", h, g), []string{host}, gpu)
		}
		for half := range 2 {
			add("half", fmt.Sprintf("half-%d-%d", h, half), []string{host}, whole[len(whole)-4+2*half:][:2]...)
		}
	}
	add("rack", "rack", all, whole...)
	site.Slices = []inventory.Published{
		{Name: pool + "-counters", Pool: id, Generation: 1, SliceCount: 2, CounterSets: []inventory.CounterSet{set}},
		{Name: pool + "-devices", Pool: id, Generation: 1, SliceCount: 2, Devices: devices},
	}
	return site
}

// fleet is singles with its classes renamed, so that two drivers' hardware can stand side by side.
func fleet(site *worlds.Site, suffix string) *worlds.Site {
	renamed := map[string][]inventory.DeviceName{}
	for name, devices := range site.Classes {
		renamed[name+suffix] = devices
	}
	site.Classes = renamed
	return site
}

func TestCompile(t *testing.T) {
	tests := map[string]struct {
		site  *worlds.Site
		folds []fold.Fold
		// want is, for each fold, the shares that are published, or the refusal; NotTiling follows it.
		want []string
	}{
		"every shape of the KEP pool": {
			worlds.KEP8x8("p"), []fold.Fold{tpus("f", everywhere, "tpu-2x2", "tpu-4x4", "tpu-4x8", "tpu-8x8")}, []string{"16"},
		},
		"two pools in one flavor": {
			worlds.Times(2, worlds.KEP8x8), []fold.Fold{tpus("f", everywhere, "tpu-4x4", "tpu-8x8")}, []string{"32"},
		},
		"one of two pools": {
			worlds.Times(2, worlds.KEP8x8), []fold.Fold{tpus("f", named("pool-1"), "tpu-4x4")}, []string{"16"},
		},
		"no pool": {
			worlds.KEP8x8("p"), []fold.Fold{tpus("f", named("q"), "tpu-4x4")}, []string{"0"},
		},
		"cubes count larger devices in other counters": {
			worlds.Cubes(4)("p"), []fold.Fold{tpus("f", everywhere, "v5p-1", "v5p-4", "v5p-16", "v5p-64")}, []string{"64"},
		},
		"a rack that its groups do not fill": {
			worlds.Rack("p"), []fold.Fold{tpus("f", everywhere, "gpu-16", "gpu-72")},
			[]string{"18; NotTiling: gpu-16 fills 16 of 18 shares of pool p"},
		},
		"a class that one pool lacks": {
			worlds.KEP8x8("a").Add(fleet(worlds.KEP8x8("b"), "-big")), []fold.Fold{tpus("f", everywhere, "tpu-4x4", "tpu-8x8-big")},
			[]string{"32; NotTiling: tpu-8x8-big fills 0 of 16 shares of pool a, tpu-4x4 fills 0 of 16 shares of pool b"},
		},
		"GPUs one by one": {
			singles("p", 3), []fold.Fold{tpus("f", everywhere, "gpu")}, []string{"12"},
		},
		"GPUs one by one and as a rack": {
			singles("p", 3), []fold.Fold{tpus("f", everywhere, "gpu", "rack")},
			[]string{"FoldUnitMismatch: on host p-h0 fit 4 devices of DeviceClass gpu or 1 of DeviceClass rack: their shares are not the same amount of hardware"},
		},
		"GPUs one by one and by two": {
			singles("p", 3), []fold.Fold{tpus("f", everywhere, "gpu", "half")},
			[]string{"FoldUnitMismatch: on host p-h0 fit 4 devices of DeviceClass gpu or 2 of DeviceClass half: their shares are not the same amount of hardware"},
		},
		"GPUs one by one here and a rack there": {
			singles("a", 2).Add(fleet(singles("b", 2), "-b")), []fold.Fold{tpus("f", everywhere, "gpu", "rack-b")},
			[]string{"FoldUnitMismatch: several devices of DeviceClass gpu fit on one host, and DeviceClass rack-b takes several hosts whole: " +
				"their shares are not the same amount of hardware; fold them into flavors of their own, from hosts of their own"},
		},
		"the same hosts twice": {
			worlds.KEP8x8("p"), []fold.Fold{tpus("old", everywhere, "tpu-4x4"), tpus("new", everywhere, "tpu-8x8")},
			[]string{"16", "FoldOverlap: CapacityFold old counts 16 hosts, the first of them p-h0 already: " +
				"put the classes into one fold, or select pools or classes that share no host"},
		},
		"a fold that makes no sense has no hosts": {
			singles("p", 1), []fold.Fold{tpus("old", everywhere, "gpu", "rack"), tpus("new", everywhere, "gpu")},
			[]string{"FoldUnitMismatch: on host p-h0 fit 4 devices of DeviceClass gpu or 1 of DeviceClass rack: their shares are not the same amount of hardware", "4"},
		},
		"a fold that made sense keeps its hosts": {
			singles("p", 1), []fold.Fold{stands(tpus("old", everywhere, "gpu", "none")), tpus("new", everywhere, "gpu")},
			[]string{"ShapeUnknown: there is no DeviceClass none",
				"FoldOverlap: CapacityFold old counts host p-h0 already: put the classes into one fold, or select pools or classes that share no host"},
		},
		"one quota for two folds": {
			worlds.Times(2, worlds.KEP8x8), []fold.Fold{
				tpus("f", named("pool-0"), "tpu-4x4"),
				{Name: "g", Classes: []string{"tpu-4x4"}, In: named("pool-1"), Flavor: "f", Resource: "berth.dev/shares", Writes: []string{"Cohort research"}},
			},
			[]string{"16", "FoldOverlap: CapacityFold f writes berth.dev/shares of flavor f into Cohort research already: " +
				"select the pools of both in one fold, or give this one a flavor of its own"},
		},
		"no class": {worlds.KEP8x8("p"), []fold.Fold{tpus("f", everywhere)}, []string{"ShapeUnknown: it names no DeviceClass"}},
		"no such class": {
			worlds.KEP8x8("p"), []fold.Fold{tpus("f", everywhere, "tpu-4x4", "tpu-9x9")}, []string{"ShapeUnknown: there is no DeviceClass tpu-9x9"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var c fold.Compiler
			inv := test.site.Inventory()
			for _, times := range []string{"once", "again"} {
				var got []string
				for _, f := range c.Compile(inv, test.folds) {
					switch {
					case f.Problem != nil:
						got = append(got, f.Problem.Error())
					case f.NotTiling != nil:
						got = append(got, fmt.Sprint(f.Published, "; ", f.NotTiling.Error()))
					default:
						got = append(got, fmt.Sprint(f.Published))
					}
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s (-want +got)\n%s", times, diff)
				}
			}
		})
	}
}

func TestClassesThatCannotBeCounted(t *testing.T) {
	id := inventory.PoolID{Driver: worlds.Driver, Name: "p"}
	host := inventory.Host{Name: "h0", Hostname: "h0"}
	pool := func(count int64, d inventory.Device) *inventory.Pool {
		return inventory.NewPool(id, []inventory.Published{{
			Name: "s", Pool: id, Generation: 1, SliceCount: count, Devices: []inventory.PublishedDevice{{Device: d}},
		}})
	}
	whole := inventory.Device{Name: "d", Hosts: []string{"h0"}}
	shared := whole
	shared.Shared = true
	tests := map[string]struct {
		pool  *inventory.Pool
		class inventory.ClassMatch
		want  string
	}{
		"broken":            {pool(1, whole), inventory.ClassMatch{Problem: "no such key"}, "ShapeUnknown: the selectors of DeviceClass c cannot be evaluated: no such key"},
		"empty":             {pool(1, whole), inventory.ClassMatch{}, ""},
		"unmanaged":         {pool(1, whole), inventory.ClassMatch{Unmanaged: true}, "ShapeUnknown: DeviceClass c selects devices, but none of an AcceleratorPool"},
		"incomplete pool":   {pool(2, whole), inventory.ClassMatch{Devices: []inventory.DeviceName{{Pool: id, Name: "d"}}}, ""},
		"still to come":     {pool(2, whole), inventory.ClassMatch{}, ""},
		"shared by several": {pool(1, shared), inventory.ClassMatch{Devices: []inventory.DeviceName{{Pool: id, Name: "d"}}}, "FoldUnitMismatch: DeviceClass c selects devices that several pods share: how many depends on what they ask for, so they have no number of shares"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.class.Name = "c"
			inv := inventory.Build(inventory.Input{Hosts: []inventory.Host{host}, Pools: []*inventory.Pool{test.pool}, Classes: []inventory.ClassMatch{test.class}})
			var c fold.Compiler
			got := ""
			if f := c.Compile(inv, []fold.Fold{tpus("f", everywhere, "c")})[0]; f.Problem != nil {
				got = f.Problem.Error()
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// The smallest class counts where the classes do not tile, whatever the order in which they are named.
func TestCounted(t *testing.T) {
	for _, classes := range [][]string{{"gpu-72", "gpu-16", "gpu-32"}, {"gpu-16", "gpu-72"}} {
		var c fold.Compiler
		f := c.Compile(worlds.Rack("p").Inventory(), []fold.Fold{tpus("f", everywhere, classes...)})[0]
		if got := strings.Join(f.Counted, " "); got != "gpu-16" {
			t.Errorf("of %v %s is counted", classes, got)
		}
	}
	var c fold.Compiler
	if f := c.Compile(worlds.KEP8x8("p").Inventory(), []fold.Fold{tpus("f", everywhere, "tpu-8x8", "tpu-4x4")})[0]; len(f.Counted) != 2 {
		t.Errorf("%v are counted of two classes that tile", f.Counted)
	}
}
