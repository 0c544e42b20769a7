package policy

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// berthVariable is the variable of every policy that holds the name of Berth's user, as a literal.
const berthVariable = "berth"

// Stranger compares the user that the API server takes c for with the one that an installed policy leaves to itself as
// Berth. ok is true when they differ: every write of the controller then counts as a stranger's, whatever else a probe
// finds. It is false, too, when either cannot be told.
func Stranger(ctx context.Context, c client.Client, installed *admissionregistrationv1.ValidatingAdmissionPolicy) (_ Finding, ok bool) {
	expected := expectedUser(installed)
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil || expected == "" {
		return Finding{}, false
	}
	user := review.Status.UserInfo.Username
	if user == "" || user == expected {
		return Finding{}, false
	}
	return Finding{Policy: installed.Name, Verdict: Unclear, Message: fmt.Sprintf(
		"this controller runs as user %s, and the policy was installed for %s: run it as that service account", user, expected)}, true
}

func expectedUser(p *admissionregistrationv1.ValidatingAdmissionPolicy) string {
	for _, v := range p.Spec.Variables {
		if name, literal := strings.CutPrefix(v.Expression, "'"); literal && v.Name == berthVariable {
			name, closed := strings.CutSuffix(name, "'")
			if closed {
				return name
			}
		}
	}
	return ""
}
