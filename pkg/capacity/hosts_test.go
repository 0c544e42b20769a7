package capacity_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capacity"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/pkg/reason"
)

// countedByHand counts as a person would who looks at every device by name.
func countedByHand(inv *inventory.Inventory, l *ledger.Ledger, in func(inventory.PoolID) bool) capacity.Hosts {
	var c capacity.Hosts
	for _, name := range inv.Hosts() {
		named, offered := false, false
		for _, p := range inv.Pools() {
			larger := slices.ContainsFunc(p.Devices, func(d *inventory.Device) bool { return len(d.Hosts) > 1 })
			for _, d := range p.Devices {
				if !in(p.ID) || !slices.Contains(d.Hosts, name) {
					continue
				}
				named = true
				well := !slices.ContainsFunc(d.Hosts, func(h string) bool { host, known := inv.Host(h); return !known || host.Blocked != nil })
				if well && p.Usable() && len(d.Taints) == 0 && l.Free(d) && (len(d.Hosts) > 1 || !larger) {
					offered = true
				}
			}
		}
		if !named {
			continue
		}
		c.Total++
		h, _ := inv.Host(name)
		held := slices.Contains(l.HeldHosts(), name)
		if held {
			c.Held++
		}
		if l.Quarantined(name) {
			c.Quarantined++
		}
		if h.Blocked != nil {
			continue
		}
		c.Usable++
		if !held && !l.Quarantined(name) {
			c.Free++
			if !offered {
				c.Stranded++
			}
		}
	}
	return c
}

func TestCountHostsAgreesWithCountingByHand(t *testing.T) {
	var all capacity.Hosts
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 19))
		var in inventory.Input
		for i := range 1 + rng.IntN(3) {
			site := worlds.Random(rng, fmt.Sprint("p", i), 2+rng.IntN(6), 1+rng.IntN(8))
			for k := range site.Slices {
				for d := range site.Slices[k].Devices {
					if rng.IntN(8) == 0 {
						site.Slices[k].Devices[d].Taints = []inventory.Taint{{Key: "broken", Effect: inventory.NoExecute}}
					}
				}
				if rng.IntN(8) == 0 {
					site.Slices[k].SliceCount++
				}
			}
			in.Pools = append(in.Pools, inventory.NewPool(site.Slices[0].Pool, site.Slices))
			for _, h := range site.Hosts {
				if rng.IntN(6) == 0 {
					h.Blocked = &reason.Evidence{Code: reason.HostUnusable}
				}
				in.Hosts = append(in.Hosts, h)
			}
		}
		inv := inventory.Build(in)
		l := ledger.New(inv)
		for i := range rng.IntN(4) {
			p := inv.Pools()[rng.IntN(len(inv.Pools()))]
			d := p.Devices[rng.IntN(len(p.Devices))]
			l.Take(ledger.Holding{Owner: fmt.Sprint("x/", i), Pool: p.ID, Device: d.Name})
			if rng.IntN(2) == 0 {
				l.Quarantine(p.ID, d.Hosts[0])
			}
		}
		only := inv.Pools()[0].ID
		for _, in := range []func(inventory.PoolID) bool{
			func(inventory.PoolID) bool { return true },
			func(id inventory.PoolID) bool { return id == only },
		} {
			got := capacity.CountHosts(inv, l, in)
			if diff := cmp.Diff(countedByHand(inv, l, in), got); diff != "" {
				t.Fatalf("seed %d: (-by hand +counted)\n%s", seed, diff)
			}
			all.Total, all.Held, all.Quarantined, all.Stranded = all.Total+got.Total, all.Held+got.Held, all.Quarantined+got.Quarantined, all.Stranded+got.Stranded
		}
		for _, class := range inv.Classes() {
			devices, free := capacity.CountClass(inv, l, func(id inventory.PoolID) bool { return id == only }, class)
			var calculate capacity.Calculator
			want := calculate.In(inv, l, func(id inventory.PoolID) bool { return id == only }, class.Name)
			if devices != want.Devices || free != want.Free {
				t.Fatalf("seed %d: %d devices of %s, %d free; want %d and %d", seed, devices, class.Name, free, want.Devices, want.Free)
			}
		}
	}
	if all.Held < 100 || all.Quarantined < 50 || all.Stranded < 50 {
		t.Errorf("too little variety: %+v", all)
	}
}
