package hardware

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

func TestScenario30_ForeignClaimFromBeforeTheFence(t *testing.T) {
	s := begin(t)
	r := newRack(s, "before", 8)
	r.publish(r.devices(4, 2)...)
	// Nobody owns the hardware, so kube-scheduler gives it to whoever asks.
	stranger := r.stranger("stranger", quad, "before-6")
	if got := held(stranger); got != "before/rack-4-1" {
		t.Fatalf("the stranger holds %s", got)
	}
	run(s)
	r.own()
	r.awaitCondition(berth.PoolFenced, "True Fenced: writes by others are refused; claims of others hold devices here from before: "+
		s.Namespace+"/stranger")
	r.awaitHolders("stranger before/rack-4-1")
	r.awaitShapes("rack-4 1/2", "rack-2 2/4")

	first := s.Submit(scene.Gang("first", quad, 4))
	s.AwaitSeated(first)
	s.AwaitReserved(first, r.on("rack-4-0", r.hosts[:4]))
	second := s.Submit(scene.Gang("second", quad, 4))
	s.AwaitReserved(second, fmt.Sprintf("False NoFreeSlice: no rack-4 is free: 2 of 2 are held by %s/%s, %s/stranger",
		s.Namespace, reservation(s, first).Name, s.Namespace))
	r.assertUntouched(stranger)

	r.dismiss(stranger)
	s.AwaitSeated(second)
	s.AwaitReserved(second, r.on("rack-4-1", r.hosts[4:]))
	r.awaitHolders()
	s.Finish(first)
	s.Finish(second)
	s.AwaitNoTrace()
}

func TestScenario30_ForeignClaimsWhereTheFenceOnlyObserves(t *testing.T) {
	s := begin(t)
	r := newRack(s, "observe", 8)
	r.publish(r.devices(4, 2)...)
	r.Create(r.owner(berth.FenceObserve))
	run(s)
	r.awaitCondition(berth.PoolFenced, "False Observe: others may allocate from these pools: their claims are counted, nothing keeps them away")

	stranger := r.stranger("stranger", pair, "observe-0")
	r.awaitHolders("stranger observe/rack-2-0")
	gang := s.Submit(scene.Gang("gang", quad, 4))
	s.AwaitSeated(gang)
	s.AwaitReserved(gang, r.on("rack-4-1", r.hosts[4:]))
	// kube-scheduler counts the gang's claim as well: of four pairs one is left.
	another := r.stranger("another", pair, "")
	r.awaitHolders("stranger observe/rack-2-0", "another observe/rack-2-1")
	waiting := s.Submit(scene.Gang("waiting", pair, 2))
	s.AwaitReserved(waiting, fmt.Sprintf("False NoFreeSlice: no rack-2 is free: 4 of 4 are held by %[1]s/another, %[1]s/%[2]s, %[1]s/stranger",
		s.Namespace, reservation(s, gang).Name))
	r.assertUntouched(stranger)
	r.assertUntouched(another)

	r.dismiss(another)
	s.AwaitSeated(waiting)
	s.AwaitReserved(waiting, r.on("rack-2-1", r.hosts[2:4]))
	r.assertUntouched(stranger)
	r.dismiss(stranger)
	s.Finish(gang)
	s.Finish(waiting)
	s.AwaitNoTrace()
}

