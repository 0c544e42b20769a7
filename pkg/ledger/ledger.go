package ledger

import (
	"cmp"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Ledger is what is taken of an Inventory. It only grows: a smaller one is built anew. It is not safe for concurrent
// writers; readers may share it.
type Ledger struct {
	inv   *inventory.Inventory
	pools map[inventory.PoolID]*poolUse
	// managed are the same by the pool's position in the inventory; nil where nothing is taken.
	managed []*poolUse
	hosts   map[string]*hostUse
	// quarantined hosts of any pool.
	quarantined map[string]bool
}

// Holding is one device in somebody's hands.
type Holding struct {
	// Owner is namespace/name of the ResourceClaim or GangReservation, for people.
	Owner string
	// Reservation is the UID of the GangReservation behind it; empty for claims that are not Berth's. A reservation and
	// its own claims hold a device once, not twice.
	Reservation string
	Pool        inventory.PoolID
	Device      string
	// Charge is what the device consumed when it was given out, as far as that was recorded. A device that is still
	// published is charged with the greater of both.
	Charge []inventory.Charge
	// Hosts that the device stands on, as far as known. They matter when the device is no longer published and its
	// charge cannot be booked: then every device on these hosts is unavailable, or the whole pool when there are none.
	Hosts []string
}

// Ours reports whether Berth gave the device out.
func (h Holding) Ours() bool { return h.Reservation != "" }

// identity is whom a device is held for.
func (h Holding) identity() string {
	if h.Reservation != "" {
		return "reservation " + h.Reservation
	}
	return "claim " + h.Owner
}

type holdKey struct{ device, identity string }

// hold is a Holding together with how it is booked.
type hold struct {
	Holding
	// counters by index of the pool, with the amount.
	counters map[int]int64
	// published is the device while it is still published.
	published *inventory.Device
	// unbooked is set when neither the pool nor the record tells what the device takes.
	unbooked bool
}

// poolUse is what is taken of one pool. Sum over holds of counters[i] == used[i].
type poolUse struct {
	pool        *inventory.Pool
	used        []int64
	holds       map[holdKey]*hold
	onDevice    map[string]map[holdKey]*hold
	onCounter   map[int]map[holdKey]*hold
	unbooked    map[holdKey]*hold
	quarantined map[string]bool

	occupied occupied
}

// New returns a ledger in which nothing is taken.
func New(inv *inventory.Inventory) *Ledger {
	return &Ledger{
		inv: inv, pools: map[inventory.PoolID]*poolUse{}, managed: make([]*poolUse, len(inv.Pools())),
		hosts: map[string]*hostUse{}, quarantined: map[string]bool{},
	}
}

func (l *Ledger) use(id inventory.PoolID) *poolUse {
	u, ok := l.pools[id]
	if !ok {
		u = &poolUse{
			pool:      l.inv.Pool(id),
			holds:     map[holdKey]*hold{},
			onDevice:  map[string]map[holdKey]*hold{},
			onCounter: map[int]map[holdKey]*hold{},
			unbooked:  map[holdKey]*hold{}, quarantined: map[string]bool{},
		}
		if u.pool != nil {
			u.used = make([]int64, len(u.pool.Counters))
			u.occupied = newOccupied(u.pool)
			at, _ := l.inv.Position(id)
			l.managed[at] = u
		}
		l.pools[id] = u
	}
	return u
}

// Take books a holding. Booking the same device for the same reservation again does not take it twice: of what the two
// records say, the greater charge counts. More may be taken than there is; see Overdrawn.
func (l *Ledger) Take(h Holding) {
	u := l.use(h.Pool)
	key := holdKey{h.Device, h.identity()}
	old, twice := u.holds[key]
	if twice {
		u.unbook(key, old)
		h = merge(old.Holding, h)
	}
	booked := &hold{Holding: h, published: u.pool.Device(h.Device)}
	booked.counters, booked.unbooked = u.book(h)
	u.holds[key] = booked
	add(u.onDevice, h.Device, key, booked)
	for i, milli := range booked.counters {
		u.occupied.drain(i, u.used[i], inventory.Add(u.used[i], milli))
		u.used[i] = inventory.Add(u.used[i], milli)
		add(u.onCounter, i, key, booked)
	}
	if booked.unbooked {
		u.unbooked[key] = booked
	}
	u.occupied.enter(key, booked, len(u.onDevice[h.Device]) == 1)
	if twice && old.unbooked {
		// Only now it is known what is taken, and that may be less than was feared.
		u.occupied.retrace(key.identity, u.holds)
	}
}

func add[K comparable](index map[K]map[holdKey]*hold, at K, key holdKey, h *hold) {
	if index[at] == nil {
		index[at] = map[holdKey]*hold{}
	}
	index[at][key] = h
}

func (u *poolUse) unbook(key holdKey, h *hold) {
	u.occupied.leave(key, h, len(u.onDevice[h.Device]) == 1)
	for i, milli := range h.counters {
		u.occupied.drain(i, u.used[i], u.used[i]-milli)
		u.used[i] -= milli
		delete(u.onCounter[i], key)
	}
	delete(u.onDevice[h.Device], key)
	delete(u.unbooked, key)
	delete(u.holds, key)
}

// merge is commutative, so that the order of claims and reservations does not matter.
func merge(a, b Holding) Holding {
	out := a
	out.Owner = min(a.Owner, b.Owner)
	out.Charge = greater(a.Charge, b.Charge)
	out.Hosts = slices.Concat(a.Hosts, b.Hosts)
	slices.SortFunc(out.Hosts, inventory.Natural)
	out.Hosts = slices.Compact(out.Hosts)
	return out
}

// greater is the larger amount for every counter in a or b.
func greater(a, b []inventory.Charge) []inventory.Charge {
	out := slices.Clone(a)
	for _, c := range b {
		i := slices.IndexFunc(out, func(o inventory.Charge) bool { return o.CounterSet == c.CounterSet && o.Counter == c.Counter })
		if i < 0 {
			out = append(out, c)
			continue
		}
		out[i].Milli = max(out[i].Milli, c.Milli)
	}
	slices.SortFunc(out, func(a, b inventory.Charge) int {
		return cmp.Or(cmp.Compare(a.CounterSet, b.CounterSet), cmp.Compare(a.Counter, b.Counter))
	})
	return out
}

// book says which counters a holding takes, or that this cannot be told. A device that vanished while it was held must
// not be given out in pieces under another name, so a charge that no longer fits the pool's counters blocks its hosts.
func (u *poolUse) book(h Holding) (counters map[int]int64, unbooked bool) {
	device := u.pool.Device(h.Device)
	charge := h.Charge
	if device != nil {
		charge = greater(charge, device.Charge)
	}
	counters = map[int]int64{}
	lost := false
	for _, c := range charge {
		i, known := u.pool.CounterIndex(c.CounterSet, c.Counter)
		if !known {
			lost = true
			continue
		}
		if c.Milli > 0 {
			counters[i] = inventory.Add(counters[i], c.Milli)
		}
	}
	return counters, device == nil && (lost || len(counters) == 0)
}

// Quarantine keeps every device of the pool that stands on the host from being given out.
func (l *Ledger) Quarantine(pool inventory.PoolID, host string) {
	u := l.use(pool)
	if !u.quarantined[host] {
		u.quarantined[host], l.quarantined[host] = true, true
		u.occupied.quarantine(host)
	}
}

// Quarantined reports whether some pool's devices on the host are quarantined.
func (l *Ledger) Quarantined(host string) bool { return l.quarantined[host] }

// Clone returns a ledger that can be changed without changing this one.
func (l *Ledger) Clone() *Ledger {
	out := New(l.inv)
	for id, u := range l.pools {
		for _, h := range u.holds {
			out.Take(h.Holding)
		}
		for host := range u.quarantined {
			out.Quarantine(id, host)
		}
	}
	for host, u := range l.hosts {
		for pod, requests := range u.pods {
			out.Use(host, pod, requests)
		}
	}
	return out
}
