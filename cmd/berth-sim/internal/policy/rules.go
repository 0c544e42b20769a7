package policy

import (
	"math/rand/v2"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
)

type random struct{ rng *rand.Rand }

func (r *random) pick(_ placement.World, _ int, free []candidate) candidate {
	return free[r.rng.IntN(len(free))]
}

// bestFit looks at the largest free device that excludes the candidate, which in a forest is the largest one around it, and
// takes the candidate for which that is smallest. Ties go to the first.
type bestFit struct{}

func (bestFit) pick(w placement.World, span int, free []candidate) candidate {
	best, least := free[0], 0
	for i, c := range free {
		plan, occ := w.Inventory.Pools()[c.pool].Plan(), w.Ledger.Occupied(c.pool)
		around := span
		plan.Neighbours().Above(int(c.device), func(a int32) {
			if isFree(&occ, a) {
				around = max(around, len(plan.Under(int(a))))
			}
		})
		if i == 0 || around < least {
			best, least = c, around
		}
	}
	return best
}

func isFree(occ *ledger.Occupied, d int32) bool {
	return occ.Short == nil || occ.Short[d] == 0 && occ.Shut[d] == 0
}

// slurm counts, for each candidate, the free devices of the next larger number of hosts that it would exclude, and takes the
// candidate with the fewest; ties go to the pool with the fewest idle hosts, then to the first. This is what
// topology/torus3d does with its placements, but for node weights, which are equal here, and but for comparing windows of
// different form and equal size, which it leaves to the order of its configuration.
type slurm struct {
	// next by pool and span is the next larger number of hosts of any device; 0 for none.
	next map[[2]int]int
	inv  *inventory.Inventory
}

func (s *slurm) pick(w placement.World, span int, free []candidate) candidate {
	if s.inv != w.Inventory {
		s.inv, s.next = w.Inventory, map[[2]int]int{}
	}
	best, fewest, idlest := free[0], 0, 0
	idle, idleOf := 0, -1
	for i, c := range free {
		plan, occ := w.Inventory.Pools()[c.pool].Plan(), w.Ledger.Occupied(c.pool)
		if idleOf != c.pool {
			idle, idleOf = idleHosts(plan, &occ), c.pool
		}
		next, cost := s.larger(plan, c.pool, span), 0
		plan.Neighbours().Above(int(c.device), func(a int32) {
			if len(plan.Under(int(a))) == next && isFree(&occ, a) {
				cost++
			}
		})
		if i == 0 || cost < fewest || cost == fewest && idle < idlest {
			best, fewest, idlest = c, cost, idle
		}
	}
	return best
}

func (s *slurm) larger(plan *inventory.Plan, pool, span int) int {
	key := [2]int{pool, span}
	if n, known := s.next[key]; known {
		return n
	}
	next := 0
	for d := range plan.Devices() {
		if n := len(plan.Under(d)); n > span && (next == 0 || n < next) {
			next = n
		}
	}
	s.next[key] = next
	return next
}

// idleHosts counts the hosts that some free device stands on.
func idleHosts(plan *inventory.Plan, occ *ledger.Occupied) int {
	if occ.Short == nil {
		return len(plan.Hosts())
	}
	n := 0
	for h := range plan.Hosts() {
		for _, d := range plan.On(h) {
			if isFree(occ, d) {
				n++
				break
			}
		}
	}
	return n
}
