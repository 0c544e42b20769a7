package fold_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/pkg/reason"
)

// withNICs are two hosts with GPUs in one pool and a NIC each in another.
func withNICs() *worlds.Site {
	site := singles("p", 2)
	id := inventory.PoolID{Driver: "nic.example.com", Name: "q"}
	nics := inventory.Published{Name: "q-devices", Pool: id, Generation: 1, SliceCount: 1}
	for _, h := range site.Hosts {
		nics.Devices = append(nics.Devices, inventory.PublishedDevice{Device: inventory.Device{Name: "nic-" + h.Name, Hosts: []string{h.Name}}})
		site.Classes["nic"] = append(site.Classes["nic"], inventory.DeviceName{Pool: id, Name: "nic-" + h.Name})
	}
	site.Slices = append(site.Slices, nics)
	return site
}

// What becomes of the older fold's hardware for a moment gives its hosts to no younger fold, unless it says that it has them
// no more.
func TestHostsStayWithTheirFold(t *testing.T) {
	gone := func(s *worlds.Site, _ *fold.Fold) { s.Slices = s.Slices[2:] }
	const overlap = "FoldOverlap: CapacityFold old counts 2 hosts, the first of them p-h0 already: " +
		"put the classes into one fold, or select pools or classes that share no host"
	for name, row := range map[string]struct {
		change func(*worlds.Site, *fold.Fold)
		want   string
	}{
		"nothing":                         {func(*worlds.Site, *fold.Fold) {}, overlap},
		"the pool is withheld":            {func(s *worlds.Site, _ *fold.Fold) { s.Slices[0].SliceCount, s.Slices[1].SliceCount = 3, 3 }, overlap},
		"the pool is gone":                {gone, overlap},
		"the pool and its Nodes are gone": {func(s *worlds.Site, f *fold.Fold) { gone(s, f); s.Hosts = nil }, ""},
		"the pool is gone, and devices name its missing Nodes": {func(s *worlds.Site, f *fold.Fold) {
			gone(s, f)
			for i := range s.Hosts {
				s.Hosts[i].Blocked = &reason.Evidence{Kind: reason.KindHost, Name: s.Hosts[i].Name, Code: reason.HostMissing}
			}
		}, ""},
		"the pool is gone, and its hosts are cordoned": {func(s *worlds.Site, f *fold.Fold) {
			gone(s, f)
			for i := range s.Hosts {
				s.Hosts[i].Blocked = &reason.Evidence{Kind: reason.KindHost, Name: s.Hosts[i].Name, Code: reason.HostUnusable}
			}
		}, overlap},
		"the pool has no such devices":              {func(s *worlds.Site, _ *fold.Fold) { s.Classes["gpu"] = nil }, ""},
		"the class is gone":                         {func(s *worlds.Site, _ *fold.Fold) { delete(s.Classes, "gpu") }, overlap},
		"the class is gone, and nothing stands":     {func(s *worlds.Site, f *fold.Fold) { delete(s.Classes, "gpu"); f.Stands = false }, ""},
		"the pool is gone, and the fold is another": {func(s *worlds.Site, f *fold.Fold) { gone(s, f); f.Revision = "2" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var c fold.Compiler
			compile := func(when string, s *worlds.Site, old fold.Fold, want string) {
				t.Helper()
				got := ""
				if p := c.Compile(s.Inventory(), []fold.Fold{old, tpus("young", named("q"), "nic")})[1].Problem; p != nil {
					got = p.Error()
				}
				if got != want {
					t.Errorf("%s: the younger fold has %q, want %q", when, got, want)
				}
			}
			old := stands(tpus("old", named("p"), "gpu"))
			old.Revision = "1"
			compile("before", withNICs(), old, overlap)
			changed, edited := withNICs(), old
			row.change(changed, &edited)
			compile("then", changed, edited, row.want)
			compile("and again", changed, edited, row.want)
			compile("afterwards", withNICs(), old, overlap)
		})
	}
}
