package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
)

func acceleratorPool(name, driver string, fence v1alpha1.FenceMode, selector *v1alpha1.PoolSelector) *v1alpha1.AcceleratorPool {
	return &v1alpha1.AcceleratorPool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.AcceleratorPoolSpec{Driver: driver, Fence: fence, PoolSelector: selector},
	}
}

// pools creates AcceleratorPools for one test and returns when their fences stand.
func (w *world) pools(t *testing.T, pools ...*v1alpha1.AcceleratorPool) {
	t.Helper()
	for _, pool := range pools {
		must(t, w.admin.Create(t.Context(), pool))
		t.Cleanup(func() { must(t, w.admin.Delete(context.Background(), pool)) })
	}
	must(t, w.awaitProbe(t.Context()))
}

func leavesToBerth(device, pool, driver, claim, acceleratorPool string) string {
	return fmt.Sprintf("device %s of pool %s (driver %s) cannot be allocated to ResourceClaim %s: AcceleratorPool %s leaves "+
		"its devices to Berth. Submit the job to a Kueue queue that has Berth's admission check, or use a DeviceClass that "+
		"does not select this pool.", device, pool, driver, claim, acceleratorPool)
}

// Scenarios 25 and 34.
func TestOnlyBerthAllocatesFromAFencedPool(t *testing.T) {
	w := fenced(t)
	ns := w.namespace(t)
	w.pools(t,
		acceleratorPool("named", "named.example.com", "", &v1alpha1.PoolSelector{Names: []string{"pod-a", "pod-b"}}),
		acceleratorPool("prefixed", "prefixed.example.com", v1alpha1.FenceEnforce, &v1alpha1.PoolSelector{Prefixes: []string{"pod-"}}),
		acceleratorPool("whole", "whole.example.com", v1alpha1.FenceEnforce, nil),
		acceleratorPool("observed", "observed.example.com", v1alpha1.FenceObserve, nil),
	)
	for i, tc := range []struct {
		user, driver, pool string
		by                 string // the AcceleratorPool that refuses; empty: allowed
	}{
		{scheduler, "named.example.com", "pod-a", "named"},
		{scheduler, "named.example.com", "pod-b", "named"},
		{"my-scheduler", "named.example.com", "pod-b", "named"},
		{carla, "named.example.com", "pod-a", "named"},
		{admin, "named.example.com", "pod-a", "named"},
		{berth, "named.example.com", "pod-a", ""},
		// Names are exact.
		{scheduler, "named.example.com", "pod-a2", ""},
		{scheduler, "named.example.com", "pod", ""},
		{scheduler, "named.example.com", "x/pod-a", ""},
		{scheduler, "Named.example.com", "pod-a", ""},
		{scheduler, "named.example.com.au", "pod-a", ""},
		{scheduler, "ed.example.com", "pod-a", ""},
		{scheduler, "prefixed.example.com", "pod-a", "prefixed"},
		{scheduler, "prefixed.example.com", "pod-0/b", "prefixed"},
		{berth, "prefixed.example.com", "pod-a", ""},
		{scheduler, "prefixed.example.com", "pod", ""},
		{scheduler, "prefixed.example.com", "a-pod-a", ""},
		{scheduler, "whole.example.com", "any", "whole"},
		{berth, "whole.example.com", "any", ""},
		{scheduler, "observed.example.com", "any", ""},
		{scheduler, "other.example.com", "pod-a", ""},
	} {
		t.Run(fmt.Sprintf("%02d %s %s %s", i, tc.user, tc.driver, tc.pool), func(t *testing.T) {
			c := claim(ns, fmt.Sprintf("claim-%d", i))
			w.create(t, editor, c)
			allocated(tc.driver, tc.pool)(c)
			want := ""
			if tc.by != "" {
				want = leavesToBerth("slice-4x4-a", tc.pool, tc.driver, ns+"/"+c.Name, tc.by)
			}
			expect(t, w.allocator(t, tc.user).Status().Update(t.Context(), c), policy.ClaimStatus, want)
		})
	}

	t.Run("any result counts", func(t *testing.T) {
		c := claim(ns, "two-results", func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests[0].Exactly.Count = 2 })
		w.create(t, editor, c)
		allocated("other.example.com", "pod-a")(c)
		results := &c.Status.Allocation.Devices.Results
		*results = append(*results, resourcev1.DeviceRequestAllocationResult{
			Request: "tpu", Driver: "whole.example.com", Pool: "p", Device: "d",
		})
		expect(t, w.as(t, scheduler).Status().Update(t.Context(), c), policy.ClaimStatus,
			leavesToBerth("d", "p", "whole.example.com", ns+"/two-results", "whole"))
	})
	t.Run("the largest selector and claim stay within the cost limits", func(t *testing.T) {
		selector := &v1alpha1.PoolSelector{}
		for i := range 256 {
			selector.Names = append(selector.Names, fmt.Sprintf("%s%03d", strings.Repeat("n", 250), i))
		}
		for i := range 64 {
			selector.Prefixes = append(selector.Prefixes, fmt.Sprintf("%s%02d", strings.Repeat("p", 240), i))
		}
		w.pools(t, acceleratorPool("largest", "largest.example.com", "", selector))
		c := claim(ns, "largest", func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests[0].Exactly.Count = 32 })
		w.create(t, editor, c)
		fill := func(last string) {
			allocated("largest.example.com", "")(c)
			results := &c.Status.Allocation.Devices.Results
			*results = nil
			for i := range 32 {
				pool := fmt.Sprintf("%s%02dx", strings.Repeat("p", 240), 64+i)
				if i == 31 {
					pool = last
				}
				*results = append(*results, resourcev1.DeviceRequestAllocationResult{
					Request: "tpu", Driver: "largest.example.com", Pool: pool, Device: fmt.Sprintf("d%d", i),
				})
			}
		}
		fill(selector.Names[255])
		expect(t, w.as(t, scheduler).Status().Update(t.Context(), c.DeepCopy()), policy.ClaimStatus,
			leavesToBerth("d31", selector.Names[255], "largest.example.com", ns+"/largest", "largest"))
		fill("other")
		must(t, w.as(t, scheduler).Status().Update(t.Context(), c))
	})
	t.Run("a patch is a write too", func(t *testing.T) {
		c := claim(ns, "patched")
		w.create(t, editor, c)
		before := c.DeepCopy()
		allocated("whole.example.com", "p")(c)
		expect(t, w.as(t, scheduler).Status().Patch(t.Context(), c, client.MergeFrom(before)), policy.ClaimStatus,
			leavesToBerth("slice-4x4-a", "p", "whole.example.com", ns+"/patched", "whole"))
	})
}

