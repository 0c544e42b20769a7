package worlds_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/placement/worlds"
)

func TestFamilies(t *testing.T) {
	tests := map[string]struct {
		site                   *worlds.Site
		hosts, devices, slices int
		laminar                bool
	}{
		"KEP 8x8":   {worlds.KEP8x8("p"), 16, 23, 2, true},
		"rack":      {worlds.Rack("p"), 18, 35, 2, true},
		"140 cubes": {worlds.Cubes(140)("p"), 2240, 4470, 89, true},
		"v5p torus": {worlds.Torus("p"), 2240, 6300, 118, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inv := test.site.Inventory()
			p := inv.Pools()[0]
			if p.Problem != nil {
				t.Fatal(p.Problem)
			}
			n := p.Plan().Neighbours()
			if len(test.site.Hosts) != test.hosts || len(p.Devices) != test.devices || len(test.site.Slices) != test.slices || n.Laminar != test.laminar || !n.Complete {
				t.Errorf("%d hosts, %d devices, %d slices, laminar %v, complete %v", len(test.site.Hosts), len(p.Devices), len(test.site.Slices), n.Laminar, n.Complete)
			}
			for _, c := range inv.Classes() {
				for _, d := range c.Devices {
					if len(d.Hosts) != c.Members[0].Span {
						t.Fatalf("%s: %d hosts", d.ID(), len(d.Hosts))
					}
				}
			}
		})
	}
}

func BenchmarkNeighbours(b *testing.B) {
	for name, site := range map[string]*worlds.Site{"Cubes": worlds.Cubes(140)("p"), "Torus": worlds.Torus("p")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				inv := site.Inventory()
				b.StartTimer()
				inv.Pools()[0].Plan().Neighbours()
			}
		})
	}
}
