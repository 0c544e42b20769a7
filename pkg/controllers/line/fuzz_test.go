package line

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/snapshot/fuzztest"
)

// FuzzPass decides a pass on whatever others have written: what it reserves overdraws nothing, every gang that gets nothing
// is told why, and every reservation is judged.
func FuzzPass(f *testing.F) {
	fuzztest.Add(f)
	base := fuzztest.Site()
	b := fuzztest.New(base)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := b.Broken(data, base)
		v := index(s, cluster.New().World(s), nil)
		v.now = now
		v.unfenced = func(inventory.PoolID) *reason.Refusal { return nil }
		v.backoff = func(types.UID) (time.Duration, *reason.Refusal) { return 0, nil }
		before := v.world.Ledger.Overdrawn()
		got := decide(v, placement.NewScored(2000))
		if diff := cmp.Diff(before, v.world.Ledger.Overdrawn()); diff != "" {
			t.Errorf("the pass overdraws: %s", diff)
		}
		for _, res := range got.reserve {
			for _, ps := range res.Spec.PodSets {
				if len(ps.Hosts) == 0 || len(ps.Claims) == 0 {
					t.Errorf("%s reserves nothing for pod set %s", res.Name, ps.Name)
				}
			}
		}
		for _, a := range got.answers {
			if a.answer.Message == "" {
				t.Errorf("%s is answered %s without a word", a.workload.Name, a.answer.State)
			}
		}
		nodes := map[string]*corev1.Node{}
		for _, n := range s.Nodes {
			nodes[n.Name] = n
		}
		for _, res := range v.reservations {
			if why := newJudgement(v, res, nodes, s.Pods).lost(); why != nil && (why.Code == "" || why.Message == "") {
				t.Errorf("%s is lost for %+v", res.Name, why)
			}
		}
	})
}
