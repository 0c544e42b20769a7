package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berth-dev/berth/pkg/policy"
)

// Every policy has its binding, fails closed, and holds Berth's name once, where a chart can put another.
func TestManifests(t *testing.T) {
	objects, err := policy.Manifests()
	must(t, err)
	var policies, bindings []string
	for _, o := range objects {
		switch o.GetKind() {
		case "ValidatingAdmissionPolicy":
			policies = append(policies, o.GetName())
			var p admissionv1.ValidatingAdmissionPolicy
			convert(t, o, &p)
			if p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy != admissionv1.Fail {
				t.Errorf("%s does not fail closed", p.Name)
			}
			for _, v := range p.Spec.Validations {
				if v.Message == "" || v.MessageExpression == "" || v.Reason == nil || *v.Reason != "Forbidden" {
					t.Errorf("%s: %s: incomplete", p.Name, v.Expression)
				}
			}
			text, err := json.Marshal(o.Object)
			must(t, err)
			want := 1
			if p.Name == policy.JobSetKeys { // nobody may, Berth included
				want = 0
			}
			if n := strings.Count(string(text), "berth-controller'"); n != want {
				t.Errorf("%s holds Berth's name %d times, want %d", p.Name, n, want)
			}
		case "MutatingAdmissionPolicy":
			policies = append(policies, o.GetName())
			var p admissionv1.MutatingAdmissionPolicy
			convert(t, o, &p)
			if p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy != admissionv1.Fail {
				t.Errorf("%s does not fail closed", p.Name)
			}
		case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
			bindings = append(bindings, o.GetName())
			if name, _, _ := unstructured.NestedString(o.Object, "spec", "policyName"); name != o.GetName() {
				t.Errorf("binding %s is for %s", o.GetName(), name)
			}
		default:
			t.Errorf("unexpected %s", o.GetKind())
		}
	}
	want := []string{policy.ClaimStatus, policy.HeldClaims, policy.Claims, policy.Reservations, policy.Pin, policy.Pods, policy.JobKeys, policy.JobSetKeys}
	for _, names := range [][]string{policies, bindings, want} {
		slices.Sort(names)
	}
	if !slices.Equal(policies, want) || !slices.Equal(bindings, want) {
		t.Errorf("policies %v\nbindings %v\nwant %v", policies, bindings, want)
	}
}

func convert(t *testing.T, o *unstructured.Unstructured, to any) {
	t.Helper()
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, to, true))
}