// TestScenario30_OverdrawByOthers: where nothing is fenced somebody may write an allocation into a gang's slice.
func TestScenario30_OverdrawByOthers(t *testing.T) {
	s := begin(t)
	r := newRack(s, "overdraw", 8)
	r.publish(r.devices(4, 2)...)
	r.Create(r.owner(berth.FenceObserve))
	run(s)
	gang := s.Submit(scene.Gang("gang", quad, 4))
	s.AwaitSeated(gang)
	s.AwaitReserved(gang, r.on("rack-4-0", r.hosts[:4]))
	before := portrait(s, gang)

	taker := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "taker"}, Spec: s.Template(pair).Spec.Spec,
	}
	s.Create(taker)
	taker.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "slice", Driver: r.driver, Pool: r.name, Device: "rack-2-1"},
		}},
		NodeSelector: r.device(2, 1).NodeSelector,
	}
	if err := s.Client.Status().Update(s.Context(), taker); err != nil {
		t.Fatal(err)
	}
	holders := fmt.Sprintf("(%s/%s, %s/taker)", s.Namespace, reservation(s, gang).Name, s.Namespace)
	r.awaitCondition(berth.PoolFenced, "False Overdrawn: others have taken what was not free: counter hosts/overdraw-2 of pool overdraw "+holders+
		", counter hosts/overdraw-3 of pool overdraw "+holders)

	// What is not concerned is given out, and nothing that is.
	pairs := s.Submit(scene.Gang("pairs", pair, 2))
	s.AwaitSeated(pairs)
	s.AwaitReserved(pairs, r.on("rack-2-2", r.hosts[4:6]))
	if after := portrait(s, gang); after != before {
		t.Errorf("the gang was touched: it was\n%s\nand is\n%s", before, after)
	}
	s.Finish(pairs)
	s.Finish(gang)
	next := s.Submit(scene.Gang("next", quad, 4))
	s.AwaitSeated(next)
	s.AwaitReserved(next, r.on("rack-4-1", r.hosts[4:]))
	r.assertUntouched(taker)
	if err := s.Client.Delete(s.Context(), taker); err != nil {
		t.Fatal(err)
	}
	r.awaitCondition(berth.PoolFenced, "False Observe: others may allocate from these pools: their claims are counted, nothing keeps them away")
	s.Finish(next)
	s.AwaitNoTrace()
}

// stranger is a pod with a claim of its own that has nothing to do with Kueue or Berth. It is scheduled by
// kube-scheduler, to the host if one is given. The claim is returned as the scheduler left it.
func (r *rack) stranger(name, class, host string) *resourcev1.ResourceClaim {
	r.Helper()
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name}, Spec: r.Template(class).Spec.Spec,
	}
	r.Create(claim)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []corev1.Container{{Name: "c", Image: "c", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "d"}}}}},
			ResourceClaims:                []corev1.PodResourceClaim{{Name: "d", ResourceClaimName: ptr.To(name)}},
		},
	}
	if host != "" {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: host}
	}
	r.Create(pod)
	r.Eventually("scheduling "+name, func(ctx context.Context) error {
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("pod %s is %s: %v", name, pod.Status.Phase, pod.Status.Conditions)
		}
		return r.Client.Get(ctx, client.ObjectKeyFromObject(claim), claim)
	})
	return claim
}

// held names what a claim holds.
func held(claim *resourcev1.ResourceClaim) string {
	if claim.Status.Allocation == nil || len(claim.Status.Allocation.Devices.Results) != 1 {
		return "nothing"
	}
	result := claim.Status.Allocation.Devices.Results[0]
	return result.Pool + "/" + result.Device
}

// assertUntouched fails the test when anybody has written the claim.
func (r *rack) assertUntouched(claim *resourcev1.ResourceClaim) {
	r.Helper()
	now := claim.DeepCopy()
	r.Get(now)
	if now.ResourceVersion != claim.ResourceVersion {
		r.Errorf("ResourceClaim %s was written: it was\n%v\nand is\n%v", claim.Name, claim, now)
	}
}

// dismiss ends a stranger.
func (r *rack) dismiss(claim *resourcev1.ResourceClaim) {
	r.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: claim.Name}}
	for _, obj := range []client.Object{pod, claim} {
		if err := r.Client.Delete(r.Context(), obj); err != nil {
			r.Fatalf("dismissing %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

// awaitHolders waits until the AcceleratorPool lists these foreign claims of the namespace, as "name device".
func (r *rack) awaitHolders(want ...string) {
	r.Helper()
	r.Eventually("holders in AcceleratorPool "+r.name, func(ctx context.Context) error {
		p := r.owner("")
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		var have []string
		for _, h := range p.Status.Holders {
			if h.Namespace != r.Namespace {
				return fmt.Errorf("holder %+v is in another namespace", h)
			}
			have = append(have, h.Name+" "+h.Device)
		}
		if !slices.Equal(have, want) {
			return fmt.Errorf("they are %v and should be %v", have, want)
		}
		return nil
	})
}
