package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// Several controllers look at once, each at its own snapshot, and do with the Worlds what they like. Run it with -race.
func TestLooksAtOnce(t *testing.T) {
	h := &history{t: t, rng: rand.New(rand.NewPCG(1, 41)), s: tpu(t), kept: cluster.New(), versions: true, original: tpu(t)}
	var snapshots []*snapshot.Snapshot
	var want []*ledger.Ledger
	for range 6 {
		for range 10 {
			moves[h.rng.IntN(len(moves))](h)
		}
		s := *h.s
		snapshots, want = append(snapshots, &s), append(want, cluster.Scratch(&s).Ledger)
	}
	c := cluster.New()
	failed := make(chan error, 1)
	fail := func(err error) {
		select {
		case failed <- err:
		default:
		}
	}
	c.Breached(fail)
	var looks sync.WaitGroup
	for who := range 4 {
		looks.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(who), 43))
			for range 40 {
				i := rng.IntN(len(snapshots))
				got := c.World(snapshots[i]).Ledger
				if diff := ledger.Differ(got, want[i]); diff != "" {
					fail(fmt.Errorf("snapshot %d: %s", i, diff))
				}
				got.Use("node-1", "x/mine", map[string]int64{"cpu": 1})
				for _, held := range got.Holdings() {
					got.Give(held)
				}
				if rng.IntN(10) == 0 {
					if err := c.Audit(); err != nil {
						fail(err)
					}
				}
			}
		})
	}
	looks.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
}
