package ledger

import (
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Kept is what is to be had later on, when some have left: devices and room by name of the holder.
type Kept struct {
	Want
	// Leaving are the holders that will be gone by then, as InTheWay names them.
	Leaving []string
}

// manySubsets is up to how many things that are kept on one counter or host every combination of them is looked at.
const manySubsets = 8

// Keeping is a copy in which so much is taken besides that whatever is free there can be taken now and for good, and
// everything kept can still be had: each as soon as its own leavers have left, in whatever order that comes to pass. What
// is kept takes what its leavers do not hold already; of free devices, and of shared ones, it may take more than it needs.
// holder is as for InTheWay; owner names the booking.
func (l *Ledger) Keeping(owner string, kept []Kept, holder func(pod string) string) *Ledger {
	out := l.Clone()
	if len(kept) == 0 {
		return out
	}
	out.keepDevices(l, owner, kept)
	out.keepRoom(l, owner, kept, holder)
	return out
}

type counterAt struct {
	pool    inventory.PoolID
	counter int
}

func (l *Ledger) keepDevices(now *Ledger, owner string, kept []Kept) {
	demands := map[counterAt][]int64{}
	var shares []Share
	for _, k := range kept {
		shares = append(shares, k.Shares...)
	}
	wants := func(i int, d *inventory.Device) {
		for _, c := range d.Charge {
			index, known := l.inv.Pool(d.Pool).CounterIndex(c.CounterSet, c.Counter)
			if !known {
				continue
			}
			at := counterAt{d.Pool, index}
			if demands[at] == nil {
				demands[at] = make([]int64, len(kept))
			}
			demands[at][i] = inventory.Add(demands[at][i], c.Milli)
		}
	}
	for i, k := range kept {
		for _, d := range k.Devices {
			// A free device has to be taken by its name, too: two can hold half a host each, but not the same half.
			if now.Free(d) {
				l.Take(Holding{Owner: owner, Pool: d.Pool, Device: d.Name})
			}
			wants(i, d)
		}
	}
	l.keepShares(now, owner, kept, wants)
	l.close(now, owner, kept)
	charges := map[inventory.PoolID][]inventory.Charge{}
	for at, demand := range demands {
		var taken parts
		var already int64
		if u := now.pool(at.pool); u != nil {
			taken, already = u.amounts(at.counter, shares), -u.used[at.counter]
		}
		if u := l.pool(at.pool); u != nil {
			already = inventory.Add(already, u.used[at.counter])
		}
		if more := most(demand, taken, kept) - already; more > 0 {
			c := l.inv.Pool(at.pool).Counters[at.counter]
			charges[at.pool] = append(charges[at.pool], inventory.Charge{CounterSet: c.Set, Counter: c.Name, Milli: more})
		}
	}
	for pool, charge := range charges {
		slices.SortFunc(charge, byCounter)
		// Held under a name that no device has, the amounts count without a device to go by.
		l.Take(Holding{Owner: owner, Pool: pool, Device: "\x00" + owner, Charge: charge})
	}
}

// keepShares takes the shares of shared devices that are kept, beyond what those leave who leave for them.
func (l *Ledger) keepShares(now *Ledger, owner string, kept []Kept, wants func(i int, d *inventory.Device)) {
	demands := map[*inventory.Device][][]int64{} // by capacity and what is kept
	var order []*inventory.Device
	for i, k := range kept {
		for _, s := range k.together() {
			if demands[s.Device] == nil {
				order = append(order, s.Device)
				for range s.Device.Capacity {
					demands[s.Device] = append(demands[s.Device], make([]int64, len(kept)))
				}
			}
			for c, a := range s.Takes {
				demands[s.Device][c][i] = inventory.Add(demands[s.Device][c][i], a.Milli)
			}
		}
	}
	for _, d := range order {
		var held *row
		if u := now.pool(d.Pool); u != nil {
			held = u.at(d.Name)
		}
		h := Holding{Owner: owner, Pool: d.Pool, Device: d.Name, Share: owner}
		for c, capacity := range d.Capacity {
			if more := most(demands[d][c], held.amounts(capacity.Name), kept); more > 0 {
				h.Capacity = append(h.Capacity, inventory.Amount{Name: capacity.Name, Milli: more})
			}
		}
		// Where nobody has a share and none can be had now, ours would only open the device to others.
		if held.shared() && (len(held.all()) > 0 || now.Try().suffice(d)) {
			l.Take(h)
		}
		if len(held.alone()) < len(held.all()) {
			continue // Whoever has a share has taken the counters for all, and they stay taken.
		}
		for i := range kept {
			if slices.ContainsFunc(kept[i].Shares, func(s Share) bool { return s.Device == d }) {
				wants(i, d)
			}
		}
	}
}

// close keeps others from joining those who leave: a shared device gives its counters back when its last share is gone.
func (l *Ledger) close(now *Ledger, owner string, kept []Kept) {
	left := map[string]bool{}
	for _, k := range kept {
		for _, name := range k.Leaving {
			left[name] = true
		}
	}
	for _, u := range now.uses() {
		for at, held := range u.onDevice {
			holds := held.all()
			if len(holds) == 0 || !held.shared() || slices.ContainsFunc(holds, func(h *hold) bool { return !left[h.Owner] }) {
				continue
			}
			d := u.pool.Devices[at]
			if len(d.Charge) == 0 {
				continue
			}
			h := Holding{Owner: owner, Pool: u.id, Device: d.Name, Share: owner + " closes it"}
			now := l.pool(u.id).at(d.Name)
			for _, c := range d.Capacity {
				h.Capacity = append(h.Capacity, inventory.Amount{Name: c.Name, Milli: max(now.left(c), 0)})
			}
			l.Take(h)
		}
	}
}

func (l *Ledger) keepRoom(now *Ledger, owner string, kept []Kept, holder func(pod string) string) {
	demands := map[string]map[string][]int64{}
	for i, k := range kept {
		for host, requests := range k.Seats {
			if demands[host] == nil {
				demands[host] = map[string][]int64{}
			}
			for resource, milli := range requests {
				if demands[host][resource] == nil {
					demands[host][resource] = make([]int64, len(kept))
				}
				demands[host][resource][i] = inventory.Add(demands[host][resource][i], milli)
			}
		}
	}
	for host, resources := range demands {
		more := map[string]int64{Pods: 0}
		for resource, demand := range resources {
			more[resource] = most(demand, now.roomOf(host).amounts(resource, holder), kept)
		}
		l.Use(host, owner, more)
	}
}

// most is by how much what is kept can exceed what those leave behind who leave for it, whichever of it comes first.
func most(demand []int64, taken parts, kept []Kept) int64 {
	var of []int
	var sum int64
	for i, d := range demand {
		if d > 0 {
			of = append(of, i)
			sum = inventory.Add(sum, d)
		}
	}
	if len(of) > manySubsets {
		return sum
	}
	var worst int64
	for subset := 1; subset < 1<<len(of); subset++ {
		var more int64
		left := map[string]bool{}
		for bit, i := range of {
			if subset&(1<<bit) == 0 {
				continue
			}
			more = inventory.Add(more, demand[i])
			for _, name := range kept[i].Leaving {
				left[name] = true
			}
		}
		worst = max(worst, inventory.Add(more, -taken.freed(left)))
	}
	return worst
}
