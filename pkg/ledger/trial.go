package ledger

import (
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// Trial is a what-if on top of a Ledger that it never changes: devices taken and pods seated for one gang, each of
// which can be taken back.
type Trial struct {
	ledger *Ledger
	used   map[inventory.PoolID]map[int]int64
	taken  map[*inventory.Device]bool
	shares map[*inventory.Device]*shared
	// seats are what pods of the trial take of a host, by resource, in no order.
	seats map[string][]amount
}

// Try begins a what-if.
func (l *Ledger) Try() *Trial {
	return &Trial{ledger: l, used: map[inventory.PoolID]map[int]int64{}, taken: map[*inventory.Device]bool{}, shares: map[*inventory.Device]*shared{}, seats: map[string][]amount{}}
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
	return t.quarantined(d)
}

func (t *Trial) quarantined(d *inventory.Device) *Obstacle {
	if u := t.ledger.pool(d.Pool); u != nil && len(u.quarantined) > 0 {
		var hosts []string
		for _, h := range d.Hosts {
			if u.quarantined[h] > 0 {
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
	if t.taken[d] || t.shares[d] != nil {
		return false
	}
	u := t.ledger.pool(d.Pool)
	p := t.ledger.inv.Pool(d.Pool)
	if p.Usable() && len(t.used[d.Pool]) == 0 {
		if at, ok := p.Plan().Position(d); ok {
			return u == nil || u.occupied.lacking[at] == 0
		}
	}
	if u != nil && (len(u.at(d.Name).all()) > 0 || u.blockedBy(d) != nil) {
		return false
	}
	return t.suffice(d)
}

// suffice reports whether what is left of the device's counters is enough for it.
func (t *Trial) suffice(d *inventory.Device) bool {
	u, p := t.ledger.pool(d.Pool), t.ledger.inv.Pool(d.Pool)
	for _, c := range d.Charge {
		i, known := p.CounterIndex(c.CounterSet, c.Counter)
		if !known {
			return false // The pool is invalid; nobody should have asked.
		}
		left := inventory.Add(p.Counters[i].Milli, -t.used[d.Pool][i])
		if u != nil {
			left = inventory.Add(left, -u.used[i])
		}
		if left < c.Milli {
			return false
		}
	}
	return true
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
	if seated := t.seats[host]; len(seated) > 0 {
		need = maps.Clone(need)
		for _, a := range seated {
			if need[a.name] > 0 {
				need[a.name] = inventory.Add(need[a.name], a.milli)
			}
		}
	}
	return t.ledger.shortage(host, need)
}

// Seat books a pod on a host; Unseat undoes it.
func (t *Trial) Seat(host string, requests map[string]int64) { t.seat(host, requests, 1) }

// Unseat undoes Seat.
func (t *Trial) Unseat(host string, requests map[string]int64) { t.seat(host, requests, -1) }

func (t *Trial) seat(host string, requests map[string]int64, sign int64) {
	list := t.seats[host]
	if list == nil {
		list = make([]amount, 0, len(requests)+1)
	}
	add := func(name string, milli int64) {
		i := slices.IndexFunc(list, func(a amount) bool { return a.name == name })
		if i < 0 {
			i = len(list)
			list = append(list, amount{name: name})
		}
		list[i].milli = inventory.Add(list[i].milli, sign*milli)
	}
	for name, milli := range requests {
		add(name, milli)
	}
	if _, given := requests[Pods]; !given {
		add(Pods, 1000)
	}
	t.seats[host] = list
}

// Free reports whether the device could be taken now as far as claims, reservations and quarantine go.
func (l *Ledger) Free(d *inventory.Device) bool { return l.Try().Obstacle(d) == nil }
