package placement

import (
	"cmp"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// severalBudget is how many pairs of numbers of devices are compared at most when several devices are chosen: about 30 ms.
const severalBudget = 20 << 20

// several places a gang of several devices of one class. It is false when that leads to no placement; the search then
// finds one, or says why there is none.
func (s *Scored) several(p *plan, w World) (Decision, bool) {
	// At first every free device counts, whether or not it suits the pods: most do, and checking costs more than choosing.
	for _, onlySuiting := range []bool{false, true} {
		c := s.choose(p, w, onlySuiting, everywhere)
		if c.devices == nil {
			break
		}
		if s.holds(p, w, c.devices) {
			d := s.decide(p, w, c.devices)
			d.Proved = d.Proved && c.exact
			return d, true
		}
	}
	return Decision{}, false
}

// holds reports whether the chosen devices suit the pods and their hosts have room for all pods together.
func (s *Scored) holds(p *plan, w World, chosen []suitor) bool {
	trial, alone := w.Ledger.Try(), s.apart(chosen, w)
	for _, c := range chosen {
		d := w.Inventory.Pools()[c.pool].Devices[c.device]
		if blockedBy(d, p.items[0].req, p.set, w, trial) != nil {
			return false
		}
		trial.Take(d)
		if alone {
			continue // Nobody else of the gang stands on its hosts.
		}
		for _, h := range d.Hosts {
			trial.Seat(h, p.set.Requests)
		}
	}
	return true
}

// apart reports whether no two of the devices stand on one host.
func (s *Scored) apart(chosen []suitor, w World) bool {
	if len(s.stood) != len(w.Inventory.Hosts()) {
		s.stood = make([]uint64, len(w.Inventory.Hosts()))
	}
	s.visit++
	for _, c := range chosen {
		hosts := w.Inventory.State(c.pool).Hosts
		for _, h := range w.Inventory.Pools()[c.pool].Plan().Under(int(c.device)) {
			at := hosts[h]
			if at < 0 || s.stood[at] == s.visit {
				return false
			}
			s.stood[at] = s.visit
		}
	}
	return true
}

// everywhere is not one domain.
const everywhere = -1

// choice is devices for a whole pod set.
type choice struct {
	// devices by pool and name; nil when there are too few.
	devices []suitor
	// cost is twice the loss, without what it costs to enter a domain.
	cost int64
	// exact is true when none are cheaper; without devices, when there are none.
	exact bool
}

// choose finds the cheapest devices in one domain or everywhere, pool by pool, and then how many of each pool. For one domain
// all rankings must be up to date, so that not all pools need to be gone through for each of many.
func (s *Scored) choose(p *plan, w World, onlySuiting bool, domain int32) choice {
	it, picks := p.items[0], newPicks(severalBudget)
	list := s.ranks(it.class, w)
	if domain == everywhere {
		list = s.rankings(it, w)
	}
	lots := s.lots(it, w, list, domain)
	free := 0
	for _, g := range lots {
		free += len(g.candidates)
	}
	if free < p.blocks {
		return choice{exact: true}
	}
	all, exact := picks.nothing(), true
	for _, g := range lots {
		candidates := g.candidates
		slices.SortFunc(candidates, candidate.compare)
		if onlySuiting {
			var whole bool
			candidates, whole = s.suiting(candidates, g.pool, p, w)
			exact = exact && whole
		}
		sh := s.shelves[g.pool]
		occ := w.Ledger.Occupied(g.pool)
		var c curve
		ok := true
		switch {
		case !sh.near.Complete:
			return choice{}
		case sh.near.Laminar:
			c, ok = sh.forest(picks, candidates, g.pool, p.blocks, &occ)
		default:
			c = sh.greedy(picks, candidates, g.pool, p.blocks, &occ)
			exact = exact && len(candidates) == 1
		}
		if ok {
			all, ok = picks.beside(all, c, p.blocks)
		}
		if !ok {
			return choice{}
		}
	}
	if len(all.cost) <= p.blocks {
		return choice{exact: exact}
	}
	chosen := picks.devices(all.pick[p.blocks])
	slices.SortStableFunc(chosen, func(a, b suitor) int { return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.device, b.device)) })
	return choice{devices: chosen, cost: all.cost[p.blocks], exact: exact}
}

// lot is free devices of one pool.
type lot struct {
	pool       int
	candidates []candidate
}

// lots are the free devices of the item in one domain or everywhere, by pool. The caller may change them.
func (s *Scored) lots(it *item, w World, list []*ranking, domain int32) []lot {
	var out []lot
	if domain == everywhere {
		for i := range it.class.Members {
			if m := &it.class.Members[i]; m.Span == it.span && len(list[i].all) > 0 {
				out = append(out, lot{m.Pool, slices.Clone(list[i].all)})
			}
		}
		return out
	}
	for _, in := range w.Inventory.Domains()[domain].Pools {
		i, found := slices.BinarySearchFunc(it.class.Members, in.Pool, func(m inventory.Members, pool int) int { return cmp.Compare(m.Pool, pool) })
		for ; found && i < len(it.class.Members) && it.class.Members[i].Pool == in.Pool; i++ {
			if it.class.Members[i].Span != it.span {
				continue
			}
			g := lot{pool: in.Pool}
			state := w.Inventory.State(in.Pool)
			for _, c := range list[i].all {
				if state.DomainOf(c.device) == domain {
					g.candidates = append(g.candidates, c)
				}
			}
			if len(g.candidates) > 0 {
				out = append(out, g)
			}
		}
	}
	return out
}

