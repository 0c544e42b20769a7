package ledger

import (
	"cmp"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// shares is what the records of one device and holder say of its shares together: their names, and the sum of what each
// takes, where of several records of one share the greater amounts count. The name is empty when some record says that the
// holder has the device alone.
func shares(records []Holding) (string, []inventory.Amount) {
	of := map[string]map[string]int64{}
	for _, r := range records {
		if r.Share == "" {
			return "", nil
		}
		if of[r.Share] == nil {
			of[r.Share] = map[string]int64{}
		}
		for _, a := range r.Capacity {
			of[r.Share][a.Name] = max(of[r.Share][a.Name], a.Milli)
		}
	}
	names, sum := make([]string, 0, len(of)), map[string]int64{}
	for name, takes := range of {
		names = append(names, name)
		for capacity, milli := range takes {
			sum[capacity] = inventory.Add(sum[capacity], milli)
		}
	}
	slices.Sort(names)
	var all []inventory.Amount
	for name, milli := range sum {
		all = append(all, inventory.Amount{Name: name, Milli: milli})
	}
	slices.SortFunc(all, func(a, b inventory.Amount) int { return cmp.Compare(a.Name, b.Name) })
	text := names[0]
	for _, name := range names[1:] {
		text += ", " + name
	}
	return text, all
}

// takesOf is what the hold takes of a capacity.
func (h *hold) takesOf(capacity string) int64 {
	for _, a := range h.Capacity {
		if a.Name == capacity {
			return a.Milli
		}
	}
	return 0
}

// counters is what the holds of one device take of its pool's counters: each what it takes, but all shares together no more
// than the greatest.
func (r *row) counters() map[int32]int64 {
	sum, shared := map[int32]int64{}, map[int32]int64{}
	for _, h := range r.all() {
		for _, c := range h.counters {
			if h.shared {
				shared[c.Counter] = max(shared[c.Counter], c.Milli)
			} else {
				sum[c.Counter] = inventory.Add(sum[c.Counter], c.Milli)
			}
		}
	}
	for counter, milli := range shared {
		sum[counter] = inventory.Add(sum[counter], milli)
	}
	return sum
}

// shared reports whether every holder of the device has only shares of it.
func (r *row) shared() bool {
	return !slices.ContainsFunc(r.all(), func(h *hold) bool { return !h.shared })
}

// left is what nobody has taken of a capacity; negative when more is taken than there is.
func (r *row) left(c inventory.Capacity) int64 {
	left := c.Milli
	for _, h := range r.all() {
		left = inventory.Add(left, -h.takesOf(c.Name))
	}
	return left
}

// overshared is a capacity of which the shares take more than the published device has, and by how much.
func (r *row) overshared(d *inventory.Device) (string, int64) {
	for _, c := range d.Capacity {
		if left := r.left(c); left < 0 {
			return c.Name, -left
		}
	}
	return "", 0
}

// shared is what a trial has of a shared device.
type shared struct {
	n    int
	used []int64 // by position in Device.Capacity
	// opens is true when nobody had a share before, so that the trial took the device's counters.
	opens bool
}

// ObstacleTo says what keeps a share of a shared device from being taken that takes these amounts, in the order of the
// device's capacities; or nil.
func (t *Trial) ObstacleTo(d *inventory.Device, takes []inventory.Amount) *Obstacle {
	if !t.freeFor(d, takes) {
		return &Obstacle{Code: reason.NoFreeSlice, Owners: t.ledger.HoldersOf(d, takes)}
	}
	return t.quarantined(d)
}

func (t *Trial) freeFor(d *inventory.Device, takes []inventory.Amount) bool {
	if t.taken[d] || !d.Shared || len(takes) != len(d.Capacity) {
		return false
	}
	u, mine := t.ledger.pool(d.Pool), t.shares[d]
	var held *row
	if u != nil {
		if held = u.at(d.Name); !held.shared() || u.blockedBy(d) != nil {
			return false
		}
	}
	for i, c := range d.Capacity {
		left := held.left(c)
		if mine != nil {
			left = inventory.Add(left, -mine.used[i])
		}
		if left < takes[i].Milli {
			return false
		}
	}
	return mine != nil || len(held.all()) > 0 || t.suffice(d)
}

// TakeShare takes a share; ask ObstacleTo before.
func (t *Trial) TakeShare(d *inventory.Device, takes []inventory.Amount) {
	s := t.shares[d]
	if s == nil {
		u := t.ledger.pool(d.Pool)
		s = &shared{used: make([]int64, len(d.Capacity)), opens: u == nil || len(u.at(d.Name).all()) == 0}
		t.shares[d] = s
		if s.opens {
			t.charge(d, 1)
		}
	}
	s.n++
	for i, a := range takes {
		s.used[i] = inventory.Add(s.used[i], a.Milli)
	}
}

// DropShare undoes TakeShare.
func (t *Trial) DropShare(d *inventory.Device, takes []inventory.Amount) {
	s := t.shares[d]
	if s.n--; s.n == 0 {
		delete(t.shares, d)
		if s.opens {
			t.charge(d, -1)
		}
		return
	}
	for i, a := range takes {
		s.used[i] = inventory.Add(s.used[i], -a.Milli)
	}
}

// HoldersOf are the owners of what keeps a share of a device from being taken. Sorted; empty when nobody does.
func (l *Ledger) HoldersOf(d *inventory.Device, takes []inventory.Amount) []string {
	u := l.pool(d.Pool)
	if u == nil {
		return nil
	}
	held := u.at(d.Name)
	if len(held.all()) == 0 || u.blockedBy(d) != nil {
		return l.Holders(d)
	}
	var names []string
	for _, h := range held.all() {
		short := !h.shared
		for i, c := range d.Capacity {
			short = short || i < len(takes) && held.left(c) < takes[i].Milli && h.takesOf(c.Name) > 0
		}
		if short {
			names = append(names, h.Owner)
		}
	}
	return sorted(names)
}

// Shares is how many shares of a device that take these amounts could be taken now at once, at most limit.
func (l *Ledger) Shares(d *inventory.Device, takes []inventory.Amount, limit int) int {
	if !l.FreeFor(d, takes) {
		return 0
	}
	var held *row
	if u := l.pool(d.Pool); u != nil {
		held = u.at(d.Name)
	}
	for i, c := range d.Capacity {
		if takes[i].Milli > 0 {
			limit = int(min(int64(limit), held.left(c)/takes[i].Milli))
		}
	}
	return limit
}

// FreeFor reports whether a share of a shared device could be taken now that takes these amounts, in the order of the
// device's capacities.
func (l *Ledger) FreeFor(d *inventory.Device, takes []inventory.Amount) bool {
	return l.Try().ObstacleTo(d, takes) == nil
}
