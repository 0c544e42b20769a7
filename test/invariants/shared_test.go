package invariants_test

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
)

// shareable publishes a device of the fixture's pool that many claims may have a share of.
func (f *fixture) shareable(name, memory string) {
	f.t.Helper()
	f.must(f.client.Create(f.ctx, &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: f.ns + "-" + name},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, AllNodes: ptr.To(true),
			Pool: resourcev1.ResourcePool{Name: f.ns, Generation: 1, ResourceSliceCount: 3},
			Devices: []resourcev1.Device{{
				Name: name, AllowMultipleAllocations: ptr.To(true),
				Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}},
			}},
		},
	}))
}

// share allocates a share of a device.
func (f *fixture) share(claim *resourcev1.ResourceClaim, device, memory string, entries ...resourcev1.ResourceClaimConsumerReference) {
	f.t.Helper()
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{
			Request: "r", Driver: driver, Pool: f.ns, Device: device, ShareID: ptr.To(uuid.NewUUID()),
			ConsumedCapacity: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)},
		}},
	}}
	claim.Status.ReservedFor = entries
	f.must(f.client.Status().Update(f.ctx, claim))
}

// shares reserves a share of a device for a new Workload.
func (f *fixture) shares(workload, device, memory string) *gang {
	f.t.Helper()
	g := f.reserve(f.workload(workload), epoch1, device)
	f.share(g.claims[0], device, memory, g.hold())
	return g
}
