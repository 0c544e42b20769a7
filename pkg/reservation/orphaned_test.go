package reservation

import (
	"testing"

	"github.com/berth-dev/berth/pkg/reason"
)

// The pods of a Job that was deleted without them run on; when the last of them has ended the gang is given up.
func TestOrphansRunToTheirEnd(t *testing.T) {
	v := View{
		Phase: HandedOver, Recorded: true,
		Demand: Demand{Quota: true, Admitted: true, Active: true, Current: true, Check: CheckReady, Named: true, Orphaned: true},
		Claims: []Claim{{Name: "claim", State: Held, Finalizer: true}},
		Pods: []Pod{
			{Name: "train-0", Stranger: true, Seated: true},
			{Name: "train-1", Stranger: true, Seated: true},
			{Name: "late", Stranger: true, Gated: true},
		},
	}
	if plan := Next(v); len(plan.Steps) != 1 || plan.Steps[0].Do != DeletePods || len(plan.Steps[0].Names) != 1 || plan.Steps[0].Names[0] != "late" {
		t.Errorf("rule %s: %v, want only the pod deleted that was never seated", plan.Rule, plan.Steps)
	}
	v.Pods = v.Pods[:2]
	v.Pods[0].Terminal, v.Pods[0].Seated = true, false
	if plan := Next(v); len(plan.Steps) > 0 {
		t.Errorf("rule %s: %v while one pod may still run", plan.Rule, plan.Steps)
	}
	v.Pods[1].Terminal = true
	plan := Next(v)
	if len(plan.Steps) != 1 || plan.Steps[0].Do != Retry || plan.Steps[0].Because.Code != reason.Unsupported ||
		plan.Steps[0].Because.Message != "the Workload has lost its owner and the gang's pods have ended" {
		t.Errorf("rule %s: %v, want the gang given up", plan.Rule, plan.Steps)
	}
}
