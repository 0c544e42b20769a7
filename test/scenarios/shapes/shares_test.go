package shapes

import (
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// shareable is a device of 80Gi memory, of which pods get whole tens of Gi, and one ten if they do not say how much.
func shareable(name string) resourcev1.Device {
	ten := ptr.To(resource.MustParse("10Gi"))
	return resourcev1.Device{
		Name: name, AllowMultipleAllocations: ptr.To(true),
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {
			Value: resource.MustParse("80Gi"),
			RequestPolicy: &resourcev1.CapacityRequestPolicy{
				Default: ten, ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: ten, Step: ten},
			},
		}},
	}
}

// memory makes the template of a share with so much of it, and returns its name.
func (f *fleet) memory(amount string) string {
	f.Helper()
	t := f.Template(part)
	t.Name = "part-" + amount
	t.Spec.Spec.Devices.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{
		Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(amount + "Gi")},
	}
	f.Create(t)
	return t.Name
}

// TestGangsShareDevices: two gangs stand in the same devices until their capacity is used up, and a third waits for it.
func TestGangsShareDevices(t *testing.T) {
	f := begin(t)
	for i := range 2 {
		host := fmt.Sprintf("part-%d", i)
		f.host(host, nil)
		f.local(part, host, shareable("gpu-0"))
	}
	f.class(part)
	f.run()

	// 25 is rounded up to 30, so that 20 are left of each device: no room for a third pod of the same gang.
	first := f.seat(scene.Gang("first", f.memory("25"), 4),
		"2 times 30Gi memory of part-0/gpu-0, 2 times 30Gi memory of part-1/gpu-0 on part-0 (2 pods), part-1 (2 pods)")
	second := f.seat(scene.Gang("second", f.memory("20"), 2), "20Gi memory of part-0/gpu-0, 20Gi memory of part-1/gpu-0 on part-0, part-1")
	f.consumed(map[string]string{"part-0/gpu-0": "80Gi", "part-1/gpu-0": "80Gi"})
	third := f.wait(scene.Gang("third", part, 1),
		fmt.Sprintf("NoFreeSlice: no part is free: 2 of 2 are held by %s, %s", f.holder(first), f.holder(second)))
	large := f.wait(scene.Gang("too-large", f.memory("90"), 1),
		"ShapeUnknown: no part is free: 2 of 2 are too small: part-0/gpu-0 cannot give 90Gi memory, part-1/gpu-0 cannot give 90Gi memory")

	f.DeleteJob(large)

	f.Finish(second)
	f.AwaitSeated(third)
	f.AwaitReserved(third, "True Reserved: 10Gi memory of gpu-0 (part-0) on part-0")
	f.Eventually("what is left of the second gang", func(context.Context) error {
		if n := len(f.claims()); n != 5 {
			return fmt.Errorf("there are %d pinned claims, want 5", n)
		}
		return nil
	})
	f.consumed(map[string]string{"part-0/gpu-0": "70Gi", "part-1/gpu-0": "60Gi"})
	f.end(first, third)
}

// consumed fails the test unless the pinned claims together take so much memory of each device, in shares of their own.
func (f *fleet) consumed(want map[string]string) {
	f.Helper()
	sums := map[string]resource.Quantity{}
	ids := map[types.UID]string{}
	for _, c := range f.claims() {
		if c.Status.Allocation == nil {
			f.Errorf("ResourceClaim %s is not allocated", c.Name)
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.ShareID == nil || ids[*r.ShareID] != "" {
				f.Errorf("ResourceClaim %s has share %v, as has %q", c.Name, r.ShareID, ids[ptr.Deref(r.ShareID, "")])
				continue
			}
			ids[*r.ShareID] = c.Name
			sum := sums[r.Pool+"/"+r.Device]
			sum.Add(r.ConsumedCapacity["memory"])
			sums[r.Pool+"/"+r.Device] = sum
		}
	}
	have := map[string]string{}
	for device, sum := range sums {
		have[device] = sum.String()
	}
	if !maps.Equal(have, want) {
		f.Errorf("of the devices is taken %v, want %v", have, want)
	}
}

// TestSharesBesideKubeScheduler: where the fence only observes, kube-scheduler counts the shares that Berth gave out and
// Berth those of kube-scheduler.
func TestSharesBesideKubeScheduler(t *testing.T) {
	f := begin(t)
	f.host("beside-0", nil)
	f.local(part, "beside-0", shareable("gpu-0"))
	f.class(part, func(p *berth.AcceleratorPoolSpec) { p.Fence = berth.FenceObserve })
	f.run()

	gang := f.seat(scene.Gang("gang", f.memory("50"), 1), "50Gi memory of gpu-0 (beside-0) on beside-0")
	large, small := f.stranger("large", f.memory("40")), f.stranger("small", f.memory("30"))
	f.Eventually("the small stranger", func(context.Context) error {
		f.Get(small)
		if small.Spec.NodeName != "beside-0" {
			return fmt.Errorf("it is on %q: %v", small.Spec.NodeName, small.Status.Conditions)
		}
		return nil
	})
	f.Get(large)
	if large.Spec.NodeName != "" {
		t.Errorf("of 80Gi 50 and 30 are taken, and another 40 stand on %s", large.Spec.NodeName)
	}
	waits := f.wait(scene.Gang("waits", part, 1),
		fmt.Sprintf("NoFreeSlice: no part is free: 1 of 1 is held by %s, %s", f.holder(gang), f.heldBy(small)))

	f.dismiss(large)
	f.dismiss(small)
	f.AwaitSeated(waits)
	f.AwaitReserved(waits, "True Reserved: 10Gi memory of gpu-0 (beside-0) on beside-0")
	f.consumed(map[string]string{"beside-0/gpu-0": "60Gi"})
	f.end(gang, waits)
}

// stranger is a pod of nobody that has a claim made from a template.
func (f *fleet) stranger(name, template string) *corev1.Pod {
	f.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []corev1.Container{{Name: "c", Image: "c", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}},
			ResourceClaims:                []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}},
		},
	}
	f.Create(pod)
	f.Cleanup(func() { f.dismiss(pod) })
	return pod
}

// heldBy is how a refusal names a stranger that holds something: by its claim.
func (f *fleet) heldBy(pod *corev1.Pod) string {
	f.Helper()
	if len(pod.Status.ResourceClaimStatuses) != 1 {
		f.Fatalf("pod %s has claims %v", pod.Name, pod.Status.ResourceClaimStatuses)
	}
	return f.Namespace + "/" + *pod.Status.ResourceClaimStatuses[0].ResourceClaimName
}

// dismiss deletes a stranger and with it its claim; it may be gone already.
func (f *fleet) dismiss(pod *corev1.Pod) {
	f.Helper()
	if err := f.Client.Delete(context.Background(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		f.Errorf("deleting pod %s: %v", pod.Name, err)
	}
}
