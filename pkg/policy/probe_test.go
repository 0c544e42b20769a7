package policy_test

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/test/cluster"
)

func (w *world) berthConfig(t *testing.T) *rest.Config {
	t.Helper()
	cfg, err := w.ServiceAccountConfig(t.Context(), "berth-system", "berth-controller")
	must(t, err)
	return cfg
}

func (w *world) probe(pools ...v1alpha1.AcceleratorPool) map[string]policy.Finding {
	findings := map[string]policy.Finding{}
	for _, f := range policy.Probe(context.Background(), w.berth, "berth-system", pools).Findings {
		findings[f.Policy+f.AcceleratorPool] = f
	}
	return findings
}

func (w *world) awaitVerdict(t *testing.T, name string, verdict policy.Verdict) {
	t.Helper()
	eventually(t, name+" becomes "+string(verdict), func(context.Context) (bool, error) {
		return w.probe()[name].Verdict == verdict, nil
	})
}

// Each policy, unbound, is missed; nothing else is.
func TestProbeMissesWhatIsNotInForce(t *testing.T) {
	w := fenced(t)
	for _, name := range []string{policy.HeldClaims, policy.Claims, policy.Reservations, policy.Pods, policy.JobKeys} {
		t.Run(name, func(t *testing.T) {
			binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
			must(t, w.admin.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
			must(t, w.admin.Delete(t.Context(), binding))
			w.awaitVerdict(t, name, policy.Absent)
			for other, f := range w.probe() {
				if other != name && f.Verdict != policy.InForce {
					t.Error(f)
				}
			}
			binding.ResourceVersion, binding.UID = "", ""
			must(t, w.admin.Create(t.Context(), binding))
			w.awaitVerdict(t, name, policy.InForce)
		})
	}
	t.Run(policy.Pin, func(t *testing.T) {
		binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Pin}}
		must(t, w.admin.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
		must(t, w.admin.Delete(t.Context(), binding))
		w.awaitVerdict(t, policy.Pin, policy.Absent)

		t.Log("meanwhile no pod of a gang gets through unpinned")
		ns := w.namespace(t)
		expect(t, w.as(t, jobCtl).Create(t.Context(), pod(ns, "early", ofGang(1))), policy.Pods, "pod of a gang refused: the pod was not "+
			"given its claim and host by MutatingAdmissionPolicy berth-pin. It is not in force, or the annotation berth.dev/hosts "+
			"holds no host name for rank 1.")
		binding.ResourceVersion, binding.UID = "", ""
		must(t, w.admin.Create(t.Context(), binding))
		w.awaitVerdict(t, policy.Pin, policy.InForce)
	})
	t.Run("warn instead of deny", func(t *testing.T) {
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Claims}}
		patch := func(actions string) {
			must(t, w.admin.Patch(t.Context(), binding, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"validationActions":[`+actions+`]}}`))))
		}
		patch(`"Warn"`)
		w.awaitVerdict(t, policy.Claims, policy.Absent)
		patch(`"Deny"`)
		w.awaitVerdict(t, policy.Claims, policy.InForce)
	})
	t.Run("refused by something else", func(t *testing.T) {
		must(t, w.ApplyYAML(t.Context(), `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a-policy-of-somebody-else}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [batch], apiVersions: [v1], resources: [jobs], operations: [CREATE]}]}
  validations: [{expression: "false", message: "no Jobs here"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: a-policy-of-somebody-else}
spec: {policyName: a-policy-of-somebody-else, validationActions: [Deny]}
`))
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.JobKeys}}
		must(t, w.admin.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
		must(t, w.admin.Delete(t.Context(), binding))
		w.awaitVerdict(t, policy.JobKeys, policy.Unclear)
		if f := w.probe()[policy.JobKeys]; f.Message != "the dry run was refused by a-policy-of-somebody-else: no Jobs here" {
			t.Error(f)
		}
		must(t, w.admin.Delete(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "a-policy-of-somebody-else"}}))
		binding.ResourceVersion, binding.UID = "", ""
		must(t, w.admin.Create(t.Context(), binding))
		w.awaitVerdict(t, policy.JobKeys, policy.InForce)
	})
}

func TestProbeOfAFence(t *testing.T) {
	w := fenced(t)
	fenceOf := func(pool *v1alpha1.AcceleratorPool, others ...*v1alpha1.AcceleratorPool) policy.Finding {
		all := []v1alpha1.AcceleratorPool{*pool}
		for _, o := range others {
			all = append(all, *o)
		}
		f, ok := policy.Probe(t.Context(), w.berth, "berth-system", all).Fence(pool.Name)
		if !ok {
			t.Fatalf("%s was not tried", pool.Name)
		}
		return f
	}
	pool := acceleratorPool("probed", "probed.example.com", "", &v1alpha1.PoolSelector{Names: []string{"a"}})
	t.Log("an AcceleratorPool that the API server does not have is not fenced")
	if f := fenceOf(pool); f.Verdict != policy.Absent {
		t.Error(f)
	}
	w.pools(t, pool)

	t.Log("the refusal must come from the newest generation")
	pool.Spec.PoolSelector = &v1alpha1.PoolSelector{Prefixes: []string{"a"}}
	must(t, w.admin.Update(t.Context(), pool))
	must(t, w.awaitProbe(t.Context()))
	newer := pool.DeepCopy()
	newer.Generation++
	if f := fenceOf(newer); f.Verdict != policy.Absent ||
		f.Message != "the API server enforces generation 2 of the AcceleratorPool, the newest is 3" {
		t.Error(f)
	}

	t.Log("and from the same object")
	anew := pool.DeepCopy()
	anew.UID = "anew"
	if f := fenceOf(anew); f.Verdict != policy.Absent ||
		f.Message != "the API server enforces another AcceleratorPool of that name: its UID is "+string(pool.UID)+", and not anew" {
		t.Error(f)
	}

	t.Log("nor is one that selects more than another that it has")
	wider := acceleratorPool("probed-too", "probed.example.com", "", nil)
	if f := fenceOf(wider, pool); f.Verdict != policy.Absent {
		t.Error(f)
	}
	named := acceleratorPool("probed-named", "probed.example.com", "", &v1alpha1.PoolSelector{Names: []string{"a0", "b"}})
	if f := fenceOf(named, pool); f.Verdict != policy.Absent {
		t.Error(f)
	}

	t.Log("two that overlap fence the same devices")
	w.pools(t, wider)
	for _, f := range []policy.Finding{fenceOf(pool, wider), fenceOf(wider, pool)} {
		if f.Verdict != policy.InForce {
			t.Error(f)
		}
	}

	t.Log("an answer out of another that nobody knows of proves nothing")
	if f := fenceOf(named); f.Verdict != policy.Absent ||
		!strings.HasSuffix(f.Message, "where only probed-named selects devices") {
		t.Error(f)
	}

	t.Log("Observe is not tried")
	observed := acceleratorPool("watched", "watched.example.com", v1alpha1.FenceObserve, nil)
	if _, ok := policy.Probe(t.Context(), w.berth, "berth-system", []v1alpha1.AcceleratorPool{*observed}).Fence("watched"); ok {
		t.Error("tried")
	}
}

// The mark makes a write of Berth a stranger's in a dry run only, and never lets anybody do more.
func TestTheMarkOnlyRestricts(t *testing.T) {
	w := fenced(t)
	canary := &resourcev1.ResourceClaim{}
	must(t, w.admin.Get(t.Context(), client.ObjectKey{Namespace: "berth-system", Name: policy.CanaryHeld}, canary))
	if canary.Status.Allocation != nil {
		t.Fatal("a probe left something behind")
	}
	allocated("other.example.com", "p")(canary)
	canary.Status.Allocation.Devices.Results[0].Request = "probe"
	if err := w.berth.Status().Update(t.Context(), canary.DeepCopy(), client.DryRunAll); err == nil {
		t.Error("a dry run of Berth was not a stranger's")
	}
	if err := w.as(t, carla).Status().Update(t.Context(), canary.DeepCopy()); err == nil {
		t.Error("a stranger allocated the canary")
	}
	must(t, w.berth.Status().Update(t.Context(), canary))
	canary.Status = resourcev1.ResourceClaimStatus{}
	must(t, w.berth.Status().Update(t.Context(), canary))
}

// Before anything is installed, and with a controller under another name than the policies know.
func TestProbeWithoutPolicies(t *testing.T) {
	c := cluster.ForTest(t, cluster.Options{Without: cluster.OnlyAPIServer})
	ctx := t.Context()
	must(t, c.Apply(ctx, "../../config/crd"))
	must(t, c.CreateNamespace(ctx, "berth-system", nil))
	must(t, c.Apply(ctx, "../../config/rbac"))
	w := &world{Cluster: c}
	w.admin = newClient(t, c.RESTConfig())
	w.berth = newClient(t, w.berthConfig(t))
	for _, f := range policy.Probe(ctx, w.berth, "berth-system", []v1alpha1.AcceleratorPool{*acceleratorPool("p", "d.example.com", "", nil)}).Findings {
		if f.Verdict != policy.Absent {
			t.Error(f)
		}
	}

	t.Log("under another name")
	must(t, c.Apply(ctx, "../../config/policy"))
	must(t, w.awaitProbe(ctx))
	other := newClient(t, c.RESTConfigFor("system:serviceaccount:berth-system:another", "system:masters"))
	got := policy.Probe(ctx, other, "berth-system", nil).Findings[1]
	if got.Verdict != policy.Unclear || got.Message != "it takes this controller for a stranger, so it was installed for another "+
		"service account: ResourceClaim berth-system/berth.probe cannot be created: names that begin with \"berth.\" are "+
		"reserved for Berth. Choose another name." {
		t.Error(got)
	}
	installed := &admissionv1.ValidatingAdmissionPolicy{}
	must(t, w.admin.Get(ctx, client.ObjectKey{Name: policy.Claims}, installed))
	found, strange := policy.Stranger(ctx, other, installed)
	if want := "berth-claims is Unclear: this controller runs as user system:serviceaccount:berth-system:another, and the policy was installed for " +
		"system:serviceaccount:berth-system:berth-controller: run it as that service account"; !strange || found.String() != want {
		t.Errorf("%v %v", strange, found)
	}
	if found, strange := policy.Stranger(ctx, w.berth, installed); strange {
		t.Error(found)
	}
	t.Log("and the canaries cannot even be made")
	must(t, w.admin.DeleteAllOf(ctx, &resourcev1.ResourceClaim{}, client.InNamespace("berth-system")))
	got = policy.Probe(ctx, other, "berth-system", nil).Findings[0]
	if got.Verdict != policy.Unclear || !strings.Contains(got.Message, "was refused by berth-claims") {
		t.Error(got)
	}
}

// Why the policies must go before the custom resource definitions.
func TestFenceWithoutItsParametersFailsClosed(t *testing.T) {
	c := cluster.ForTest(t, cluster.Options{Without: cluster.OnlyAPIServer})
	ctx := t.Context()
	w, err := install(ctx, c)
	must(t, err)
	ns := w.namespace(t)
	free := claim(ns, "free")
	w.create(t, admin, free)
	allocate := func() error {
		changed := free.DeepCopy()
		allocated("other.example.com", "p")(changed)
		return w.as(t, scheduler).Status().Update(ctx, changed, client.DryRunAll)
	}
	must(t, allocate())
	must(t, w.Dynamic().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
		Delete(ctx, "acceleratorpools.berth.dev", metav1.DeleteOptions{}))
	t.Log("a running API server goes on with no AcceleratorPools; one that starts does not know the kind")
	must(t, c.Process(cluster.APIServer).Restart(ctx))
	eventually(t, "no claim can be allocated", func(context.Context) (bool, error) {
		err := allocate()
		if err != nil && strings.Contains(err.Error(), "'berth-claim-status'") && strings.Contains(err.Error(), "failed to configure") {
			t.Log(err)
			return true, nil
		}
		return false, err
	})
	must(t, w.admin.Delete(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.ClaimStatus}}))
	eventually(t, "the fence is down", func(context.Context) (bool, error) { return allocate() == nil, nil })
}
