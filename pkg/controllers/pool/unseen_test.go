package pool

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/snapshot"
)

func allocatedClaim(name, uid, of string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(uid)}}
	if of != "" {
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: of, Pool: "p", Device: "d"}},
		}}
	}
	return c
}

func reader(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
}

// A fence stands only when the cache shows what was allocated behind it before.
func TestFenceIsWithheldUntilAllIsSeen(t *testing.T) {
	late, other := dratest.Pool("late.example.com"), dratest.Pool("other.example.com")
	s := &snapshot.Snapshot{AcceleratorPools: []*berth.AcceleratorPool{late, other}}
	unseen := "claims that were allocated before it are not known in full yet: ml/a"
	for _, tc := range []struct {
		name         string
		live, cached []client.Object
		verdict      policy.Verdict
		message      string
	}{
		{"nothing is allocated", []client.Object{allocatedClaim("a", "1", "")}, nil, policy.InForce, "refused"},
		{"allocated by a driver that nobody manages", []client.Object{allocatedClaim("a", "1", "foreign.example.com")}, nil, policy.InForce, "refused"},
		{"known", []client.Object{allocatedClaim("a", "1", late.Name)}, []client.Object{allocatedClaim("a", "1", late.Name)}, policy.InForce, "refused"},
		{"gone meanwhile", nil, []client.Object{allocatedClaim("a", "1", late.Name)}, policy.InForce, "refused"},
		{"unknown", []client.Object{allocatedClaim("a", "1", late.Name)}, nil, policy.Absent, unseen},
		{"known without its allocation", []client.Object{allocatedClaim("a", "1", late.Name)}, []client.Object{allocatedClaim("a", "1", "")}, policy.Absent, unseen},
		{"known with another device", []client.Object{allocatedClaim("a", "1", late.Name)}, []client.Object{allocatedClaim("a", "1", other.Name)}, policy.Absent, unseen},
		{"another of that name is known", []client.Object{allocatedClaim("a", "2", late.Name)}, []client.Object{allocatedClaim("a", "1", late.Name)}, policy.Absent, unseen},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &reconciler{Dependencies: &shell.Dependencies{Client: reader(tc.cached...), Live: reader(tc.live...)}}
			report := policy.Report{Findings: []policy.Finding{
				{Policy: policy.Claims, Verdict: policy.InForce},
				{Policy: policy.ClaimStatus, AcceleratorPool: late.Name, Verdict: policy.InForce, Message: "refused"},
				{Policy: policy.ClaimStatus, AcceleratorPool: other.Name, Verdict: policy.InForce},
			}}
			got, err := r.withhold(t.Context(), s, report, "fence 1")
			if err != nil {
				t.Fatal(err)
			}
			if f, _ := got.Fence(late.Name); f.Verdict != tc.verdict || f.Message != tc.message {
				t.Errorf("%s, want %s: %s", f, tc.verdict, tc.message)
			}
			if f, _ := got.Fence(other.Name); f.Verdict != policy.InForce || got.PoliciesErr() != nil {
				t.Errorf("besides: %s, %v", f, got.PoliciesErr())
			}
			if tc.verdict != policy.InForce {
				return
			}
			// Behind the same fence nobody is asked again, behind the next one everybody.
			r.Live = reader(allocatedClaim("b", "3", late.Name))
			for fence, want := range map[string]policy.Verdict{"fence 1": policy.InForce, "fence 2": policy.Absent} {
				got, err := r.withhold(t.Context(), s, report, fence)
				if err != nil {
					t.Fatal(err)
				}
				if f, _ := got.Fence(late.Name); f.Verdict != want {
					t.Errorf("%s: %s", fence, f)
				}
			}
		})
	}
}
