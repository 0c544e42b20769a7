package policy_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/policy"
)

func TestProbeFindsEveryPolicyInForce(t *testing.T) {
	w := fenced(t)
	for _, f := range policy.Probe(t.Context(), w.berth, "berth-system", nil).Findings {
		t.Log(f)
	}
}
