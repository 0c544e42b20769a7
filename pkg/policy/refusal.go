package policy

import (
	"errors"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// kube-apiserver names the policy in its answer, and only the first one of several that refuse.
var refusedBy = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)'(?: with binding '[^']+')? denied request: (.*)`)

// refusal returns the policy that refused a write and what it said; ok is false if err is anything else.
func refusal(err error) (policy, said string, ok bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", "", false
	}
	found := refusedBy.FindStringSubmatch(status.Status().Message)
	if found == nil {
		return "", "", false
	}
	return found[1], found[2], true
}

// judge says what the answer to a forbidden write tells about a policy. sentence is a part of the policy's message that
// it gives for this very offence.
func judge(policy, sentence string, err error) Finding {
	finding := Finding{Policy: policy, Verdict: Unclear}
	if err == nil {
		finding.Verdict = Absent
		finding.Message = "a write that it forbids went through in a dry run"
		return finding
	}
	by, said, ok := refusal(err)
	switch {
	case !ok:
		finding.Message = "the dry run was refused by something else: " + err.Error()
	case by != policy:
		finding.Message = "the dry run was refused by " + by + ": " + said
	case !strings.Contains(said, sentence):
		// An expression that fails, or a policy of another release.
		finding.Message = "it refuses the dry run for an unexpected reason: " + said
	default:
		finding.Verdict = InForce
		finding.Message = said
	}
	return finding
}
