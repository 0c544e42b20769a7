package kueue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/snapshot/fuzztest"
)

// FuzzWorkload reads Workloads, their Jobs and templates, and Kueue's configuration, as users and Kueue can write them,
// annotations included. A gang is read the same each time and makes sense, or a sentence says why not.
func FuzzWorkload(f *testing.F) {
	fuzztest.Add(f)
	site := fuzztest.Site()
	b := fuzztest.New(site)
	inv := dra.NewCache().Read(site).Inventory
	asks := *site
	asks.AcceleratorPools, asks.ResourceSlices, asks.DeviceClasses, asks.DeviceTaintRules = nil, nil, nil, nil
	f.Fuzz(func(t *testing.T, data []byte) {
		s := b.Broken(data, &asks)
		lookup := NewLookup(s, inv, nil)
		queues := NewQueues(s.LocalQueues, s.ClusterQueues, s.ResourceFlavors, nil, nil)
		checks := OurChecks(s.AdmissionChecks)
		for _, wl := range s.Workloads {
			if state := checks.Of(wl); state != nil {
				Wants(wl, state)
				NamedReservation(state)
				if Epoch(wl, state.Name) != Epoch(wl.DeepCopy(), state.Name) {
					t.Error("one admission has two epochs")
				}
			}
			queues.QueueOf(wl)
			queues.PriorityOf(wl)
			queues.Admit(wl)
			req, refusal := Read(wl, lookup)
			again, refusalAgain := Read(wl.DeepCopy(), NewLookup(fuzztest.Reversed(s), inv, nil))
			if diff := cmp.Diff(req, again); diff != "" {
				t.Errorf("read twice: %s", diff)
			}
			if diff := cmp.Diff(refusal, refusalAgain); diff != "" {
				t.Errorf("refused twice: %s", diff)
			}
			switch {
			case refusal != nil:
				if refusal.Code == "" || refusal.Message == "" {
					t.Errorf("refused with %+v", refusal)
				}
			case req.Managed:
				if req.Owner.Name == "" || len(req.Gang.PodSets) == 0 {
					t.Errorf("a gang without owner or pod sets: %+v", req)
				}
				for _, ps := range req.Gang.PodSets {
					if len(ps.Claims) == 0 || ps.Slices < 0 {
						t.Errorf("pod set %+v", ps)
					}
				}
			}
		}
		for _, j := range s.Jobs {
			wl := Assume(j, metav1.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, AssumedPodSet{Name: "main", Jobs: 1, Spec: &j.Spec})
			_, _ = Read(queues.Admit(wl), lookup) // must not panic; whatever it is is read above
		}
	})
}

// FuzzReservation reads GangReservations back, as old releases and hands may have written them.
func FuzzReservation(f *testing.F) {
	fuzztest.Add(f)
	site := fuzztest.Site()
	b := fuzztest.New(site)
	only := *site
	only.AcceleratorPools, only.ResourceSlices, only.DeviceClasses, only.DeviceTaintRules, only.Nodes, only.Pods = nil, nil, nil, nil, nil, nil
	only.ResourceClaims, only.ResourceClaimTemplates, only.Jobs, only.ResourceFlavors, only.ClusterQueues, only.LocalQueues = nil, nil, nil, nil, nil, nil
	f.Fuzz(func(t *testing.T, data []byte) {
		s := b.Broken(data, &only)
		for _, res := range s.Reservations {
			if updates := Updates(res); len(updates) != len(res.Spec.PodSets) {
				t.Errorf("%d updates for %d pod sets", len(updates), len(res.Spec.PodSets))
			}
			devices := 0
			for _, ps := range res.Spec.PodSets {
				for _, c := range ps.Claims {
					devices += len(c.Devices)
				}
			}
			for _, ps := range Reserved(res) {
				for _, c := range ps.Claims {
					devices -= len(c.Devices)
				}
			}
			if devices != 0 {
				t.Errorf("%d devices are not told", devices)
			}
			Slice(res)
			if d := DemandFor(res, nil); !d.Gone {
				t.Errorf("without a Workload the demand is %+v", d)
			}
			for _, wl := range s.Workloads {
				if d := DemandFor(res, wl); d.Gone != (wl.UID != res.Spec.WorkloadRef.UID) {
					t.Errorf("demand of another Workload: %+v", d)
				}
			}
		}
	})
}
