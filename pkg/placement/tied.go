package placement

import (
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// tied is what a lineup keeps of the domains that its pools are tied to, where each pool is tied to one at most. Everything
// in it follows from the rankings of the lineup and from the worth of the domains.
type tied struct {
	// worth of each domain: whoever takes a candidate also lowers that of its domain.
	worth []int64
	// domain is a leaf's, or negative, and in are the leaves of each.
	domain []int32
	in     [][]int32
	// scattered is true when devices of one leaf are of several domains. Then nothing below is kept.
	scattered bool
	// free candidates of each domain, which is the sum of those of its leaves.
	free, ofLeaf []int
	// light is for what the candidate of a leaf that is worth least is worth by itself.
	light cup
	// room are cups for the worth of the domains that have as many free candidates, by how many.
	room map[int]*cup
}

// maxCups is for how many sizes of gangs the domains that have room for them are kept in order.
const maxCups = 64

func newTied(members []*inventory.Members, w World, worth []int64) *tied {
	t := &tied{
		worth: worth, in: make([][]int32, len(worth)), free: make([]int, len(worth)), ofLeaf: make([]int, len(members)),
		light: newCup(len(members)), room: map[int]*cup{},
	}
	for leaf, m := range members {
		domain, same := w.Inventory.State(m.Pool).Common()
		t.scattered = t.scattered || !same
		t.domain = append(t.domain, domain)
		if same && domain >= 0 {
			t.in[domain] = append(t.in[domain], int32(leaf))
		}
	}
	return t
}

// enter follows a leaf whose ranking is another now.
func (t *tied) enter(leaf int32, r *ranking, sh *shelf, occ *ledger.Occupied) {
	domain := t.domain[leaf]
	if t.scattered || domain < 0 {
		return
	}
	least := int64(none)
	for _, c := range r.all {
		least = min(least, sh.value(c.device, occ))
	}
	t.light.set(leaf, least)
	if step := len(r.all) - t.ofLeaf[leaf]; step != 0 {
		t.ofLeaf[leaf] += step
		t.free[domain] += step
		t.revalue(domain)
	}
}

// revalue follows a domain of which the worth or the number of free candidates is another now.
func (t *tied) revalue(domain int32) {
	for blocks, c := range t.room {
		t.enroll(c, blocks, domain)
	}
}

// enroll has a domain take part in a cup if it has so many free candidates.
func (t *tied) enroll(c *cup, blocks int, domain int32) {
	value := int64(none)
	if t.free[domain] >= blocks {
		value = min(t.worth[domain], none-1)
	}
	c.set(domain, value)
}

// roomy is the cup of the domains with so many free candidates. Whoever changes it must put it back.
func (t *tied) roomy(blocks int) *cup {
	c := t.room[blocks]
	if c == nil {
		if len(t.room) >= maxCups {
			clear(t.room)
		}
		made := newCup(len(t.worth))
		c = &made
		for domain := range t.worth {
			t.enroll(c, blocks, int32(domain))
		}
		t.room[blocks] = c
	}
	return c
}

// lightest is what the candidate in any domain that is worth least is worth by itself. Whatever else a device excludes may be
// shared with the next one; its own worth is not.
func (t *tied) lightest() int64 {
	_, least := t.light.first()
	return least
}
