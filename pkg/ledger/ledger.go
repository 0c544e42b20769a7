package ledger

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Ledger is what is taken of an Inventory.
//
// One goroutine may write to it at a time, and nobody read meanwhile. Readers may share it, and Clone counts as reading.
type Ledger struct {
	inv *inventory.Inventory
	// token is what the ledger's own tables, pools and hosts carry. Everything else is shared with a clone and copied
	// before it is written to.
	token atomic.Pointer[token]
	owner *token
	// pools by position in the inventory; nil where nothing is taken.
	pools []*poolUse
	// prints are the fingerprints of pools.
	prints prints
	// astray are pools that the inventory does not have.
	astray map[inventory.PoolID]*poolUse
	// rooms by position of the host in the inventory; nil where no pod is.
	rooms []*hostUse
	// strange are hosts that the inventory does not have.
	strange map[string]*hostUse
	// quarantined counts the quarantines of a host, in any pool.
	quarantined map[string]int
}

// token tells whose something is. It has a size, so that no two are at one address.
type token struct{ _ byte }

// New returns a ledger in which nothing is taken.
func New(inv *inventory.Inventory) *Ledger {
	l := &Ledger{
		inv: inv, owner: &token{},
		pools: make([]*poolUse, len(inv.Pools())), prints: newPrints(len(inv.Pools())), astray: map[inventory.PoolID]*poolUse{},
		rooms: make([]*hostUse, len(inv.Hosts())), strange: map[string]*hostUse{}, quarantined: map[string]int{},
	}
	l.token.Store(l.owner)
	return l
}

// Clone returns a ledger that can be changed without changing this one.
func (l *Ledger) Clone() *Ledger {
	out := &Ledger{
		inv: l.inv, owner: l.owner, pools: l.pools, prints: l.prints, astray: l.astray, rooms: l.rooms, strange: l.strange, quarantined: l.quarantined,
	}
	out.token.Store(&token{})
	l.token.Store(&token{}) // What both see now is neither's own any more.
	return out
}

// own makes the tables the ledger's own and returns its token.
func (l *Ledger) own() *token {
	t := l.token.Load()
	if l.owner != t {
		l.pools, l.rooms, l.prints.pages = slices.Clone(l.pools), slices.Clone(l.rooms), slices.Clone(l.prints.pages)
		l.astray, l.strange, l.quarantined = maps.Clone(l.astray), maps.Clone(l.strange), maps.Clone(l.quarantined)
		l.owner = t
	}
	return t
}

// Inventory that the ledger is about.
func (l *Ledger) Inventory() *inventory.Inventory { return l.inv }

// Take books a holding. What several holdings of one device for one reservation say counts once: the greater of each
// charge, the hosts of all. More may be taken than there is; see Overdrawn. The caller must not change what h refers to.
func (l *Ledger) Take(h Holding) {
	u := l.use(h.Pool)
	old := u.find(h)
	var records []Holding
	if old != nil {
		records = old.records
	}
	before := u.occupied.print
	u.swap(old, u.hold(append(records[:len(records):len(records)], h)))
	l.settle(u, before)
}

// Give undoes one Take of an equal holding. It is false, and nothing changes, when there was none.
func (l *Ledger) Give(h Holding) bool {
	u := l.pool(h.Pool)
	if u == nil {
		return false
	}
	old := u.find(h)
	if old == nil {
		return false
	}
	i := slices.IndexFunc(old.records, h.Equal)
	if i < 0 {
		return false
	}
	u = l.use(h.Pool)
	var left *hold
	if len(old.records) > 1 {
		left = u.hold(slices.Delete(slices.Clone(old.records), i, i+1))
	}
	before := u.occupied.print
	u.swap(old, left)
	l.settle(u, before)
	return true
}

// Quarantine keeps every device of the pool that stands on the host from being given out.
func (l *Ledger) Quarantine(pool inventory.PoolID, host string) {
	u := l.use(pool)
	before := u.occupied.print
	l.quarantined[host]++
	if u.quarantined[host]++; u.quarantined[host] == 1 {
		u.occupied.quarantine(host, 1)
	}
	l.settle(u, before)
}

// Lift undoes one Quarantine. It is false, and nothing changes, when there was none.
func (l *Ledger) Lift(pool inventory.PoolID, host string) bool {
	if u := l.pool(pool); u == nil || u.quarantined[host] == 0 {
		return false
	}
	u := l.use(pool)
	before := u.occupied.print
	if u.quarantined[host]--; u.quarantined[host] == 0 {
		delete(u.quarantined, host)
		u.occupied.quarantine(host, -1)
	}
	if l.quarantined[host]--; l.quarantined[host] == 0 {
		delete(l.quarantined, host)
	}
	l.settle(u, before)
	return true
}

// Quarantined reports whether some pool's devices on the host are quarantined.
func (l *Ledger) Quarantined(host string) bool { return l.quarantined[host] > 0 }

// pool is what is taken of a pool, or nil.
func (l *Ledger) pool(id inventory.PoolID) *poolUse {
	if at, known := l.inv.Position(id); known {
		return l.pools[at]
	}
	return l.astray[id]
}

// use is pool for writing.
func (l *Ledger) use(id inventory.PoolID) *poolUse {
	t := l.own()
	at, known := l.inv.Position(id)
	u := l.astray[id]
	if known {
		u = l.pools[at]
	}
	switch {
	case u == nil && known:
		u = newPoolUse(id, l.inv.Pools()[at], t)
	case u == nil:
		u = newPoolUse(id, nil, t)
	case u.owner != t:
		u = u.clone(t)
	default:
		return u
	}
	if known {
		l.pools[at] = u
	} else {
		l.astray[id] = u
	}
	return u
}

// settle follows a change of what is taken of a pool, and forgets one of which nothing is taken any more.
func (l *Ledger) settle(u *poolUse, before uint64) {
	at, known := l.inv.Position(u.id)
	if known {
		l.prints.change(at, before, u.occupied.print)
	}
	switch {
	case u.held > 0 || len(u.quarantined) > 0:
	case known:
		l.pools[at] = nil
	default:
		delete(l.astray, u.id)
	}
}

// uses lists everything that is taken, pools of the inventory first and in its order.
func (l *Ledger) uses() []*poolUse {
	var out []*poolUse
	for _, u := range l.pools {
		if u != nil {
			out = append(out, u)
		}
	}
	for _, u := range l.astray {
		out = append(out, u)
	}
	return out
}
