package ledger

import (
	"cmp"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Holders are the owners of holdings that keep the device from being taken: of itself, of counters that it needs and
// that do not suffice, of vanished devices on its hosts. Sorted; empty when it is free.
func (l *Ledger) Holders(d *inventory.Device) []string {
	u := l.pool(d.Pool)
	if u == nil {
		return nil
	}
	// The same holder stands at most counters of a device: names are compared only once they are distinct.
	var room [few]*hold
	holds := distinct{holds: room[:0]}
	if at, known := u.occupied.plan.Position(d); known {
		holds.add(u.onDevice[at].all())
		for _, use := range u.occupied.plan.Uses(at) {
			if u.lacks(use) {
				holds.add(u.onCounter[use.Counter].all())
			}
		}
	} else {
		holds.add(u.at(d.Name).all())
		for _, c := range d.Charge {
			i, known := u.pool.CounterIndex(c.CounterSet, c.Counter)
			if known && inventory.Add(u.pool.Counters[i].Milli, -u.used[i]) < c.Milli {
				holds.add(u.onCounter[i].all())
			}
		}
	}
	if u.unbooked != nil {
		holds.add(u.blockedBy(d))
	}
	return owners(holds.holds)
}

// few is up to how many holds are looked through one by one.
const few = 16

// distinct is a list of holds, each once.
type distinct struct {
	holds []*hold
	seen  map[*hold]struct{} // nil while there are few
}

func (d *distinct) add(more []*hold) {
	for _, h := range more {
		if d.seen == nil && len(d.holds) == few {
			d.seen = make(map[*hold]struct{}, 2*few)
			for _, h := range d.holds {
				d.seen[h] = struct{}{}
			}
		}
		if d.seen == nil {
			if !slices.Contains(d.holds, h) {
				d.holds = append(d.holds, h)
			}
		} else if _, seen := d.seen[h]; !seen {
			d.seen[h] = struct{}{}
			d.holds = append(d.holds, h)
		}
	}
}

// lacks reports whether less is left of a counter than a device uses of it.
func (u *poolUse) lacks(use inventory.Use) bool {
	return inventory.Add(u.occupied.plan.Total(int(use.Counter)), -u.used[use.Counter]) < use.Milli
}

// EachHolder calls each with the owners of holdings that keep one of the devices at these positions of the pool at a
// position in the inventory's Pools from being taken, each once and in natural order; compare Holders.
func (l *Ledger) EachHolder(pool int, devices []int32, each func(owner string)) {
	u := l.at(pool)
	if u == nil {
		return
	}
	plan := u.occupied.plan
	// Many devices lack the same counters, and a holding stands on many of them: so what is lacking is found first, and then
	// each holding is looked at once.
	asked, lacking := newBits(plan.Devices(), len(u.used))
	for _, d := range devices {
		asked.set(d)
		for _, use := range plan.Uses(int(d)) {
			if u.lacks(use) {
				lacking.set(use.Counter)
			}
		}
	}
	var last *hold // that each was called for
	for _, h := range u.named {
		if (last == nil || last.Owner != h.Owner) && u.inTheWay(h, devices, asked, lacking) {
			each(h.Owner)
			last = h
		}
	}
}

// inTheWay reports whether a hold keeps some of the devices from being taken.
func (u *poolUse) inTheWay(h *hold, devices []int32, asked, lacking bits) bool {
	if h.device >= 0 && asked.has(h.device) {
		return true
	}
	for i := range h.counters {
		if lacking.has(h.counters[i].Counter) {
			return true
		}
	}
	return h.unbooked && slices.ContainsFunc(devices, func(d int32) bool { return slices.Contains(u.blockedBy(u.pool.Devices[d]), h) })
}

// bits is a set of small numbers.
type bits []uint64

// newBits are two empty sets of numbers below n and m.
func newBits(n, m int) (a, b bits) {
	words := (n + 63) / 64
	all := make(bits, words+(m+63)/64)
	return all[:words], all[words:]
}

func (b bits) set(i int32)      { b[uint32(i)/64] |= 1 << (uint32(i) % 64) }
func (b bits) has(i int32) bool { return b[uint32(i)/64]>>(uint32(i)%64)&1 != 0 }

// byName orders the holds of a pool by their owners in natural order; the rest is there to make the order one of its own.
func byName(a, b *hold) int {
	if a == b {
		return 0
	}
	return cmp.Or(inventory.Natural(a.Owner, b.Owner), cmp.Compare(a.Device, b.Device), cmp.Compare(a.of, b.of))
}

// rename puts now in the place of old among the names; either may be nil.
func (u *poolUse) rename(old, now *hold) {
	if old != nil {
		at, _ := slices.BinarySearchFunc(u.named, old, byName)
		u.named = slices.Delete(u.named, at, at+1)
	}
	if now != nil {
		at, _ := slices.BinarySearchFunc(u.named, now, byName)
		u.named = slices.Insert(u.named, at, now)
	}
}
