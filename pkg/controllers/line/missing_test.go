package line

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reason"
)

// A gang that waited for managed devices is not let go because their AcceleratorPool is gone; any other gang is, and what
// was said of it before does not stand beside that.
func TestPoolDeletedUnderTheLine(t *testing.T) {
	const (
		held = "a Pending PoolMissing: the gang waited for tpu-4x4, which no AcceleratorPool matches any more: create the AcceleratorPool again; " +
			"to run the gang without Berth submit it again or take the check off its ClusterQueue"
		gone = "the gang asks for no device that Berth manages"
	)
	for _, row := range []struct {
		name   string
		reason string
		status metav1.ConditionStatus
		want   string
	}{
		{"it was told nothing yet", "", "", "a Ready : " + gone},
		{"it waited for a slice", string(reason.NoFreeSlice), metav1.ConditionFalse, held},
		{"it waited for the fence", string(reason.NotFenced), metav1.ConditionFalse, held},
		{"it was told so already", string(reason.PoolMissing), metav1.ConditionFalse, held},
		{"it had a slice and was evicted", adaptkueue.ReasonReleased, metav1.ConditionFalse, held},
		{"it has a slice still", adaptkueue.ReasonReserved, metav1.ConditionTrue, held},
		{"it waited for its template", string(reason.ClaimMissing), metav1.ConditionFalse, "a Ready NothingManaged: " + gone},
		{"it waited for somebody's devices", string(reason.ShapeUnknown), metav1.ConditionFalse, "a Ready NothingManaged: " + gone},
		{"there were two checks of Berth", string(reason.TooManyChecks), metav1.ConditionFalse, "a Ready NothingManaged: " + gone},
		{"it was let go before", adaptkueue.ReasonIgnored, metav1.ConditionFalse, "a Ready NothingManaged: " + gone},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSite()
			w := s.waits("a")
			if row.reason != "" {
				w.Condition(berth.ConditionGangReserved, row.status == metav1.ConditionTrue, kueuetest.Start)
				w.Status.Conditions[len(w.Status.Conditions)-1].Reason = row.reason
			}
			pools := s.AcceleratorPools
			s.AcceleratorPools = nil
			s.passes(t, row.want)
			s.AcceleratorPools = pools
			s.passes(t, "a reserves pod-a/tpu-4x4-00")
		})
	}
}
