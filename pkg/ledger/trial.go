package ledger

import (
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// Trial is a what-if on top of a Ledger that it never changes: devices taken and pods seated for one gang, each of
// which can be taken back.
type Trial struct {
	ledger *Ledger
	used   map[inventory.PoolID]map[int]int64
	taken  map[*inventory.Device]bool
	seats  map[string]map[string]int64
}

// Try begins a what-if.
func (l *Ledger) Try() *Trial {
	return &Trial{ledger: l, used: map[inventory.PoolID]map[int]int64{}, taken: map[*inventory.Device]bool{}, seats: map[string]map[string]int64{}}
}

// Obstacle is why a device cannot be taken now.
type Obstacle struct {
	// Code is NoFreeSlice or Quarantined.
	Code reason.Code
	// Owners of what stands in the way; empty when it is the gang of the trial itself.
	Owners []string
	// Hosts that are quarantined.
	Hosts []string
}

// Obstacle says what keeps the device from being taken, or nil.
func (t *Trial) Obstacle(d *inventory.Device) *Obstacle {
	if !t.free(d) {
		return &Obstacle{Code: reason.NoFreeSlice, Owners: t.ledger.Holders(d)}
	}
	if u, touched := t.ledger.pools[d.Pool]; touched && len(u.quarantined) > 0 {
		var hosts []string
		for _, h := range d.Hosts {
			if u.quarantined[h] {
				hosts = append(hosts, h)
			}
		}
		if len(hosts) > 0 {
			return &Obstacle{Code: reason.Quarantined, Hosts: hosts}
		}
	}
	return nil
}

func (t *Trial) free(d *inventory.Device) bool {
	if t.taken[d] {
		return false
	}
	u, touched := t.ledger.pools[d.Pool]
	if touched && (len(u.onDevice[d.Name]) > 0 || u.blockedBy(d) != nil) {
		return false
	}
	p := t.ledger.inv.Pool(d.Pool)
	if p.Usable() && len(t.used[d.Pool]) == 0 {
		if at, ok := p.Plan().Position(d); ok {
			return !touched || u.occupied.short[at] == 0
		}
	}
	for _, c := range d.Charge {
		i, known := p.CounterIndex(c.CounterSet, c.Counter)
		if !known {
			return false // The pool is invalid; nobody should have asked.
		}
		left := inventory.Add(p.Counters[i].Milli, -t.used[d.Pool][i])
		if touched {
			left = inventory.Add(left, -u.used[i])
		}
		if left < c.Milli {
			return false
		}
	}
	return true
}

// blockedBy returns the holdings of vanished devices that may overlap with the device.
func (u *poolUse) blockedBy(d *inventory.Device) map[holdKey]*hold {
	var found map[holdKey]*hold
	for key, h := range u.unbooked {
		if len(h.Hosts) == 0 || len(d.Hosts) == 0 || overlap(h.Hosts, d.Hosts) {
			if found == nil {
				found = map[holdKey]*hold{}
			}
			found[key] = h
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

// Take takes a device; ask Obstacle before.
func (t *Trial) Take(d *inventory.Device) { t.charge(d, 1); t.taken[d] = true }

// Drop undoes Take.
func (t *Trial) Drop(d *inventory.Device) { t.charge(d, -1); delete(t.taken, d) }

func (t *Trial) charge(d *inventory.Device, sign int64) {
	p := t.ledger.inv.Pool(d.Pool)
	for _, c := range d.Charge {
		if i, known := p.CounterIndex(c.CounterSet, c.Counter); known {
			if t.used[d.Pool] == nil {
				t.used[d.Pool] = map[int]int64{}
			}
			t.used[d.Pool][i] = inventory.Add(t.used[d.Pool][i], sign*c.Milli)
		}
	}
}

// Shortage says what the host lacks for one more pod with these requests beside the pods seated in the trial, or nil.
func (t *Trial) Shortage(host string, requests map[string]int64) *Shortage {
	need := withPod(requests)
	for name, milli := range t.seats[host] {
		if need[name] > 0 {
			need[name] = inventory.Add(need[name], milli)
		}
	}
	return t.ledger.shortage(host, need)
}

// Seat books a pod on a host; Unseat undoes it.
func (t *Trial) Seat(host string, requests map[string]int64) { t.seat(host, requests, 1) }

// Unseat undoes Seat.
func (t *Trial) Unseat(host string, requests map[string]int64) { t.seat(host, requests, -1) }

func (t *Trial) seat(host string, requests map[string]int64, sign int64) {
	if t.seats[host] == nil {
		t.seats[host] = map[string]int64{}
	}
	for name, milli := range withPod(requests) {
		t.seats[host][name] = inventory.Add(t.seats[host][name], sign*milli)
	}
}

// Holders are the owners of holdings that keep the device from being taken: of itself, of counters that it needs and
// that do not suffice, of vanished devices on its hosts. Sorted; empty when it is free.
func (l *Ledger) Holders(d *inventory.Device) []string {
	u, touched := l.pools[d.Pool]
	if !touched {
		return nil
	}
	// The same holder stands at most counters of a device: names are compared only once they are distinct.
	var names []string
	seen := map[holdKey]bool{}
	collect := func(holds map[holdKey]*hold) {
		for key, h := range holds {
			if !seen[key] {
				seen[key] = true
				names = append(names, h.Owner)
			}
		}
	}
	collect(u.onDevice[d.Name])
	collect(u.blockedBy(d))
	for _, c := range d.Charge {
		i, known := u.pool.CounterIndex(c.CounterSet, c.Counter)
		if known && inventory.Add(u.pool.Counters[i].Milli, -u.used[i]) < c.Milli {
			collect(u.onCounter[i])
		}
	}
	return sorted(names)
}

// Free reports whether the device could be taken now as far as claims, reservations and quarantine go.
func (l *Ledger) Free(d *inventory.Device) bool { return l.Try().Obstacle(d) == nil }
