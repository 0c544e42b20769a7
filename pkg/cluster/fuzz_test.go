package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/snapshot/fuzztest"
)

// FuzzWorld is everything from outside at once: a world is made of whatever others have written, every gang that waits is
// placed, and what it gets is charged. The world depends on the snapshot alone; no placement makes or enlarges an
// overdraw; a gang that gets nothing is told why.
func FuzzWorld(f *testing.F) {
	fuzztest.Add(f)
	site := fuzztest.Site()
	if over := cluster.New().World(site).Ledger.Overdrawn(); len(over) > 0 {
		f.Fatal("the site is overdrawn before it is broken", over)
	}
	b := fuzztest.New(site)
	warm := cluster.New()
	f.Fuzz(func(t *testing.T, data []byte) {
		s := b.Broken(data, site)
		w := cluster.New().World(s)
		want := print(w)
		if diff := cmp.Diff(want, print(cluster.New().World(fuzztest.Reversed(s)))); diff != "" {
			t.Errorf("in another order: %s", diff)
		}
		if diff := cmp.Diff(want, print(warm.World(s))); diff != "" {
			t.Errorf("a cluster that has seen other worlds: %s", diff)
		}
		lookup := adaptkueue.NewLookup(s, w.Inventory, nil)
		for _, wl := range s.Workloads {
			req, refusal := adaptkueue.Read(wl, lookup)
			if refusal != nil || !req.Managed {
				continue
			}
			place(t, w, req.Gang)
		}
	})
}

func place(t *testing.T, w placement.World, g gang.Gang) {
	before := w.Ledger.Overdrawn()
	d := placement.NewScored(2000).Place(g, w)
	if !d.Fits() {
		if d.Refusal == nil || d.Refusal.Code == "" || d.Refusal.Message == "" || len(d.Refusal.Message) > 4096 {
			t.Errorf("refused with %+v", d.Refusal)
		}
		return
	}
	for i, ps := range d.PodSets {
		if len(ps.Hosts) != g.PodSets[i].Count {
			t.Errorf("%d hosts for %d pods", len(ps.Hosts), g.PodSets[i].Count)
		}
	}
	cluster.ChargeDecision(w, g.Key.String(), g, d)
	if diff := cmp.Diff(before, w.Ledger.Overdrawn()); diff != "" {
		t.Errorf("placing %s overdraws: %s", g.Key, diff)
	}
}
