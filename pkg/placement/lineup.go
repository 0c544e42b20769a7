package placement

import (
	"math"

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
	// worth is that of each domain, where pools are tied to one: whoever takes a candidate also lowers the worth of its domain.
	// domain is the leaf's, or negative, and in are the leaves of each. Otherwise all three are nil.
	worth  []int64
	domain []int32
	in     [][]int32
	// scattered is true when devices of one leaf are of several domains, so that no order of the ranking is theirs.
	scattered bool
	// seen are the fingerprints that the rankings are of. Invariant: seen of a pool == its ranking.taken.
	seen *ledger.Seen
	// loss of the candidate that each leaf offers, noLoss for none. It is the first of its ranking between calls.
	loss []int64
	// best[1] is the leaf that wins; the leaves of best[i] are those of best[2i] and best[2i+1].
	best []int32
	// ahead is how many candidates a leaf is ahead of its first; advanced are the leaves that are.
	ahead    []int
	advanced []int32
}

const noLoss = math.MaxInt64

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
		l.tie(w, worth)
	}
	n := len(l.ranks)
	l.loss, l.ahead, l.best = make([]int64, n), make([]int, n), make([]int32, 2*n)
	for leaf := range l.ranks {
		l.best[n+leaf] = int32(leaf)
	}
	for leaf, r := range l.ranks {
		// Others may have brought the ranking up to date before it came here.
		r.lineup, r.leaf = l, int32(leaf)
		s.refresh(r, l.members[leaf], w)
		l.enter(int32(leaf))
	}
	return l
}

// enter offers the first candidate of a leaf whose ranking is another now.
func (l *lineup) enter(leaf int32) {
	l.seen.See(l.members[leaf].Pool, l.ranks[leaf].taken)
	l.offer(leaf, 0)
}

// offer has a leaf offer its candidate at a place, and plays its matches again.
func (l *lineup) offer(leaf int32, at int) {
	l.ahead[leaf], l.loss[leaf] = at, noLoss
	if c, ok := l.ranks[leaf].at(at); ok {
		l.loss[leaf] = l.costs(leaf, c)
	}
	for i := (len(l.ranks) + int(leaf)) / 2; i > 0; i /= 2 {
		l.best[i] = l.winner(l.best[2*i], l.best[2*i+1])
	}
}

// tie finds the domain of every leaf.
func (l *lineup) tie(w World, worth []int64) {
	l.worth, l.in = worth, make([][]int32, len(worth))
	for leaf, m := range l.members {
		domain, same := w.Inventory.State(m.Pool).Common()
		l.scattered = l.scattered || !same
		l.domain = append(l.domain, domain)
		if same && domain >= 0 {
			l.in[domain] = append(l.in[domain], int32(leaf))
		}
	}
}

// costs is what taking a leaf's candidate costs, with what entering its domain does.
func (l *lineup) costs(leaf int32, c candidate) int64 {
	if l.worth == nil || l.domain[leaf] < 0 {
		return c.loss
	}
	return min(inventory.Add(c.loss, l.worth[l.domain[leaf]]), noLoss-1)
}

// revalue follows a domain whose worth is another now.
func (l *lineup) revalue(domain int32) {
	if l.in == nil {
		return
	}
	for _, leaf := range l.in[domain] {
		l.offer(leaf, 0)
	}
}

// winner is the leaf with the smaller loss, the first of equal ones.
func (l *lineup) winner(a, b int32) int32 {
	if l.loss[b] < l.loss[a] || l.loss[b] == l.loss[a] && b < a {
		return b
	}
	return a
}

// first fills best with the first candidates of all that suit the pods, in order, and returns how many there are.
func (s *Scored) first(l *lineup, it *item, set *gang.PodSet, w World, best []suitor) int {
	n := 0
	for n < len(best) && len(l.ranks) > 0 {
		leaf := l.best[1]
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
