package fold_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capacity"
	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/pkg/reason"
)

func compiled(t *testing.T, inv *inventory.Inventory, live bool, classes ...string) *fold.Compiled {
	t.Helper()
	f := tpus("f", everywhere, classes...)
	f.Live = live
	var c fold.Compiler
	out := c.Compile(inv, []fold.Fold{f})
	if out[0].Problem != nil {
		t.Fatal(out[0].Problem)
	}
	return &out[0]
}

func hold(l *ledger.Ledger, inv *inventory.Inventory, owner string, devices ...string) {
	p := inv.Pools()[0]
	for _, d := range devices {
		l.Take(ledger.Holding{Owner: owner, Pool: p.ID, Device: d})
	}
}

func TestObserve(t *testing.T) {
	blocked := func(site *worlds.Site, host string) *worlds.Site {
		for i := range site.Hosts {
			if site.Hosts[i].Name == host {
				site.Hosts[i].Blocked = &reason.Evidence{Kind: reason.KindHost, Name: host, Code: reason.HostUnusable, Detail: "is not Ready"}
			}
		}
		return site
	}
	kep := []string{"tpu-4x4", "tpu-8x8"}
	tests := map[string]struct {
		site        *worlds.Site
		classes     []string
		held        []string
		quarantined string
		gangs       fold.Gangs
		// what each mode sees
		physical, live, uncharged int
		losses                    string
	}{
		"sound and empty": {worlds.KEP8x8("p"), kep, nil, "", fold.Gangs{}, 16, 16, 0, ""},
		"one gang":        {worlds.KEP8x8("p"), kep, []string{"tpu-4x4-0"}, "", fold.Gangs{Held: 4, Running: 4, Charged: 4}, 16, 16, 0, ""},
		"three of its pods have succeeded": {
			worlds.KEP8x8("p"), kep, []string{"tpu-4x4-0"}, "", fold.Gangs{Held: 4, Running: 4, Charged: 1}, 16, 16, 3, "",
		},
		"it is being released": {worlds.KEP8x8("p"), kep, []string{"tpu-4x4-0"}, "", fold.Gangs{Held: 4}, 16, 12, 0, ""},
		"somebody else holds one host": {
			worlds.KEP8x8("p"), kep, []string{"tpu-2x2-5"}, "", fold.Gangs{}, 16, 12, 0, "",
		},
		"a host is not Ready": {
			blocked(worlds.KEP8x8("p"), "p-h5"), kep, nil, "", fold.Gangs{}, 12, 12, 0, "p-h5 HostUnusable is not Ready",
		},
		"a host is quarantined": {worlds.KEP8x8("p"), kep, nil, "p-h5", fold.Gangs{}, 12, 12, 0, "p-h5 Quarantined"},
		"a rack, its groups counted": {
			worlds.Rack("p"), []string{"gpu-16", "gpu-72"}, []string{"g4-0"}, "", fold.Gangs{Held: 4, Running: 4, Charged: 4}, 18, 16, 0, "",
		},
		"a rack that is held whole": {
			worlds.Rack("p"), []string{"gpu-16", "gpu-72"}, []string{"g18-0"}, "", fold.Gangs{Held: 18, Running: 18, Charged: 18}, 18, 18, 0, "",
		},
		"GPUs": {singles("p", 3), []string{"gpu"}, []string{"gpu-0-0", "gpu-0-1"}, "", fold.Gangs{Held: 2, Running: 2, Charged: 2}, 12, 12, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inv := test.site.Inventory()
			l := ledger.New(inv)
			hold(l, inv, "x/gang", test.held...)
			if test.quarantined != "" {
				l.Quarantine(inv.Pools()[0].ID, test.quarantined)
			}
			f := compiled(t, inv, true, test.classes...)
			var calc capacity.Calculator
			o := f.Observe(&calc, inv, l, test.gangs)
			for live, want := range map[bool]int{false: test.physical, true: test.live} {
				if atLeast, atMost := o.Hardware(live); atLeast != want || atMost != want {
					t.Errorf("live %v: between %d and %d shares, want %d", live, atLeast, atMost, want)
				}
			}
			if got := o.Uncharged(true); got != test.uncharged || o.Uncharged(false) != 0 {
				t.Errorf("%d shares are uncharged, want %d", got, test.uncharged)
			}
			var losses []string
			for _, e := range f.Losses(inv, l) {
				losses = append(losses, strings.TrimSpace(fmt.Sprint(e.Name, " ", e.Code, " ", e.Detail)))
			}
			if got := strings.Join(losses, "; "); got != test.losses {
				t.Errorf("losses %q, want %q", got, test.losses)
			}
		})
	}
}

