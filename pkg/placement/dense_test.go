package placement

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/test/processor"
)

// dense is the other way to know what excludes what: of each device a set of bits as long as the pool.
type dense struct {
	excluded [][]uint64
	weight   []int64
}

func newDense(sh *shelf) *dense {
	n := sh.plan.Devices()
	d := &dense{excluded: make([][]uint64, n), weight: sh.weight}
	for i := range n {
		d.excluded[i] = make([]uint64, (n+63)/64)
		set := func(o int32) { d.excluded[i][o/64] |= 1 << (o % 64) }
		sh.near.Above(i, set)
		for _, part := range sh.near.Parts(i) {
			set(part)
		}
	}
	return d
}

// score puts the loss of each free member into losses, and returns how many are free.
func (d *dense) score(members []int32, occ *ledger.Occupied, losses []candidate) int {
	n := 0
	for _, m := range members {
		if occ.Short[m] != 0 || occ.Shut[m] != 0 {
			continue
		}
		var loss int64
		for i, word := range d.excluded[m] {
			for ; word != 0; word &= word - 1 {
				o := i*64 + bits.TrailingZeros64(word)
				loss += halved(d.weight[o], occ.Standing[o])
			}
		}
		losses[n] = candidate{loss: loss, device: m}
		n++
	}
	return n
}

// takeHalf has gangs of random classes of up to largest hosts come until half of the hosts are taken.
func takeHalf(inv *inventory.Inventory, seed uint64, largest int) *ledger.Ledger {
	l, rng, placer := ledger.New(inv), rand.New(rand.NewPCG(seed, 53)), NewScored(0)
	for i, taken := 0, 0; taken < len(inv.Hosts())/2; i++ {
		class := inv.Classes()[rng.IntN(len(inv.Classes()))]
		span := class.Members[0].Span
		if span > largest {
			continue
		}
		d := placer.Place(gang.Gang{PodSets: []gang.PodSet{{Name: "main", Count: span, Slices: 1, Claims: []gang.Claim{{
			PodClaim: "tpu", Requests: []gang.Request{{Name: "r", Class: class.Name, Count: 1}},
		}}}}}, World{Inventory: inv, Ledger: l})
		// At a random one of the best places, as after many comings and goings.
		best := []string{d.PodSets[0].Claims[0].Instances[0].Devices[0].Name}
		for _, up := range d.RunnersUp {
			best = append(best, up.Name)
		}
		l.Take(ledger.Holding{Owner: fmt.Sprint("x/", i), Pool: inv.Pools()[0].ID, Device: best[rng.IntN(len(best))]})
		taken += span
	}
	return l
}

// BenchmarkScore weighs all free devices of a class, or of all classes, in one pool of which half is taken, and puts the first few in order: with
// dense sets of bits, with the sparse lists, and where lists are long with the sums kept from the ledger before. Between two
// turns one device came or went; at anew everything is another.
func BenchmarkScore(b *testing.B) {
	for _, row := range []struct {
		name    string
		site    *worlds.Site
		classes []string
	}{
		{"cubes", worlds.Cubes(140)("p"), []string{"v5p-1", "v5p-16"}},
		{"torus", worlds.Torus("p"), []string{"v5p-1", "v5p-16", "v5p-32", "v5p-64", "v5p-128", "all"}},
	} {
		inv := row.site.Inventory()
		l := takeHalf(inv, 1, 32)
		near, far := l.Clone(), takeHalf(inv, 2, 32)
		near.Give(near.Holdings()[7])
		s := NewScored(0)
		w := World{Inventory: inv, Ledger: l}
		s.prepare(w)
		sh := s.shelf(0, w)
		bitsets := newDense(sh)
		for _, class := range row.classes {
			m := members(inv, class)
			turns := func(other *ledger.Ledger) [2]ledger.Occupied {
				return [2]ledger.Occupied{l.Occupied(0), other.Occupied(0)}
			}
			one, all := turns(near), turns(far)
			losses := make([]candidate, len(m.Devices))
			ranked := func(r *ranking, by [2]ledger.Occupied) func(b *testing.B) {
				return func(b *testing.B) {
					sh.rank(r, m.Devices, &by[0])
					sh.rank(r, m.Devices, &by[1])
					processor.Turns(b, func(i int) { sh.rank(r, m.Devices, &by[i%2]) })
					b.ReportMetric(float64(len(r.all)), "candidates")
				}
			}
			sparse, kept := &ranking{}, sh.ranking(class, m)
			same(b, sh, sparse, m.Devices, bitsets, &one[1], losses)
			same(b, sh, kept, m.Devices, bitsets, &one[1], losses)
			b.Run(row.name+"/"+class+"/by=dense", func(b *testing.B) {
				free := 0
				processor.Turns(b, func(i int) { free = bitsets.score(m.Devices, &one[i%2], losses) })
				b.ReportMetric(float64(free), "candidates")
			})
			b.Run(row.name+"/"+class+"/by=sparse", ranked(sparse, one))
			if kept.follower != nil {
				b.Run(row.name+"/"+class+"/by=kept", ranked(kept, one))
				b.Run(row.name+"/"+class+"/by=kept-anew", ranked(kept, all))
			}
		}
	}
}

// members of a class, or all devices of the pool.
func members(inv *inventory.Inventory, class string) *inventory.Members {
	if class != "all" {
		return &inv.Class(class).Members[0]
	}
	m := &inventory.Members{}
	for d := range inv.Pools()[0].Devices {
		m.Devices = append(m.Devices, int32(d))
	}
	return m
}

// same fails unless both say the same of every free device.
func same(b *testing.B, sh *shelf, r *ranking, members []int32, by *dense, occ *ledger.Occupied, losses []candidate) {
	b.Helper()
	sh.rank(r, members, occ)
	want := map[int32]int64{}
	for _, c := range losses[:by.score(members, occ, losses)] {
		want[c.device] = c.loss
	}
	if len(want) == 0 || len(want) != len(r.all) {
		b.Fatalf("%d free, %d ranked", len(want), len(r.all))
	}
	for _, c := range r.all {
		if c.loss != want[c.device] {
			b.Fatalf("device %d costs %d, dense says %d", c.device, c.loss, want[c.device])
		}
	}
}
