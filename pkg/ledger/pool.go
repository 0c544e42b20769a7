package ledger

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// poolUse is what is taken of one pool. Sum over holds of what they take of counter i == used[i], or that is at its limit.
type poolUse struct {
	owner *token
	id    inventory.PoolID
	// pool is nil when the inventory does not have it.
	pool *inventory.Pool
	used []int64
	// held is the number of holds.
	held int
	// onDevice and onCounter are the holds by the position of their published device and of the counters that they take.
	// vanished are those of devices that are not published, by name.
	onDevice, onCounter []*row
	vanished            map[string]*row
	// named are all holds in order of names (see byName), so that the first of many holders are known without sorting.
	named []*hold
	// unbooked holds may overlap with anything on their hosts.
	unbooked *row
	// quarantined counts the quarantines of a host.
	quarantined map[string]int

	occupied occupied
}

// row is a short list of holds. It never changes; nil is the empty one.
type row struct{ holds []*hold }

func (r *row) all() []*hold {
	if r == nil {
		return nil
	}
	return r.holds
}

// with and without return the row that r becomes.
func (r *row) with(h *hold) *row { return &row{append(slices.Clone(r.all()), h)} }

func (r *row) without(h *hold) *row {
	if len(r.all()) <= 1 {
		return nil
	}
	out := make([]*hold, 0, len(r.holds)-1)
	for _, o := range r.holds {
		if o != h {
			out = append(out, o)
		}
	}
	return &row{out}
}

func newPoolUse(id inventory.PoolID, pool *inventory.Pool, t *token) *poolUse {
	u := &poolUse{owner: t, id: id, pool: pool, vanished: map[string]*row{}, quarantined: map[string]int{}}
	if pool != nil {
		u.used = make([]int64, len(pool.Counters))
		u.onCounter = make([]*row, len(pool.Counters))
	}
	u.occupied = newOccupied(pool)
	u.onDevice = make([]*row, u.occupied.plan.Devices())
	return u
}

// clone is a copy that belongs to t.
func (u *poolUse) clone(t *token) *poolUse {
	c := *u
	c.owner = t
	c.used = slices.Clone(u.used)
	c.onDevice, c.onCounter, c.named = slices.Clone(u.onDevice), slices.Clone(u.onCounter), slices.Clone(u.named)
	c.vanished, c.quarantined = maps.Clone(u.vanished), maps.Clone(u.quarantined)
	c.occupied = u.occupied.clone()
	return &c
}

// at is the row of a device's holders; for one that is not published nil, like one that nobody holds.
func (u *poolUse) at(device string) *row {
	if d := u.pool.Device(device); d != nil {
		if at, known := u.occupied.plan.Position(d); known {
			return u.onDevice[at]
		}
	}
	return u.vanished[device]
}

// find is the hold of the same device for the same identity, or nil.
func (u *poolUse) find(h Holding) *hold {
	of := h.identity()
	for _, o := range u.at(h.Device).all() {
		if o.of == of {
			return o
		}
	}
	return nil
}

// all calls each for every hold.
func (u *poolUse) all(each func(*hold)) {
	for _, r := range u.onDevice {
		for _, h := range r.all() {
			each(h)
		}
	}
	for _, r := range u.vanished {
		for _, h := range r.all() {
			each(h)
		}
	}
}

// swap books what is held instead of old; either may be nil.
func (u *poolUse) swap(old, now *hold) {
	if old != nil && now != nil && old.sameBooking(now) {
		u.rows(old, now)
		return
	}
	if old != nil && old.shared || now != nil && now.shared {
		u.swapShares(old, now)
		return
	}
	if old != nil {
		u.held--
		u.occupied.leave(u.owner, old, len(u.at(old.Device).all()) == 1)
		u.rows(old, nil)
		for _, c := range old.counters {
			u.draw(int(c.Counter), u.used[c.Counter], -c.Milli)
		}
	}
	if now != nil {
		u.held++
		u.rows(nil, now)
		for _, c := range now.counters {
			u.draw(int(c.Counter), u.used[c.Counter], c.Milli)
		}
		u.occupied.enter(u.owner, now, len(u.at(now.Device).all()) == 1)
	}
}

// swapShares is swap where shares of a device are held: what they take of counters follows from all holds of the device.
func (u *poolUse) swapShares(old, now *hold) {
	device := now
	if device == nil {
		device = old
	}
	before := u.at(device.Device).counters()
	if old != nil {
		u.held--
		u.occupied.leave(u.owner, old, len(u.at(old.Device).all()) == 1)
		u.rows(old, nil)
	}
	if now != nil {
		u.held++
		u.rows(nil, now)
	}
	after := u.at(device.Device).counters()
	for _, counter := range slices.Sorted(maps.Keys(before)) {
		if _, still := after[counter]; !still {
			after[counter] = 0
		}
	}
	for _, counter := range slices.Sorted(maps.Keys(after)) {
		u.draw(int(counter), u.used[counter], inventory.Add(after[counter], -before[counter]))
	}
	if now != nil {
		u.occupied.enter(u.owner, now, len(u.at(now.Device).all()) == 1)
	}
}

// draw changes what is used of a counter. The holds on it are already what they will be.
func (u *poolUse) draw(counter int, from, milli int64) {
	to := inventory.Add(from, milli)
	if milli < 0 && from == math.MaxInt64 {
		// Beyond its limit a sum cannot be undone by subtracting.
		to = 0
		greatest := map[string]int64{}
		for _, h := range u.onCounter[counter].all() {
			if milli := h.takes(int32(counter)); h.shared {
				greatest[h.Device] = max(greatest[h.Device], milli)
			} else {
				to = inventory.Add(to, milli)
			}
		}
		for _, milli := range greatest {
			to = inventory.Add(to, milli)
		}
	}
	u.used[counter] = to
	u.occupied.drain(counter, from, to)
}

func (h *hold) takes(counter int32) int64 {
	i, found := slices.BinarySearchFunc(h.counters, counter, func(u inventory.Use, counter int32) int { return cmp.Compare(u.Counter, counter) })
	if !found {
		return 0
	}
	return h.counters[i].Milli
}

// rows puts now in the place of old in every index.
func (u *poolUse) rows(old, now *hold) {
	change := func(r *row) *row {
		switch {
		case old == nil:
			return r.with(now)
		case now == nil:
			return r.without(old)
		default:
			return r.without(old).with(now)
		}
	}
	u.rename(old, now)
	h := now
	if h == nil {
		h = old
	}
	if h.device >= 0 {
		u.onDevice[h.device] = change(u.onDevice[h.device])
	} else if r := change(u.vanished[h.Device]); r != nil {
		u.vanished[h.Device] = r
	} else {
		delete(u.vanished, h.Device)
	}
	for _, c := range h.counters {
		u.onCounter[c.Counter] = change(u.onCounter[c.Counter])
	}
	if h.unbooked {
		u.unbooked = change(u.unbooked)
	}
}

// blockedBy are the holds of vanished devices that may overlap with the device.
func (u *poolUse) blockedBy(d *inventory.Device) []*hold {
	var found []*hold
	for _, h := range u.unbooked.all() {
		if len(h.Hosts) == 0 || len(d.Hosts) == 0 || overlap(h.Hosts, d.Hosts) {
			found = append(found, h)
		}
	}
	return found
}

func overlap(a, b []string) bool {
	in := make(map[string]bool, len(a))
	for _, x := range a {
		in[x] = true
	}
	for _, x := range b {
		if in[x] {
			return true
		}
	}
	return false
}
