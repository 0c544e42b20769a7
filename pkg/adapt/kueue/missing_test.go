package kueue_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// The sentence names what the pods ask for, each class once, and passes over what is not there.
func TestPoolMissingNamesTheClasses(t *testing.T) {
	nic := kueuetest.NewTemplate("nic")
	nic.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "any", FirstAvailable: []resourcev1.DeviceSubRequest{
		{Name: "fast", DeviceClassName: "nic-400"}, {Name: "slow", DeviceClassName: "nic-100"},
	}}}
	templates := map[string]*resourcev1.ResourceClaimTemplate{"tpu-4x4": kueuetest.NewTemplate("tpu-4x4"), "nic": nic}
	in := adaptkueue.Lookup{
		Template: func(_, name string) *resourcev1.ResourceClaimTemplate { return templates[name] },
		Claim:    func(_, _ string) *resourcev1.ResourceClaim { return nil },
	}
	wl := workload()
	claims := &wl.Spec.PodSets[0].Template.Spec.ResourceClaims
	*claims = append(*claims, (*claims)[0],
		corev1.PodResourceClaim{Name: "nic", ResourceClaimTemplateName: ptr.To("nic")},
		corev1.PodResourceClaim{Name: "gone", ResourceClaimTemplateName: ptr.To("gone")},
		corev1.PodResourceClaim{Name: "own", ResourceClaimName: ptr.To("own")},
		corev1.PodResourceClaim{Name: "empty"})
	if why := adaptkueue.PoolMissing(wl.Workload, in); why != nil {
		t.Errorf("a gang that waited for nothing: %v", why)
	}
	wl.Condition(berth.ConditionGangReserved, false, kueuetest.Start)
	wl.Status.Conditions[len(wl.Status.Conditions)-1].Reason = "NoFreeSlice"
	const want = "PoolMissing: the gang waited for nic-100, nic-400, tpu-4x4, which no AcceleratorPool matches any more: create the AcceleratorPool again; " +
		"to run the gang without Berth submit it again or take the check off its ClusterQueue"
	if why := adaptkueue.PoolMissing(wl.Workload, in); why == nil || why.Error() != want {
		t.Errorf("\n got %v\nwant %s", why, want)
	}
}
