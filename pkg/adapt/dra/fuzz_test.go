package dra

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/snapshot/fuzztest"
)

// tell is everything that a view says.
func tell(v *View) string {
	text := ""
	for _, h := range v.Inventory.Hosts() {
		host, _ := v.Inventory.Host(h)
		text += fmt.Sprintf("host %+v blocked %+v\n", host.Name, host.Blocked)
	}
	for _, p := range v.Inventory.Pools() {
		text += fmt.Sprintf("pool %s generation %d slices %q counters %v problem %v\n", p.ID, p.Generation, p.Slices, p.Counters, p.Problem)
		for _, d := range p.Devices {
			text += fmt.Sprintf("  device %q hosts %q charge %v taints %v unusable %+v by label %v domain %v shared %v\n", d.Name, d.Hosts, d.Charge, d.Taints, d.Unusable, d.ByLabel, d.Domain, d.Shared)
			for _, c := range d.Capacity {
				text += fmt.Sprintf("    capacity %q %d", c.Name, c.Milli)
				for _, asked := range []int64{0, 1, 1500, c.Milli, c.Milli + 1} {
					takes, ok := c.Takes(asked, asked > 0)
					text += fmt.Sprintf(", %d takes %d %v", asked, takes, ok)
				}
				text += "\n"
			}
		}
	}
	for _, c := range v.Inventory.Classes() {
		text += fmt.Sprintf("class %q %s %q:", c.Name, c.State, c.Problem)
		for _, d := range c.Devices {
			text += " " + d.ID()
		}
		text += "\n"
	}
	return text
}

// FuzzHardware reads whatever drivers, class authors and administrators can write: ResourceSlices, DeviceClasses,
// DeviceTaintRules, AcceleratorPools and the labels of Nodes. What is read depends neither on what was read before nor on
// the order, and every pool that is refused says why.
func FuzzHardware(f *testing.F) {
	fuzztest.Add(f)
	site := fuzztest.Site()
	site.Jobs, site.Workloads, site.Pods, site.ResourceClaims, site.ResourceClaimTemplates, site.Reservations = nil, nil, nil, nil, nil, nil
	site.AdmissionChecks, site.ResourceFlavors, site.ClusterQueues, site.LocalQueues, site.Configs = nil, nil, nil, nil, nil
	b := fuzztest.New(site)
	kept := NewCache()
	f.Fuzz(func(t *testing.T, data []byte) {
		s := b.Broken(data, site)
		view := NewCache().Read(s)
		want := tell(view)
		if diff := cmp.Diff(want, tell(kept.Read(s))); diff != "" {
			t.Errorf("a cache that has read other things says otherwise: %s", diff)
		}
		if diff := cmp.Diff(want, tell(NewCache().Read(fuzztest.Reversed(s)))); diff != "" {
			t.Errorf("in another order it says otherwise: %s", diff)
		}
		for _, p := range view.Inventory.Pools() {
			if p.Problem != nil && (p.Problem.Code == "" || p.Problem.Message == "") {
				t.Errorf("pool %s is refused without a reason: %+v", p.ID, p.Problem)
			}
			for _, c := range p.Counters {
				if c.Milli < 0 && p.Usable() {
					t.Errorf("counter %s/%s of pool %s is negative", c.Set, c.Name, p.ID)
				}
			}
		}
		for _, c := range view.Inventory.Classes() {
			for _, d := range c.Devices {
				if !view.Inventory.Pool(d.Pool).Usable() {
					t.Errorf("class %s offers %s of a pool that is refused", c.Name, d.ID())
				}
			}
		}
	})
}

// FuzzClaims reads ResourceClaims as anybody may have written them, with Berth's annotations, and GangReservations as they
// come back from the API server: what is held, what a pod's claim asks for, and what would be written for it.
func FuzzClaims(f *testing.F) {
	fuzztest.Add(f)
	site := fuzztest.Site()
	view := NewCache().Read(site)
	taken := *site
	taken.AcceleratorPools, taken.ResourceSlices, taken.DeviceClasses, taken.DeviceTaintRules, taken.Nodes = nil, nil, nil, nil, nil
	taken.Jobs, taken.Workloads, taken.Pods = nil, nil, nil
	taken.AdmissionChecks, taken.ResourceFlavors, taken.ClusterQueues, taken.LocalQueues, taken.Configs = nil, nil, nil, nil, nil
	b := fuzztest.New(site)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := b.Broken(data, &taken)
		book := func(l *ledger.Ledger, holdings []ledger.Holding) string {
			for _, h := range holdings {
				l.Take(h)
			}
			text := fmt.Sprint(l.Overdrawn(), l.HeldHosts())
			for _, p := range view.Inventory.Pools() {
				for _, c := range p.Counters {
					text += fmt.Sprint(" ", l.Left(p.ID, c.Set, c.Name))
				}
				for _, d := range p.Devices {
					text += fmt.Sprint(" ", d.Name, l.Free(d), l.Holders(d))
				}
			}
			return text
		}
		told := book(ledger.New(view.Inventory), view.Holdings(s, nil))
		if diff := cmp.Diff(told, book(ledger.New(view.Inventory), view.Holdings(fuzztest.Reversed(s), nil))); diff != "" {
			t.Errorf("in another order something else is taken: %s", diff)
		}
		for _, h := range view.Holdings(s, nil) {
			if view.Managed.Owner(h.Pool) == nil && h.Reservation == "" {
				t.Errorf("a claim holds %s/%s, which nobody manages", h.Pool, h.Device)
			}
		}
		for _, template := range s.ResourceClaimTemplates {
			spec := &template.Spec.Spec
			claim, managed, refusal := Claim(spec, "tpu", view.Inventory)
			if refusal != nil && (!managed || refusal.Message == "") {
				t.Errorf("managed %v, refused with %+v", managed, refusal)
			}
			for _, r := range claim.Requests {
				device := view.Inventory.Device(inventory.PoolID{Driver: fuzztest.Slices, Name: "pod-a"}, "four-0")
				result, err := Allocation(spec, "claim", placement.Instance{Devices: []placement.Device{{
					Request: r.Name, Pool: device.Pool, Name: device.Name, Generation: 1, Hosts: device.Hosts,
				}}}, site, metav1.Now())
				if (result == nil || len(result.Devices.Results) != 1) && err == nil {
					t.Errorf("allocated %+v", result)
				}
			}
		}
	})
}
