package line

import (
	"fmt"
	"slices"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/snapshot"
	"github.com/berth-dev/berth/test/processor"
)

// BenchmarkPass5000 is a whole pass of the controller, from the mirrored objects to what it would write, while 5,000
// Workloads wait that have been told why: after nothing changed, and after one slice became free.
func BenchmarkPass5000(b *testing.B) {
	const n = 5000
	s := newSite()
	for i := range 4 {
		s.waits(fmt.Sprint("runs-", i))
		res := s.pass().reserve[0]
		res.UID, res.Status.Phase = "res", berth.PhaseHandedOver
		s.Reservations = append(s.Reservations, res)
	}
	for i := range n {
		s.waits(fmt.Sprint("waits-", i))
	}
	c, placer, memory, backoff := cluster.New(), placement.NewScored(0), &line.Memory{}, s.view().backoff
	readings, eligible := &adaptkueue.Readings{}, nodes.NewEligibility(nil)
	pass := func(sn *snapshot.Snapshot) steps {
		v := index(sn, c.World(sn), nil)
		readings.Sweep()
		eligible = eligible.For(sn.Nodes)
		v.readings, v.lookup.Nodes = readings, eligible
		v.now, v.memory, v.backoff = now, memory, backoff
		v.unfenced = func(inventory.PoolID) *reason.Refusal { return nil }
		return decide(v, fenced{placer, v.unfenced})
	}
	first := pass(s.Snapshot)
	if len(first.answers) != n {
		b.Fatalf("%d answers", len(first.answers))
	}
	for _, a := range first.answers {
		a.workload.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: kueuetest.Check, State: a.answer.State, Message: a.answer.Message}}
		apimeta.SetStatusCondition(&a.workload.Status.Conditions, metav1.Condition{
			Type: berth.ConditionGangReserved, Status: metav1.ConditionFalse, Reason: a.answer.Reason, Message: a.answer.Message,
		})
	}
	for _, p := range first.targets {
		s.Reservations = append(s.Reservations, p.res)
	}
	released := *s.Snapshot
	released.Reservations = slices.Delete(slices.Clone(s.Reservations), 1, 2)
	released.Workloads = slices.Delete(slices.Clone(s.Workloads), 1, 2)
	for _, row := range []struct {
		name            string
		turns           [2]*snapshot.Snapshot
		reserve, answer int
	}{
		{"nothing", [2]*snapshot.Snapshot{s.Snapshot, s.Snapshot}, 0, 0},
		{"release", [2]*snapshot.Snapshot{s.Snapshot, &released}, 1, line.Fresh},
	} {
		b.Run(row.name, func(b *testing.B) {
			writes := 0
			processor.Turns(b, func(i int) {
				got := pass(row.turns[i%2])
				if i%2 == 1 {
					if writes = len(got.answers); len(got.reserve) != row.reserve || writes > row.answer {
						b.Fatalf("%d reservations, %d answers", len(got.reserve), writes)
					}
				}
			})
			b.ReportMetric(float64(writes), "answers")
		})
	}
}
