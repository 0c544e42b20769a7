package placement

import (
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// lineup is the rankings of one class and span in all pools, with the pool whose cheapest candidate is the cheapest of all
// on top of a tournament. Pools that nobody touched keep their place, so that many pools cost hardly more than one.
type lineup struct {
	members []*inventory.Members
	ranks   []*ranking
	// leaf of a pool, or -1.
	leaf []int32
	// tied is nil where no pool is tied to a domain.
	tied *tied
	// seen are the fingerprints that the rankings are of. Invariant: seen of a pool == its ranking.taken.
	seen *ledger.Seen
	// cup is for the loss of the candidate that each leaf offers, the first of its ranking between calls.
	cup cup
	// ahead is how many candidates a leaf is ahead of its first; advanced are the leaves that are.
	ahead    []int
	advanced []int32
}

// lineup of an item, each ranking up to date.
func (s *Scored) lineup(it *item, w World) *lineup {
	key := rankKey{it.class.Name, it.span}
	worth := s.worths(w)
	l := s.lineups[key]
	if l == nil {
		l = s.newLineup(it, w, worth)
		s.lineups[key] = l
	}
	w.Ledger.Changed(l.seen, func(pool int) {
		if leaf := l.leaf[pool]; leaf >= 0 {
			s.refresh(l.ranks[leaf], l.members[leaf], w)
		}
		l.seen.See(pool, w.Ledger.Fingerprint(pool))
	})
	return l
}

func (s *Scored) newLineup(it *item, w World, worth []int64) *lineup {
	l := &lineup{seen: ledger.NewSeen(len(s.shelves)), leaf: make([]int32, len(s.shelves))}
	for pool := range l.leaf {
		l.leaf[pool] = -1
	}
	list := s.ranks(it.class, w)
	for i := range it.class.Members {
		m := &it.class.Members[i]
		if m.Span == it.span {
			l.leaf[m.Pool] = int32(len(l.ranks))
			l.members, l.ranks = append(l.members, m), append(l.ranks, list[i])
		}
	}
	if it.class.Tied(it.span) && len(worth) > 0 {
		l.tied = newTied(l.members, w, worth)
	}
	l.cup, l.ahead = newCup(len(l.ranks)), make([]int, len(l.ranks))
	for leaf, r := range l.ranks {
		r.lineup, r.leaf = l, int32(leaf)
		if r.fresh && r.taken == w.Ledger.Fingerprint(l.members[leaf].Pool) {
			s.enter(l, int32(leaf), w) // Others brought the ranking up to date before it came here.
		} else {
			s.refresh(r, l.members[leaf], w)
		}
	}
	return l
}

// enter follows a leaf whose ranking is another now.
func (s *Scored) enter(l *lineup, leaf int32, w World) {
	m, r := l.members[leaf], l.ranks[leaf]
	l.seen.See(m.Pool, r.taken)
	if l.tied != nil {
		occ := w.Ledger.Occupied(m.Pool)
		l.tied.enter(leaf, r, s.shelves[m.Pool], &occ)
	}
	l.offer(leaf, 0)
}

// offer has a leaf offer its candidate at a place.
func (l *lineup) offer(leaf int32, at int) {
	l.ahead[leaf] = at
	loss := int64(none)
	if c, ok := l.ranks[leaf].at(at); ok {
		loss = l.costs(leaf, c)
	}
	l.cup.set(leaf, loss)
}

// costs is what taking a leaf's candidate costs, with what entering its domain does.
func (l *lineup) costs(leaf int32, c candidate) int64 {
	if l.tied == nil || l.tied.domain[leaf] < 0 {
		return c.loss
	}
	return min(inventory.Add(c.loss, l.tied.worth[l.tied.domain[leaf]]), none-1)
}

// revalue follows a domain whose worth is another now.
func (l *lineup) revalue(domain int32) {
	if l.tied == nil {
		return
	}
	l.tied.revalue(domain)
	for _, leaf := range l.tied.in[domain] {
		l.offer(leaf, 0)
	}
}

// scattered reports whether devices of one leaf are of several domains, so that no order of its ranking is theirs.
func (l *lineup) scattered() bool { return l.tied != nil && l.tied.scattered }

// first fills best with the first candidates of all that suit the pods, in order, and returns how many there are.
func (s *Scored) first(l *lineup, it *item, set *gang.PodSet, w World, best []suitor) int {
	n := 0
	for n < len(best) && len(l.ranks) > 0 {
		leaf, _ := l.cup.first()
		c, ok := l.ranks[leaf].at(l.ahead[leaf])
		if !ok {
			break
		}
		c.loss = l.costs(leaf, c)
		if pool := l.members[leaf].Pool; s.suits(pool, c.device, it.req, set, w) {
			best[n] = suitor{c, pool}
			n++
		}
		if l.ahead[leaf] == 0 {
			l.advanced = append(l.advanced, leaf)
		}
		l.offer(leaf, l.ahead[leaf]+1)
	}
	for _, leaf := range l.advanced {
		l.offer(leaf, 0)
	}
	l.advanced = l.advanced[:0]
	return n
}
