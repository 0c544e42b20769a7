package shapes

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/test/scene"
)

// with gives every pod a second claim.
func with(template string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		spec := &j.Spec.Template.Spec
		spec.ResourceClaims = append(spec.ResourceClaims, corev1.PodResourceClaim{Name: template, ResourceClaimTemplateName: ptr.To(template)})
		spec.Containers[0].Resources.Claims = append(spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: template})
	}
}

// TestTwoClaimsInOnePod: each pod has one host of a slice, whose claim it shares, and a NIC of its own on the same host.
func TestTwoClaimsInOnePod(t *testing.T) {
	f := begin(t)
	const label = "example.com/half"
	for i := range 6 {
		host := fmt.Sprintf("both-%d", i)
		f.host(host, map[string]string{label: fmt.Sprint(i / 2)})
		f.local(nic, host, resourcev1.Device{Name: "nic-0"})
	}
	f.pairs("slices", nil)
	f.class(pair)
	f.class(nic)
	f.run()

	// One slice lacks a NIC and another is taken. The third has all that a gang needs.
	busy := f.seat(scene.Gang("busy", nic, 1, on(corev1.LabelHostname, "both-1")), "nic-0 (both-1) on both-1")
	alone := f.seat(scene.Gang("alone", pair, 2, on(label, "1")), "pair-1 (slices) on both-2, both-3")
	gang := f.seat(scene.Gang("gang", pair, 2, with(nic)), "slices/pair-2, both-4/nic-0, both-5/nic-0 on both-4, both-5")
	set := f.reservation(gang).Spec.PodSets[0]
	pods, claims := f.ranks(gang), f.claims()
	for rank, want := range []map[string]string{
		{"tpu": "slices/pair-2", nic: "both-4/nic-0"},
		{"tpu": "slices/pair-2", nic: "both-5/nic-0"},
	} {
		pod := pods[fmt.Sprint(rank)]
		for _, ref := range pod.Spec.ResourceClaims {
			c := claims[ptr.Deref(ref.ResourceClaimName, "")]
			if ref.ResourceClaimTemplateName != nil || c == nil {
				t.Errorf("pod %s has claim %+v", pod.Name, ref)
				continue
			}
			results := c.Status.Allocation.Devices.Results
			if have := results[0].Pool + "/" + results[0].Device; len(results) != 1 || have != want[ref.Name] {
				t.Errorf("claim %s of pod %s has %d devices, the first is %s, want %s", ref.Name, pod.Name, len(results), have, want[ref.Name])
			}
		}
	}
	if len(set.Claims) != 2 || set.Claims[0].PodsPerClaim != 2 || set.Claims[1].PodsPerClaim != 1 {
		t.Errorf("the claims of the gang are %+v", set.Claims)
	}
	f.charged(gang, "4")

	waits := f.wait(scene.Gang("waits", pair, 2, with(nic)),
		"NoFreeSlice: devices are free, but not together: needs 1 of 1 free pair, needs 2 of 3 free nic")
	f.Finish(busy)
	f.AwaitSeated(waits)
	f.AwaitReserved(waits, "True Reserved: slices/pair-0, both-0/nic-0, both-1/nic-0 on both-0, both-1")
	f.end(alone, gang, waits)
}

// charged fails the test unless Kueue charged so many shares for the Job.
func (f *fleet) charged(job *batchv1.Job, want string) {
	f.Helper()
	wl, err := f.WorkloadOf(f.Context(), job)
	if err != nil {
		f.Fatal(err)
	}
	have := wl.Status.Admission.PodSetAssignments[0].ResourceUsage[shares]
	if have.String() != want {
		f.Errorf("%s is charged %s shares, want %s", job.Name, have.String(), want)
	}
}

// TestTwoClaimsOfOneClass: two claims of a pod for devices of one class are two devices of its host.
func TestTwoClaimsOfOneClass(t *testing.T) {
	f := begin(t)
	for i, devices := range []int{2, 3, 2} {
		host := fmt.Sprintf("double-%d", i)
		f.host(host, nil)
		var all []resourcev1.Device
		for d := range devices {
			all = append(all, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", d)})
		}
		f.local(gpu, host, all...)
	}
	f.class(gpu)
	f.run()
	single := f.seat(scene.Gang("single", gpu, 1, on(corev1.LabelHostname, "double-0")), "gpu-0 (double-0) on double-0")
	gang := f.Submit(scene.Gang("gang", gpu, 2, with(gpu)))
	f.AwaitSeated(gang)
	set := f.reservation(gang).Spec.PodSets[0]
	if len(set.Claims) != 2 {
		t.Fatalf("the claims of the gang are %+v", set.Claims)
	}
	used := map[string]bool{}
	for rank, host := range set.Hosts {
		for _, claim := range set.Claims {
			d := claim.Devices[rank]
			if used[d.Pool+"/"+d.Device] || d.Pool != host || claim.PodsPerClaim != 1 {
				t.Errorf("rank %d on %s has %s/%s", rank, host, d.Pool, d.Device)
			}
			used[d.Pool+"/"+d.Device] = true
		}
	}
	f.charged(gang, "4")
	waits := f.wait(scene.Gang("waits", gpu, 1, with(gpu)),
		"NoFreeSlice: devices are free, but not together: 0 pods find all their devices on one host, 1 is needed (gpu, gpu)")
	f.Finish(single)
	f.AwaitSeated(waits)
	f.AwaitReserved(waits, "True Reserved: gpu-0, gpu-1 (double-0) on double-0")
	f.end(gang, waits)
}
