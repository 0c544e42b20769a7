package policy_test

import (
	"context"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-dev/berth/pkg/policy"
)

func TestStranger(t *testing.T) {
	for _, row := range []struct {
		name, expression, user string
		err                    error
		want                   string
	}{
		{"the same", "'system:serviceaccount:b:c'", "system:serviceaccount:b:c", nil, ""},
		{"another", "'system:serviceaccount:b:c'", "kubernetes-admin", nil,
			"berth-claims is Unclear: this controller runs as user kubernetes-admin, and the policy was installed for system:serviceaccount:b:c: run it as that service account"},
		{"nobody says who it is", "'system:serviceaccount:b:c'", "", nil, ""},
		{"it may not ask", "'system:serviceaccount:b:c'", "kubernetes-admin", errors.New("no"), ""},
		{"the policy computes it", "params.user", "kubernetes-admin", nil, ""},
		{"half a literal", "'a' + 'b", "kubernetes-admin", nil, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
					obj.(*authenticationv1.SelfSubjectReview).Status.UserInfo.Username = row.user
					return row.err
				},
			}).Build()
			p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.Claims}}
			p.Spec.Variables = []admissionv1.Variable{{Name: "other", Expression: "'x'"}, {Name: "berth", Expression: row.expression}}
			found, strange := policy.Stranger(t.Context(), c, p)
			if strange != (row.want != "") || strange && found.String() != row.want {
				t.Errorf("%v %v", strange, found)
			}
		})
	}
}

// The manifests of the repository say who Berth is in the way that Stranger reads.
func TestTheManifestsNameBerth(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			obj.(*authenticationv1.SelfSubjectReview).Status.UserInfo.Username = "kubernetes-admin"
			return nil
		},
	}).Build()
	manifests, err := policy.Manifests()
	must(t, err)
	for _, m := range manifests {
		if m.GetKind() != "ValidatingAdmissionPolicy" || m.GetName() != policy.Claims {
			continue
		}
		p := &admissionv1.ValidatingAdmissionPolicy{}
		must(t, fromUnstructured(m.Object, p))
		if found, strange := policy.Stranger(t.Context(), c, p); !strange {
			t.Error(found)
		}
		return
	}
	t.Error("there is no " + policy.Claims)
}