func TestLossesOfDevicesAndPools(t *testing.T) {
	good, bad := inventory.PoolID{Driver: worlds.Driver, Name: "good"}, inventory.PoolID{Driver: worlds.Driver, Name: "bad"}
	slice := func(id inventory.PoolID, count int64, d inventory.Device) *inventory.Pool {
		return inventory.NewPool(id, []inventory.Published{{
			Name: "s", Pool: id, Generation: 1, SliceCount: count, Devices: []inventory.PublishedDevice{{Device: d}},
		}})
	}
	inv := inventory.Build(inventory.Input{
		Hosts: []inventory.Host{{Name: "h0", Hostname: "h0"}},
		Pools: []*inventory.Pool{
			slice(good, 1, inventory.Device{Name: "d", Hosts: []string{"h0"}, Taints: []inventory.Taint{{Key: "broken", Value: "link", Effect: inventory.NoExecute}}}),
			slice(bad, 2, inventory.Device{Name: "d", Hosts: []string{"h1"}}),
		},
		Classes: []inventory.ClassMatch{{Name: "c", Devices: []inventory.DeviceName{{Pool: good, Name: "d"}, {Pool: bad, Name: "d"}}}},
	})
	f := compiled(t, inv, false, "c")
	want := []reason.Evidence{
		{Kind: reason.KindDevice, Name: "good/d", Code: reason.DeviceTainted, Detail: "broken=link:NoExecute"},
		{Kind: reason.KindPool, Name: "bad", Code: reason.PoolIncomplete, Detail: inv.Pool(bad).Problem.Message},
	}
	if diff := cmp.Diff(want, f.Losses(inv, ledger.New(inv))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A driver takes back the devices that a broken part is in, and the last host of a class leaves: what is gone is lost, and the
// other classes go on.
func TestClassesThatAreGone(t *testing.T) {
	id := inventory.PoolID{Driver: worlds.Driver, Name: "p"}
	device := inventory.Device{Name: "d", Hosts: []string{"h0"}}
	inv := inventory.Build(inventory.Input{
		Hosts: []inventory.Host{{Name: "h0", Hostname: "h0"}},
		Pools: []*inventory.Pool{inventory.NewPool(id, []inventory.Published{{
			Name: "s", Pool: id, Generation: 1, SliceCount: 1, Devices: []inventory.PublishedDevice{{Device: device}},
		}})},
		Classes: []inventory.ClassMatch{{Name: "c", Devices: []inventory.DeviceName{{Pool: id, Name: "d"}}}, {Name: "gone"}},
	})
	l := ledger.New(inv)
	for _, live := range []bool{false, true} {
		for want, classes := range [][]string{{"gone"}, {"gone", "c"}} {
			f := compiled(t, inv, live, classes...)
			var calculate capacity.Calculator
			if n, _ := f.Observe(&calculate, inv, l, fold.Gangs{}).Hardware(live); n != want {
				t.Errorf("live %v: %d shares of classes %v, want %d", live, n, classes, want)
			}
			lost := []reason.Evidence{{Kind: reason.KindClass, Name: "gone", Code: reason.ShapeUnknown}}
			if diff := cmp.Diff(lost, f.Losses(inv, l)); diff != "" {
				t.Errorf("classes %v: (-want +got)\n%s", classes, diff)
			}
		}
	}
}

// What Live promises beyond the charge of gangs that have devices can be had: gangs of the smallest class are given devices
// one after the other, whatever stands already, until what Live says is charged.
func TestLiveCanBeHad(t *testing.T) {
	sites := map[string]struct {
		site    func() *worlds.Site
		classes []string
	}{
		"kep":   {func() *worlds.Site { return worlds.Times(2, worlds.KEP8x8) }, []string{"tpu-4x4", "tpu-8x8"}},
		"racks": {func() *worlds.Site { return worlds.Times(3, worlds.Rack) }, []string{"gpu-16", "gpu-32", "gpu-72"}},
		"cubes": {func() *worlds.Site { return worlds.Cubes(4)("p") }, []string{"v5p-4", "v5p-16", "v5p-64"}},
	}
	for name, world := range sites {
		t.Run(name, func(t *testing.T) {
			inv := world.site().Inventory()
			var devices []*inventory.Device
			for _, class := range world.classes {
				devices = append(devices, inv.Class(class).Devices...)
			}
			small := inv.Class(world.classes[0]).Devices
			f := compiled(t, inv, true, world.classes...)
			for seed := range uint64(100) {
				rng := rand.New(rand.NewPCG(seed, 3))
				l := ledger.New(inv)
				var calc capacity.Calculator
				held := 0
				for range rng.IntN(6) {
					if d := devices[rng.IntN(len(devices))]; l.Free(d) {
						l.Take(ledger.Holding{Owner: "x/" + d.Short(), Pool: d.Pool, Device: d.Name})
						held += len(d.Hosts)
					}
				}
				// Others hold hosts as well, and count for nothing.
				for range rng.IntN(3) {
					if d := small[rng.IntN(len(small))]; l.Free(d) {
						l.Take(ledger.Holding{Owner: "claim/" + d.Short(), Pool: d.Pool, Device: d.Name})
					}
				}
				number, _ := f.Observe(&calc, inv, l, fold.Gangs{Held: held, Running: held, Charged: held}).Hardware(true)
				for charged := held; charged+len(small[0].Hosts) <= number; charged += len(small[0].Hosts) {
					at := slices.IndexFunc(small, l.Free)
					if at < 0 {
						t.Fatalf("seed %d: %d of %d shares are charged, and no %s is free", seed, charged, number, world.classes[0])
					}
					l.Take(ledger.Holding{Owner: "y/" + small[at].Short(), Pool: small[at].Pool, Device: small[at].Name})
				}
			}
		})
	}
}
