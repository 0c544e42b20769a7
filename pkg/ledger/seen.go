package ledger

import "hash/maphash"

// Who keeps something for each pool, and is asked again after something else was taken, wants to look only at the pools
// where it was. Fingerprints are summed up for pages of pools and for all, so that what did not change is passed over.

// page is how many pools have a sum in common.
const page = 64

// prints are the fingerprints of pools in sums. A pool of which nothing is taken adds nothing.
type prints struct {
	total uint64
	pages []uint64
}

func newPrints(pools int) prints { return prints{pages: make([]uint64, (pools+page-1)/page)} }

type printAt struct {
	pool  int
	print uint64
}

func mix(pool int, print uint64) uint64 {
	if print == 0 {
		return 0
	}
	return maphash.Comparable(seed, printAt{pool, print})
}

func (p *prints) change(pool int, from, to uint64) {
	if from != to {
		by := mix(pool, to) - mix(pool, from)
		p.total += by
		p.pages[pool/page] += by
	}
}

// Seen are the fingerprints of all pools as somebody saw them last.
type Seen struct {
	prints
	pools []uint64
}

// NewSeen has seen ledgers of so many pools with nothing taken.
func NewSeen(pools int) *Seen { return &Seen{prints: newPrints(pools), pools: make([]uint64, pools)} }

// See notes the fingerprint of a pool.
func (s *Seen) See(pool int, print uint64) {
	s.change(pool, s.pools[pool], print)
	s.pools[pool] = print
}

// Changed calls each for every pool whose fingerprint is not the one that was seen, in order. each may See it.
func (l *Ledger) Changed(s *Seen, each func(pool int)) {
	if l.prints.total == s.total {
		return
	}
	for at := range l.prints.pages {
		if l.prints.pages[at] == s.pages[at] {
			continue
		}
		for pool := at * page; pool < min((at+1)*page, len(l.pools)); pool++ {
			if l.Fingerprint(pool) != s.pools[pool] {
				each(pool)
			}
		}
	}
}
