package policy_test

import (
	"context"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// What the API server takes for an interconnect.
func TestInterconnects(t *testing.T) {
	w := fenced(t)
	for name, tc := range map[string]struct {
		interconnect *v1alpha1.Interconnect
		want         string
	}{
		"none":      {nil, ""},
		"label":     {&v1alpha1.Interconnect{NodeLabel: "topology.example.com/rack"}, ""},
		"attribute": {&v1alpha1.Interconnect{DeviceAttribute: "tpu.example.com/cube"}, ""},
		"both":      {&v1alpha1.Interconnect{NodeLabel: "rack", DeviceAttribute: "tpu.example.com/cube"}, "interconnect needs exactly one of nodeLabel and deviceAttribute"},
		"neither":   {&v1alpha1.Interconnect{}, "interconnect needs exactly one of nodeLabel and deviceAttribute"},
		"bare name": {&v1alpha1.Interconnect{DeviceAttribute: "cube"}, "deviceAttribute must be qualified: <domain>/<name>, for example tpu.example.com/cube"},
		"two parts": {&v1alpha1.Interconnect{DeviceAttribute: "a/b/c"}, "deviceAttribute must be qualified: <domain>/<name>, for example tpu.example.com/cube"},
	} {
		pool := acceleratorPool(strings.ReplaceAll(name, " ", "-"), "interconnect.example.com", v1alpha1.FenceObserve, nil)
		pool.Spec.Interconnect = tc.interconnect
		err := w.admin.Create(t.Context(), pool)
		if err == nil {
			t.Cleanup(func() { must(t, w.admin.Delete(context.Background(), pool)) })
		}
		if got := err == nil; got != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// The API server takes Berth's allocation of shares as it is: the ID of a share, and what the share consumes.
func TestSharesAreTaken(t *testing.T) {
	w := fenced(t)
	ns := w.namespace(t)
	const driver = "shares.example.com"
	w.pools(t, acceleratorPool("shares", driver, v1alpha1.FenceEnforce, nil))
	s := &snapshot.Snapshot{ResourceSlices: []*resourcev1.ResourceSlice{
		dratest.NewSlice("s", driver, "p").Device(dratest.NewDevice("d", "x").On("n").Shared().Has("memory", "16Gi", nil)).ResourceSlice,
	}, DeviceClasses: []*resourcev1.DeviceClass{dratest.Class("gpu", "true")}}
	for i, name := range []string{"a", "b"} {
		c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: *dratest.Request("gpu", 1)}
		must(t, w.admin.Create(t.Context(), c))
		allocation, err := dra.Allocation(&c.Spec, c.UID, placement.Instance{Devices: []placement.Device{{
			Request: "r", Pool: inventory.PoolID{Driver: driver, Name: "p"}, Generation: 1, Name: "d", Hosts: []string{"n"},
			Share: true, Capacity: []inventory.Amount{{Name: "memory", Milli: 16 << 30 * 1000}},
		}}}, s, metav1.Now())
		must(t, err)
		c.Status.Allocation = allocation
		must(t, w.berth.Status().Update(t.Context(), c))
		var kept resourcev1.ResourceClaim
		must(t, w.admin.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, &kept))
		r := kept.Status.Allocation.Devices.Results[0]
		memory := r.ConsumedCapacity["memory"]
		if r.ShareID == nil || *r.ShareID != *allocation.Devices.Results[0].ShareID || memory.String() != "16Gi" {
			t.Errorf("claim %d: share %s of %s", i, ptr.Deref(r.ShareID, "none"), memory.String())
		}
	}
}
