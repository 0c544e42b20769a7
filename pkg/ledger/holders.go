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
	// The same holder stands at most counters of a device: names are put in order only once they are distinct.
	var owners names
	if at, known := u.occupied.plan.Position(d); known {
		owners.add(u.onDevice[at].all())
		for _, use := range u.occupied.plan.Uses(at) {
			if u.lacks(use) {
				owners.add(u.onCounter[use.Counter].all())
			}
		}
	} else {
		owners.add(u.at(d.Name).all())
		for _, c := range d.Charge {
			i, known := u.pool.CounterIndex(c.CounterSet, c.Counter)
			if known && inventory.Add(u.pool.Counters[i].Milli, -u.used[i]) < c.Milli {
				owners.add(u.onCounter[i].all())
			}
		}
	}
	if u.unbooked != nil {
		owners.add(u.blockedBy(d))
	}
	return sorted(owners.list)
}

// few is up to how many names are looked through one by one.
const few = 16

// names of owners, each once.
type names struct {
	list []string
	seen map[string]struct{} // nil while there are few
}

func (n *names) add(holds []*hold) {
	for _, h := range holds {
		if n.seen == nil && len(n.list) == few {
			n.seen = make(map[string]struct{}, 2*few)
			for _, name := range n.list {
				n.seen[name] = struct{}{}
			}
		}
		if n.seen == nil {
			if slices.Contains(n.list, h.Owner) {
				continue
			}
		} else {
			if _, seen := n.seen[h.Owner]; seen {
				continue
			}
			n.seen[h.Owner] = struct{}{}
		}
		if n.list == nil {
			n.list = make([]string, 0, 4)
		}
		n.list = append(n.list, h.Owner)
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
