package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// world is hardware of which the named devices are held.
func world(t *testing.T, f hardware.Family, held ...string) (*hardware.Hardware, placement.World) {
	t.Helper()
	h, err := f.Build()
	if err != nil {
		t.Fatal(err)
	}
	l := h.Ledger()
	for _, name := range held {
		pool, device, _ := strings.Cut(name, "/")
		for _, p := range h.Inventory.Pools() {
			if p.ID.Name == pool {
				l.Take(ledger.Holding{Owner: name, Reservation: name, Pool: p.ID, Device: device})
			}
		}
	}
	if len(l.Holdings()) != len(held) {
		t.Fatalf("%v are held", l.Holdings())
	}
	return h, placement.World{Inventory: h.Inventory, Ledger: l}
}

func place(t *testing.T, name string, h *hardware.Hardware, w placement.World, g gang.Gang) string {
	t.Helper()
	p, err := policy.New(name, policy.Options{Hardware: h, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	d := p.Place(g, w)
	if !d.Fits() {
		return "refused: " + d.Refusal.Message
	}
	if r := placement.Recheck(g, d, w); r != nil {
		t.Fatalf("%s: the decision does not stand: %v", name, r)
	}
	dev := d.PodSets[0].Claims[0].Instances[0].Devices[0]
	if !slices.Equal(d.PodSets[0].Hosts, dev.Hosts) || len(dev.Hosts) != g.PodSets[0].Count {
		t.Fatalf("%s: hosts %v on device %+v", name, d.PodSets[0].Hosts, dev)
	}
	return dev.Pool.Name + "/" + dev.Name
}

// TestStories is what each policy does where they differ. Devices of KEP8x8 are called class-firstHost.
func TestStories(t *testing.T) {
	kep := hardware.Family{Name: "kep"}
	two := hardware.Family{Name: "kep", Pools: 2}
	for _, row := range []struct {
		name   string
		family hardware.Family
		held   []string
		class  string
		hosts  int
		want   map[string]string
	}{
		{"an empty pool", kep, nil, "tpu-4x4", 4, map[string]string{
			policy.FirstFit: "pool-0/tpu-4x4-0", policy.BestFit: "pool-0/tpu-4x4-0", policy.Slurm: "pool-0/tpu-4x4-0", policy.Berth: "pool-0/tpu-4x4-0",
		}},
		// Host 13 is held. First fit breaks the whole half; the others stay in the half that is broken, two of them in the
		// quarter that is.
		{"a broken quarter at the end", kep, []string{"pool-0/tpu-2x2-13"}, "tpu-2x2", 1, map[string]string{
			policy.FirstFit: "pool-0/tpu-2x2-0", policy.BestFit: "pool-0/tpu-2x2-12", policy.Slurm: "pool-0/tpu-2x2-12", policy.Berth: "pool-0/tpu-2x2-12",
		}},
		// A 4x4 in the first half: the other 4x4 of that half is where the next should go.
		{"half of a half", kep, []string{"pool-0/tpu-4x4-12"}, "tpu-4x4", 4, map[string]string{
			policy.FirstFit: "pool-0/tpu-4x4-0", policy.BestFit: "pool-0/tpu-4x4-8", policy.Slurm: "pool-0/tpu-4x4-8", policy.Berth: "pool-0/tpu-4x4-8",
		}},
		// A quarter that three hold, and one that one holds: both are lost now. The one that may heal is left alone by Berth
		// alone.
		{"wounds", kep, []string{"pool-0/tpu-2x2-0", "pool-0/tpu-2x2-12", "pool-0/tpu-2x2-13", "pool-0/tpu-2x2-14", "pool-0/tpu-4x4-4", "pool-0/tpu-4x4-8"}, "tpu-2x2", 1, map[string]string{
			policy.FirstFit: "pool-0/tpu-2x2-1", policy.BestFit: "pool-0/tpu-2x2-1", policy.Slurm: "pool-0/tpu-2x2-1", policy.Berth: "pool-0/tpu-2x2-15",
		}},
		// Slurm goes to the pool with fewer idle hosts where nothing else differs.
		{"two broken pools", two, []string{"pool-0/tpu-2x2-0", "pool-1/tpu-2x2-0", "pool-1/tpu-4x8-8"}, "tpu-2x2", 1, map[string]string{
			policy.FirstFit: "pool-0/tpu-2x2-1", policy.BestFit: "pool-0/tpu-2x2-1", policy.Slurm: "pool-1/tpu-2x2-1", policy.Berth: "pool-1/tpu-2x2-1",
		}},
		{"no room", kep, []string{"pool-0/tpu-4x8-0", "pool-0/tpu-2x2-8", "pool-0/tpu-2x2-12"}, "tpu-4x4", 4, map[string]string{
			policy.FirstFit: "refused: no tpu-4x4 is free", policy.Random: "refused: no tpu-4x4 is free",
			policy.BestFit: "refused: no tpu-4x4 is free", policy.Slurm: "refused: no tpu-4x4 is free",
		}},
		{"one place", kep, []string{"pool-0/tpu-4x8-8", "pool-0/tpu-2x2-1"}, "tpu-4x4", 4, map[string]string{
			policy.FirstFit: "pool-0/tpu-4x4-4", policy.Random: "pool-0/tpu-4x4-4", policy.BestFit: "pool-0/tpu-4x4-4", policy.Slurm: "pool-0/tpu-4x4-4", policy.Berth: "pool-0/tpu-4x4-4",
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, w := world(t, row.family, row.held...)
			for name, want := range row.want {
				if got := place(t, name, h, w, ask(row.class, row.hosts)); got != want {
					t.Errorf("%s takes %s, want %s", name, got, want)
				}
			}
		})
	}
}

// Random takes each free device about equally often, and the same for the same seed.
func TestRandomIsEven(t *testing.T) {
	h, w := world(t, hardware.Family{Name: "kep"}, "pool-0/tpu-4x8-0")
	p, err := policy.New(policy.Random, policy.Options{Hardware: h, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for range 8000 {
		count[p.Place(ask("tpu-2x2", 1), w).PodSets[0].Claims[0].Instances[0].Devices[0].Name]++
	}
	for i := 8; i < 16; i++ {
		if n := count[fmt.Sprint("tpu-2x2-", i)]; n < 850 || n > 1150 {
			t.Errorf("host %d was taken %d of 8000 times", i, n)
		}
	}
	if len(count) != 8 {
		t.Errorf("%v", count)
	}
}

func TestWhatPoliciesDoNotPlace(t *testing.T) {
	h, w := world(t, hardware.Family{Name: "kep"})
	two := ask("tpu-2x2", 1)
	two.PodSets[0].Claims[0].Requests[0].Count = 2
	slices := ask("tpu-4x4", 8)
	slices.PodSets[0].Slices = 2
	for _, g := range []gang.Gang{two, slices, {PodSets: append(ask("tpu-2x2", 1).PodSets, ask("tpu-2x2", 1).PodSets...)}} {
		p, err := policy.New(policy.BestFit, policy.Options{Hardware: h})
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Place(g, w); d.Fits() || d.Refusal.Code != reason.Unsupported {
			t.Errorf("%+v", d)
		}
	}
	if _, err := policy.New("worst", policy.Options{Hardware: h}); err == nil || err.Error() != `is "worst", must be one of firstfit, random, bestfit, slurm, berth, berth-demand, exact` {
		t.Error(err)
	}
}
