package reservation

import (
	"reflect"
	"testing"
)

// A stranger that appears anew in every view is deleted every time and never comes before a step of the release.
func TestStrangersDoNotHoldUpRelease(t *testing.T) {
	stranger := Pod{Name: "stranger", Stranger: true, Gated: true}
	claim := Claim{Name: "claim", State: Held, Finalizer: true}
	deleted := claim
	deleted.Deleting = true
	doubtful := []Rank{{Host: "h0", Doubtful: true}}
	eject := Step{Do: DeletePods, Names: []string{"stranger"}}
	for _, tc := range []struct {
		name string
		view View
		want []Step
	}{
		{"claims to delete", View{Claims: []Claim{claim}}, []Step{{Do: DeleteClaims, Names: []string{"claim"}}, eject}},
		{"pods to wait for", View{Claims: []Claim{deleted}, Pods: []Pod{{Name: "train-0", Seated: true}}}, []Step{eject}},
		{"hosts to quarantine", View{Claims: []Claim{deleted}, Ranks: doubtful}, []Step{{Do: Quarantine, Names: []string{"h0"}}, eject}},
		{"claims to clear", View{Claims: []Claim{deleted}}, []Step{{Do: ClearClaims, Names: []string{"claim"}}, eject}},
		{"hosts to wait for", View{Quarantine: []Share{{Host: "h0", Doubtful: true}}}, []Step{eject}},
		{"a record to drop", View{}, []Step{{Do: Drop}, eject}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := tc.view
			v.Phase, v.Recorded, v.Demand.Gone = Releasing, true, true
			v.Pods = append(v.Pods, stranger)
			if plan := Next(v); !reflect.DeepEqual(plan.Steps, tc.want) {
				t.Errorf("rule %s: %v, want %v", plan.Rule, plan.Steps, tc.want)
			}
		})
	}
}

// An entry in a claim keeps it, whoever's it is: so a stranger that has one is deleted first and then waited for.
func TestSeatedStrangerIsWaitedFor(t *testing.T) {
	v := View{
		Phase: Releasing, Recorded: true, Demand: Demand{Gone: true},
		Claims: []Claim{{Name: "claim", State: Held, Finalizer: true, Deleting: true}},
		Pods:   []Pod{{Name: "stranger", Stranger: true, Seated: true}},
	}
	want := []Step{{Do: DeletePods, Names: []string{"stranger"}}}
	if plan := Next(v); !reflect.DeepEqual(plan.Steps, want) {
		t.Errorf("rule %s: %v, want %v", plan.Rule, plan.Steps, want)
	}
	v.Pods[0].Deleting = true
	if plan := Next(v); len(plan.Steps) > 0 || plan.Waits != "1 of the gang's pods may still run: stranger" {
		t.Errorf("rule %s: %v, waits %q", plan.Rule, plan.Steps, plan.Waits)
	}
}