// allocator is a user that RBAC lets allocate.
func (w *world) allocator(t *testing.T, user string) client.Client {
	if user == "my-scheduler" {
		must(t, w.ApplyYAML(t.Context(), `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-my-scheduler}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:kube-scheduler"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: my-scheduler}]
`))
	}
	return w.as(t, user)
}

func TestAdminAccessTakesNothing(t *testing.T) {
	w := fenced(t)
	ns := w.namespace(t)
	must(t, w.ApplyYAML(t.Context(), `{apiVersion: v1, kind: Namespace, metadata: {name: `+ns+
		`, labels: {resource.kubernetes.io/admin-access: "true"}}}`))
	w.pools(t, acceleratorPool("admin-access", "whole.example.com", v1alpha1.FenceEnforce, nil))

	monitor := claim(ns, "monitor", func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests[0].Exactly.AdminAccess = ptr.To(true) })
	w.create(t, editor, monitor)
	allocated("whole.example.com", "p")(monitor)
	monitor.Status.Allocation.Devices.Results[0].AdminAccess = ptr.To(true)
	expect(t, w.as(t, scheduler).Status().Update(t.Context(), monitor), "", "")

	t.Log("a result that claims adminAccess for a request without it is not believed")
	forged := claim(ns, "forged")
	w.create(t, editor, forged)
	allocated("whole.example.com", "p")(forged)
	forged.Status.Allocation.Devices.Results[0].AdminAccess = ptr.To(true)
	expect(t, w.as(t, scheduler).Status().Update(t.Context(), forged), policy.ClaimStatus,
		leavesToBerth("slice-4x4-a", "p", "whole.example.com", ns+"/forged", "admin-access"))
}

// What was allocated before the fence went up is neither touched nor stuck.
func TestFenceLeavesOldHoldersAlone(t *testing.T) {
	w := fenced(t)
	ns := w.namespace(t)
	c := claim(ns, "old", allocated("old.example.com", "p"))
	w.create(t, editor, c)
	w.pools(t, acceleratorPool("old-holders", "old.example.com", "", nil))

	s := w.as(t, scheduler)
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{podEntry("a")}
	must(t, s.Status().Update(t.Context(), c))
	c.Status.ReservedFor = nil
	must(t, w.as(t, claimsCtl).Status().Update(t.Context(), c))
	c.Status.Allocation = nil
	must(t, s.Status().Update(t.Context(), c))
	allocated("old.example.com", "p")(c)
	expect(t, s.Status().Update(t.Context(), c), policy.ClaimStatus,
		leavesToBerth("slice-4x4-a", "p", "old.example.com", ns+"/old", "old-holders"))
}

