package hardware_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
)

func TestFamilies(t *testing.T) {
	for _, row := range []struct {
		family hardware.Family
		hosts  int
		offers string
	}{
		{hardware.Family{Name: "kep"}, 16, "tpu-2x2 1, tpu-4x4 4, tpu-4x8 8, tpu-8x8 16"},
		{hardware.Family{Name: "kep", Pools: 3}, 48, "tpu-2x2 1, tpu-4x4 4, tpu-4x8 8, tpu-8x8 16"},
		{hardware.Family{Name: "rack", Pools: 2}, 36, "gpu-4 1, gpu-8 2, gpu-16 4, gpu-32 8, gpu-64 16, gpu-72 18"},
		{hardware.Family{Name: "tree", Size: 12, Spans: []int{4, 1}}, 12, "n1 1, n4 4"},
		{hardware.Family{Name: "cubes", Size: 2}, 32, "v5p-1 1, v5p-2 2, v5p-4 4, v5p-8 8, v5p-16 16, v5p-32 32"},
		{hardware.Family{Name: "windows", Extent: [3]int{2, 2, 1}}, 64, "v5p-1 1, v5p-2 2, v5p-4 4, v5p-8 8, v5p-16 16, v5p-32 32, v5p-64 64"},
		// Windows of 256 hosts and more exist, and no claim serves so many pods.
		{hardware.Family{Name: "torus"}, 2240, "v5p-1 1, v5p-2 2, v5p-4 4, v5p-8 8, v5p-16 16, v5p-32 32, v5p-48 48, v5p-64 64, v5p-128 128, v5p-160 160"},
	} {
		h, err := row.family.Build()
		if err != nil {
			t.Fatal(err)
		}
		var offers []string
		for _, o := range h.Offers() {
			offers = append(offers, fmt.Sprint(o.Class, " ", o.Hosts))
		}
		if got := strings.Join(offers, ", "); h.Hosts() != row.hosts || got != row.offers {
			t.Errorf("%+v: %d hosts, %s", row.family, h.Hosts(), got)
		}
		if len(h.Ledger().Holdings()) != 0 {
			t.Errorf("%+v: something is held", row.family)
		}
	}
}

func TestFamiliesThatCannotBe(t *testing.T) {
	for _, row := range []struct {
		family hardware.Family
		want   string
	}{
		{hardware.Family{}, `family: is "", must be one of kep, rack, tree, cubes, torus, windows`},
		{hardware.Family{Name: "kep", Size: 3}, "size: only trees and cubes have a size"},
		{hardware.Family{Name: "kep", Spans: []int{1}}, "spans: only a tree has spans"},
		{hardware.Family{Name: "kep", Extent: [3]int{1, 1, 1}}, "extent: only windows have an extent"},
		{hardware.Family{Name: "kep", Pools: -1}, "pools: is -1, must be between 1 and 512"},
		{hardware.Family{Name: "torus", Pools: 10}, "pools: 10 pools of 2240 hosts are more than the 20000 hosts that are possible"},
		{hardware.Family{Name: "tree", Size: 16}, "spans: a tree needs the hosts of its devices, for instance [1, 2, 4, 8]"},
		{hardware.Family{Name: "tree", Size: 80, Spans: []int{1}}, "size: is 80, must be between 1 and 64 hosts"},
		{hardware.Family{Name: "tree", Size: 16, Spans: []int{2, 3}}, "spans: 2 does not divide 3"},
		{hardware.Family{Name: "tree", Size: 16, Spans: []int{2, 2}}, "spans: 2 stands there twice"},
		{hardware.Family{Name: "tree", Size: 16, Spans: []int{32}}, "spans: 32 is not between 1 and the size, 16"},
		{hardware.Family{Name: "cubes"}, "size: is 0, must be between 1 and 256 cubes"},
		{hardware.Family{Name: "windows"}, "extent: must be three numbers between 1 and 16"},
		{hardware.Family{Name: "windows", Extent: [3]int{8, 8, 1}}, "extent: a plane of 8 by 8 cubes is larger than the 32 that are possible"},
	} {
		if _, err := row.family.Build(); err == nil || err.Error() != row.want {
			t.Errorf("%+v:\n got %v\nwant %s", row.family, err, row.want)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, row := range []struct {
		family, more hardware.Family
		units        int
	}{
		{hardware.Family{Name: "kep", Pools: 4}, hardware.Family{Name: "kep", Pools: 5}, 4},
		{hardware.Family{Name: "torus"}, hardware.Family{Name: "torus", Pools: 2}, 1},
		{hardware.Family{Name: "cubes", Size: 7}, hardware.Family{Name: "cubes", Size: 8}, 7},
		{hardware.Family{Name: "cubes", Size: 7, Pools: 2}, hardware.Family{Name: "cubes", Size: 7, Pools: 3}, 2},
	} {
		if row.family.Units() != row.units {
			t.Errorf("%+v has %d units", row.family, row.family.Units())
		}
		if diff := cmp.Diff(row.more, row.family.WithUnits(row.units+1)); diff != "" {
			t.Error(diff)
		}
	}
}

// What files hold stays held, and each call of Ledger stands alone.
func TestReadFiles(t *testing.T) {
	h, err := hardware.Read([]string{"testdata/held.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := h.Ledger()
	if got := l.Holdings(); len(got) != 1 || got[0].Owner != "ml/running" || got[0].Device != "pair-0" {
		t.Errorf("%+v", got)
	}
	l.Give(l.Holdings()[0])
	if len(h.Ledger().Holdings()) != 1 {
		t.Error("a ledger of hardware is not a copy")
	}
	if diff := cmp.Diff([]hardware.Offer{{Class: "single", Hosts: 1}, {Class: "pair", Hosts: 2}}, h.Offers()); diff != "" {
		t.Error(diff)
	}
}
