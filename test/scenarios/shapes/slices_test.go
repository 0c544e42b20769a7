package shapes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// TestTwoSlices: a pod set of two equal slices; the ranks fill one after the other.
func TestTwoSlices(t *testing.T) {
	f := begin(t)
	f.run()
	two := asks(berth.AnnotationSlices, "2")
	first := f.Submit(scene.Gang("first", "tpu-4x4", 8, two))
	f.AwaitSeated(first)
	f.equalSlices(first, 4)
	single := f.Submit(scene.Gang("single", "tpu-4x4", 4))
	f.AwaitSeated(single)
	f.equalSlices(single, 4)
	// One is free, and half is not taken.
	second := f.wait(scene.Gang("second", "tpu-4x4", 8, two),
		fmt.Sprintf("NoFreeSlice: 2 tpu-4x4 are needed and only 1 is free: 3 of 4 are held by %s, %s", f.holder(first), f.holder(single)))
	f.Finish(single)
	f.AwaitSeated(second)
	f.equalSlices(second, 4)
	f.end(first, second)
}

// equalSlices fails the test unless the Job's pods stand on devices of so many hosts each, the ranks in order: those of the
// first device on its hosts, then those of the next, each with the claim of its device.
func (f *fleet) equalSlices(job *batchv1.Job, hosts int) {
	f.Helper()
	set := f.reservation(job).Spec.PodSets[0]
	if len(set.Claims) != 1 || int(set.Claims[0].PodsPerClaim) != hosts || len(set.Claims[0].Devices)*hosts != len(set.Hosts) {
		f.Fatalf("%s has %+v", job.Name, set)
	}
	pods, claims := f.ranks(job), f.claims()
	for i, d := range set.Claims[0].Devices {
		ranks := set.Hosts[i*hosts : (i+1)*hosts]
		if int(d.Instance) != i || !slices.Equal(slices.Sorted(slices.Values(ranks)), slices.Sorted(slices.Values(d.Hosts))) {
			f.Errorf("ranks %d and on of %s stand on %v, device %d is %s on %v", i*hosts, job.Name, ranks, d.Instance, d.Device, d.Hosts)
		}
		claim := fmt.Sprintf("%s-%d", set.Claims[0].Prefix, i)
		var entries []string
		for rank, host := range ranks {
			pod := pods[fmt.Sprint(i*hosts+rank)]
			entries = append(entries, pod.Name)
			if have := *pod.Spec.ResourceClaims[0].ResourceClaimName; pod.Spec.NodeName != host || have != claim {
				f.Errorf("pod %s is on %s with claim %s, want %s with %s", pod.Name, pod.Spec.NodeName, have, host, claim)
			}
		}
		c := claims[claim]
		if c == nil || len(c.Status.Allocation.Devices.Results) != 1 || c.Status.Allocation.Devices.Results[0].Device != d.Device {
			f.Errorf("ResourceClaim %s should have device %s: %+v", claim, d.Device, c)
			continue
		}
		var have []string
		for _, entry := range c.Status.ReservedFor {
			if entry.Resource == "pods" {
				have = append(have, entry.Name)
			}
		}
		slices.Sort(entries)
		if slices.Sort(have); !slices.Equal(have, entries) {
			f.Errorf("ResourceClaim %s is reserved for %v, want %v", claim, have, entries)
		}
	}
}

// noneOf returns nil when nothing that Berth made for a Job is left.
func (f *fleet) noneOf(job *batchv1.Job) func(context.Context) error {
	return func(ctx context.Context) error {
		var list berth.GangReservationList
		if err := f.Client.List(ctx, &list); err != nil {
			return err
		}
		for i := range list.Items {
			if r := &list.Items[i]; r.Namespace == f.Namespace && r.Spec.Owner.Name == job.Name {
				return fmt.Errorf("%s has GangReservation %s", job.Name, strings.TrimSpace(r.Name+" "+string(r.Status.Phase)))
			}
		}
		return nil
	}
}