func held(claim, message string) string {
	return "ResourceClaim " + claim + " is held by Berth for GangReservation gang-1: " + message
}

func TestHeldClaimIsChangedByBerthAlone(t *testing.T) {
	w := fenced(t)
	ns := w.namespace(t)
	w.pools(t, acceleratorPool("held", "held.example.com", "", nil))
	const (
		allocationMsg = "its allocation is changed by Berth alone. Delete the job to give the devices back."
		holdMsg       = "the Workload's entry in reservedFor is removed by Berth alone. Delete the job to give the devices back."
		consumerMsg   = "consumers are added to reservedFor by Berth alone. Pods that are not of its gang cannot use it."
	)
	seat := func(names ...string) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) {
			c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{workloadEntry()}
			for _, name := range names {
				c.Status.ReservedFor = append(c.Status.ReservedFor, podEntry(name))
			}
		}
	}
	for _, tc := range []struct {
		name, user string
		change     func(*resourcev1.ResourceClaim)
		want       string
	}{
		{"controller-removes-a-pod", claimsCtl, seat("a"), ""},
		{"controller-removes-all-pods", claimsCtl, seat(), ""},
		{"scheduler-removes-a-pod", scheduler, seat("b"), ""},
		{"scheduler-adds-a-pod", scheduler, seat("a", "b", "c"), consumerMsg},
		{"controller-adds-a-pod", claimsCtl, seat("a", "b", "c"), consumerMsg},
		{"cluster-admin-swaps-a-pod", carla, seat("a", "c"), consumerMsg},
		{"pod-entry-renamed", carla, func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor[1].Name = "z" }, consumerMsg},
		{"hold-removed", carla, func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor = c.Status.ReservedFor[1:] }, holdMsg},
		{"reservedFor-cleared", scheduler, func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor = nil }, holdMsg},
		{"released", carla, func(c *resourcev1.ResourceClaim) { c.Status = resourcev1.ResourceClaimStatus{} }, allocationMsg},
		{"device-condition", carla, func(c *resourcev1.ResourceClaim) {
			c.Status.Devices = []resourcev1.AllocatedDeviceStatus{{
				Driver: "held.example.com", Pool: "p", Device: "slice-4x4-a", Conditions: []metav1.Condition{{
					Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now(),
				}},
			}}
		}, ""},
		{"berth-seats", berth, seat("a", "b", "c"), ""},
		{"berth-unseats", berth, seat(), ""},
		{"berth-releases", berth, func(c *resourcev1.ResourceClaim) { c.Status = resourcev1.ResourceClaimStatus{} }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := claim(ns, "berth."+strings.ToLower(tc.name)+"-0", pinned("held.example.com", "p"), seat("a", "b"))
			w.create(t, berth, c)
			tc.change(c)
			want := tc.want
			if want != "" {
				want = held(ns+"/"+c.Name, want)
			}
			expect(t, w.as(t, tc.user).Status().Update(t.Context(), c), policy.HeldClaims, want)
		})
	}

	t.Run("the largest claim stays within the cost limits", func(t *testing.T) {
		var names []string
		for i := range 255 {
			names = append(names, fmt.Sprintf("a-pod-whose-name-is-about-as-long-as-they-come-in-such-gangs-%03d-x7k2p", i))
		}
		c := claim(ns, "berth.full-0", pinned("held.example.com", "p"), seat(names...), func(c *resourcev1.ResourceClaim) {
			for i := range c.Status.ReservedFor {
				c.Status.ReservedFor[i].UID = types.UID(fmt.Sprintf("0d6f9a52-6c1e-4c55-9a3f-3b6a4e2f%04d", i))
			}
		})
		w.create(t, berth, c)
		must(t, w.as(t, claimsCtl).Status().Update(t.Context(), c))
		c.Status.ReservedFor = c.Status.ReservedFor[:255]
		must(t, w.as(t, claimsCtl).Status().Update(t.Context(), c))
		c.Status.ReservedFor = append(c.Status.ReservedFor, podEntry("late"))
		expect(t, w.as(t, scheduler).Status().Update(t.Context(), c), policy.HeldClaims, held(ns+"/berth.full-0", consumerMsg))
	})
	t.Run("claims that are not Berth's are nobody's business", func(t *testing.T) {
		c := claim(ns, "free", allocated("other.example.com", "p"))
		w.create(t, editor, c)
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{podEntry("a")}
		must(t, w.as(t, scheduler).Status().Update(t.Context(), c))
		c.Status = resourcev1.ResourceClaimStatus{}
		must(t, w.as(t, claimsCtl).Status().Update(t.Context(), c))
	})
}
