package ledger

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Holding is one device in somebody's hands.
type Holding struct {
	// Owner is namespace/name of the ResourceClaim or GangReservation, for people.
	Owner string
	// Reservation is the UID of the GangReservation behind it; empty for claims that are not Berth's. A reservation and
	// its own claims hold a device once, not twice.
	Reservation string
	Pool        inventory.PoolID
	Device      string
	// Share tells the shares apart that one holder has of a device; empty for who has it alone. A holder's shares add up, and
	// what several records say of one share counts once.
	Share string
	// Capacity is what the share takes, in order of names.
	Capacity []inventory.Amount
	// Charge is what the device consumed when it was given out, as far as that was recorded. A device that is still
	// published is charged with the greater of both.
	Charge []inventory.Charge
	// Hosts that the device stands on, as far as known. They matter when the device is no longer published and its
	// charge cannot be booked: then every device on these hosts is unavailable, or the whole pool when there are none.
	Hosts []string
}

// Ours reports whether Berth gave the device out.
func (h Holding) Ours() bool { return h.Reservation != "" }

// Equal reports whether both say the same.
func (h Holding) Equal(o Holding) bool {
	return h.Owner == o.Owner && h.Reservation == o.Reservation && h.Pool == o.Pool && h.Device == o.Device &&
		h.Share == o.Share && slices.Equal(h.Capacity, o.Capacity) && slices.Equal(h.Charge, o.Charge) && slices.Equal(h.Hosts, o.Hosts)
}

// identity is whom a device is held for.
func (h Holding) identity() string {
	if h.Reservation != "" {
		return "reservation " + h.Reservation
	}
	return "claim " + h.Owner
}

// hold is what one identity holds of one device, and how it is booked. It never changes.
type hold struct {
	// Holding is what the records say together.
	Holding
	of      string
	records []Holding
	// counters that are taken, with the amount, in order.
	counters []inventory.Use
	// device is the position of the device while it is published, or -1.
	device int32
	// regular is true when exactly the consumption of the published device is taken.
	regular bool
	// shared is true when only shares of the device are held; together with those of others they take counters once.
	shared bool
	// unbooked is true when neither the pool nor the records tell what the device takes.
	unbooked bool
	print    uint64
}

// together is what records of one device and identity say, in whatever order they come.
func together(records []Holding) Holding {
	out := records[0]
	out.Charge = normal(out.Charge)
	if out.Share != "" || len(records) > 1 {
		out.Share, out.Capacity = shares(records)
	}
	for _, r := range records[1:] {
		out.Owner = min(out.Owner, r.Owner)
		out.Charge = greater(out.Charge, normal(r.Charge))
		out.Hosts = slices.Concat(out.Hosts, r.Hosts)
	}
	if len(records) > 1 {
		slices.SortFunc(out.Hosts, inventory.Natural)
		out.Hosts = slices.Compact(out.Hosts)
	}
	return out
}

func byCounter(a, b inventory.Charge) int {
	return cmp.Or(cmp.Compare(a.CounterSet, b.CounterSet), cmp.Compare(a.Counter, b.Counter))
}

// normal has one entry for each counter, in order, and none below zero.
func normal(charge []inventory.Charge) []inventory.Charge {
	fine := true
	for i, c := range charge {
		fine = fine && c.Milli >= 0 && (i == 0 || byCounter(charge[i-1], c) < 0)
	}
	if fine {
		return charge
	}
	sorted := slices.Clone(charge)
	slices.SortFunc(sorted, byCounter)
	out := sorted[:0]
	for _, c := range sorted {
		c.Milli = max(c.Milli, 0)
		if n := len(out); n > 0 && byCounter(out[n-1], c) == 0 {
			out[n-1].Milli = inventory.Add(out[n-1].Milli, c.Milli)
			continue
		}
		out = append(out, c)
	}
	return out
}

// greater is the larger amount for every counter in a or b, both normal.
func greater(a, b []inventory.Charge) []inventory.Charge {
	out := make([]inventory.Charge, 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch order := byCounter(a[0], b[0]); {
		case order < 0:
			out, a = append(out, a[0]), a[1:]
		case order > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			c := a[0]
			c.Milli = max(c.Milli, b[0].Milli)
			out, a, b = append(out, c), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// hold books records, all of one device and identity. A device that vanished while it was held must not be given out in
// pieces under another name, so a charge that no longer fits the pool's counters blocks its hosts.
func (u *poolUse) hold(records []Holding) *hold {
	h := &hold{Holding: together(records), records: records, device: -1}
	h.of = h.identity()
	device := u.pool.Device(h.Device)
	charge := h.Charge
	var own []inventory.Use
	if device != nil {
		if at, known := u.occupied.plan.Position(device); known {
			h.device, own = int32(at), u.occupied.plan.Uses(at)
		}
		charge = greater(charge, normal(device.Charge))
	}
	lost := false
	for _, c := range charge {
		i, known := u.pool.CounterIndex(c.CounterSet, c.Counter)
		switch {
		case !known:
			lost = true
		case c.Milli > 0:
			rivals := u.occupied.short(i, inventory.Add(u.pool.Counters[i].Milli, -c.Milli))
			h.counters = append(h.counters, inventory.Use{Counter: int32(i), Rivals: int32(rivals), Milli: c.Milli})
		}
	}
	if slices.Equal(h.counters, own) {
		h.counters = own // The plan's own list: most holdings cost no memory for theirs.
		h.regular = h.device >= 0
	}
	h.unbooked = device == nil && (lost || len(h.counters) == 0)
	h.shared = h.Share != ""
	h.print = h.fingerprint()
	return h
}

var seed = maphash.MakeSeed()

type printKey struct {
	device, of string
	shared     bool
}

type amountKey struct {
	of      uint64
	counter int32
	milli   int64
}

type shareKey struct {
	of    uint64
	name  string
	milli int64
}

// fingerprint of what is taken and for whom.
func (h *hold) fingerprint() uint64 {
	of := maphash.Comparable(seed, printKey{h.Device, h.of, h.shared})
	sum := of
	for _, c := range h.counters {
		sum += maphash.Comparable(seed, amountKey{of, c.Counter, c.Milli})
	}
	if h.shared {
		for _, a := range h.Capacity {
			sum += maphash.Comparable(seed, shareKey{of, a.Name, a.Milli})
		}
	}
	if h.unbooked {
		for _, host := range h.Hosts {
			sum += maphash.Comparable(seed, host) ^ of
		}
	}
	return sum
}

// sameBooking reports whether two holds of one device take the same.
func (h *hold) sameBooking(o *hold) bool {
	return h.unbooked == o.unbooked && h.shared == o.shared && slices.Equal(h.Capacity, o.Capacity) && slices.Equal(h.counters, o.counters) && (!h.unbooked || slices.Equal(h.Hosts, o.Hosts))
}
