package performance

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// BenchmarkPools is one decision among more and more pools of a kind, half of each taken, of which one was touched since
// the last decision. The budget is 1.2 times the time for ten times the pools.
func BenchmarkPools(b *testing.B) {
	for _, family := range []struct {
		name  string
		make  func(string) *worlds.Site
		pools []int
		ask   gang.Gang
	}{
		{"racks", worlds.Rack, []int{36, 360, 3600}, ask("gpu-16", 4, 1)},
		{"cubes", worlds.Cubes(140), []int{1, 10, 29}, ask("v5p-4", 4, 1)},
	} {
		least := 0.0
		for _, n := range family.pools {
			inv := worlds.Times(n, family.make).Inventory()
			both := byTurns(inv, halfTaken(inv, rand.New(rand.NewPCG(1, 1)), 16))
			b.Run(fmt.Sprintf("%s/pools=%d/hosts=%d", family.name, n, len(inv.Hosts())), func(b *testing.B) {
				placer := placement.NewScored(0)
				took := measure(b, func(i int) {
					if !placer.Place(family.ask, both[i%2]).Fits() {
						b.Fatal("does not fit")
					}
				})
				if n == family.pools[0] {
					least = took
				}
				if least > 0 {
					b.ReportMetric(took/least, "times-the-fewest-pools")
				}
			})
		}
	}
}
