package placement

import (
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
)

// runnersUp is how many devices beside the chosen one a decision shows.
const runnersUp = 5

// suitor is a candidate of some pool.
type suitor struct {
	candidate
	pool int
}

// one places a gang of one device. It is false when no device suits, and the search then says why.
func (s *Scored) one(p *plan, w World) (Decision, bool) {
	it := p.items[0]
	var best [runnersUp + 1]suitor
	n := s.cheapest(it, p.set, w, best[:])
	if n == 0 {
		return Decision{}, false
	}
	d := s.decide(p, w, best[:1])
	for _, b := range best[1:n] {
		sh := s.shelves[b.pool]
		occ := w.Ledger.Occupied(b.pool)
		pool := w.Inventory.Pools()[b.pool]
		up := RunnerUp{Pool: pool.ID, Name: pool.Devices[b.device].Name, Score: score(b.loss)}
		up.Destroys = sh.destroyed([]int32{b.device}, &occ, w.Ledger.Used(b.pool), nil)
		d.RunnersUp = append(d.RunnersUp, up)
	}
	return d, true
}

// cheapest fills best with the cheapest devices that suit the pods and returns how many there are.
func (s *Scored) cheapest(it *item, set *gang.PodSet, w World, best []suitor) int {
	if l := s.lineup(it, w); !l.scattered() {
		return s.first(l, it, set, w, best)
	}
	n := 0
	list, worth := s.rankings(it, w), s.worths(w)
	for i := range it.class.Members {
		m := &it.class.Members[i]
		if m.Span != it.span {
			continue
		}
		r := list[i]
		state := w.Inventory.State(m.Pool)
		common, same := state.Common()
		for at := 0; ; at++ {
			// Candidates in order of losses end early; when they lie in several domains each must be looked at.
			c, ok := r.next(at, same)
			if !ok {
				break
			}
			if !same {
				common = state.DomainOf(c.device)
			}
			if common >= 0 {
				c.loss = inventory.Add(c.loss, worth[common])
			}
			next := suitor{c, m.Pool}
			if n == len(best) && !next.before(best[n-1]) {
				if same {
					break
				}
				continue
			}
			if !s.suits(m.Pool, c.device, it.req, set, w) {
				continue
			}
			n = min(n+1, len(best))
			to := n - 1
			for to > 0 && next.before(best[to-1]) {
				best[to] = best[to-1]
				to--
			}
			best[to] = next
		}
	}
	return n
}

// before reports whether less is lost by c, or as much and it is the first by pool and name.
func (c suitor) before(o suitor) bool {
	if c.loss != o.loss || c.pool == o.pool {
		return c.candidate.compare(o.candidate) < 0
	}
	return c.pool < o.pool
}