// suiting keeps the candidates that suit the pods, and of those of one host only as many as it has room for pods, the
// cheapest. whole is false when more than the unsuiting were dropped.
func (s *Scored) suiting(candidates []candidate, pool int, p *plan, w World) (kept []candidate, whole bool) {
	whole = true
	room := map[string]int{}
	for _, c := range candidates {
		if !s.suits(pool, c.device, p.items[0].req, p.set, w) {
			continue
		}
		if p.items[0].span == 1 {
			host := w.Inventory.Pools()[pool].Devices[c.device].Hosts[0]
			left, seen := room[host]
			if !seen {
				left = w.Ledger.Room(host, p.set.Requests)
			}
			if left == 0 {
				whole = false
				continue
			}
			room[host] = left - 1
		}
		kept = append(kept, c)
	}
	return kept, whole
}

// forest is the exact curve of a laminar pool, by the knapsack on trees: a device above any chosen one is halved once,
// however many of its parts are chosen. Candidates are few against k², so it is about candidates × k steps.
func (sh *shelf) forest(picks *picks, candidates []candidate, pool, most int, occ *ledger.Occupied) (curve, bool) {
	loss := make(map[int32]int64, len(candidates))
	nodes := make([]int32, 0, 2*len(candidates))
	known := make(map[int32]bool, 2*len(candidates))
	for _, c := range candidates {
		loss[c.device] = c.loss
		for d := c.device; d >= 0 && !known[d]; d = sh.near.Parent[d] {
			known[d] = true
			nodes = append(nodes, d)
		}
	}
	slices.SortFunc(nodes, func(a, b int32) int { return cmp.Compare(sh.near.Rank[a], sh.near.Rank[b]) })
	// above[d] is the worth of what the device lies in.
	above := make(map[int32]int64, len(nodes))
	for _, d := range slices.Backward(nodes) {
		if up := sh.near.Parent[d]; up >= 0 {
			above[d] = above[up] + sh.value(up, occ)
		}
	}
	below := make(map[int32]curve, len(nodes))
	all, ok := picks.nothing(), true
	for _, d := range nodes {
		c, have := below[d]
		if !have {
			c = picks.nothing()
		}
		delete(below, d)
		worth := sh.value(d, occ)
		for j := 1; j < len(c.cost); j++ {
			c.cost[j] += worth
		}
		if total, candidate := loss[d]; candidate {
			// Alone it costs what it excludes, less what lies above, which is added on the way up.
			if alone := total - above[d]; len(c.cost) == 1 {
				c = picks.single(suitor{candidateOf(d, total), pool}, alone)
			} else if alone < c.cost[1] {
				one := picks.single(suitor{candidateOf(d, total), pool}, alone)
				c.cost[1], c.pick[1] = alone, one.pick[1]
			}
		}
		up := sh.near.Parent[d]
		into, have := below[up]
		switch {
		case up < 0:
			all, ok = picks.beside(all, c, most)
		case !have:
			below[up] = c
		default:
			below[up], ok = picks.beside(into, c, most)
		}
		if !ok {
			return curve{}, false
		}
	}
	return all, true
}

func candidateOf(device int32, loss int64) candidate { return candidate{loss: loss, device: device} }

// greedy is a curve in which every next device is the cheapest beside those before it.
func (sh *shelf) greedy(picks *picks, candidates []candidate, pool, most int, occ *ledger.Occupied) curve {
	c := picks.nothing()
	sh.mark()
	for len(c.cost) <= most {
		best, bestCost := -1, int64(0)
		for i, cand := range candidates {
			if sh.gone[cand.device] == sh.marked {
				continue // It is excluded by one that was taken.
			}
			if picks.budget -= 1 + len(sh.near.Extra(int(cand.device))); picks.budget < 0 {
				return c
			}
			cost := sh.parts(cand.device, occ)
			sh.near.Above(int(cand.device), func(a int32) {
				if sh.gone[a] != sh.marked {
					cost += sh.value(a, occ)
				}
			})
			if best < 0 || cost < bestCost || cost == bestCost && cand.device < candidates[best].device {
				best, bestCost = i, cost
			}
		}
		if best < 0 {
			return c
		}
		sh.cover(candidates[best].device, occ)
		one := picks.single(suitor{candidates[best], pool}, bestCost)
		last := len(c.cost) - 1
		c.cost = append(c.cost, c.cost[last]+bestCost)
		c.pick = append(c.pick, picks.join(c.pick[last], one.pick[1]))
	}
	return c
}
