package ledger

import (
	"cmp"
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
// is kept takes only what its leavers do not hold already. holder is as for InTheWay; owner names the booking.
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
	for i, k := range kept {
		for _, d := range k.Devices {
			if u := l.pool(d.Pool); len(d.Charge) == 0 && (u == nil || len(u.at(d.Name).all()) == 0) {
				l.Take(Holding{Owner: owner, Pool: d.Pool, Device: d.Name})
				continue
			}
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
	}
	charges := map[inventory.PoolID][]inventory.Charge{}
	for at, demand := range demands {
		has := map[string]int64{}
		if u := now.pool(at.pool); u != nil {
			for _, h := range u.onCounter[at.counter].all() {
				has[h.Owner] = inventory.Add(has[h.Owner], h.takes(int32(at.counter)))
			}
		}
		if more := most(demand, has, kept); more > 0 {
			c := l.inv.Pool(at.pool).Counters[at.counter]
			charges[at.pool] = append(charges[at.pool], inventory.Charge{CounterSet: c.Set, Counter: c.Name, Milli: more})
		}
	}
	for pool, charge := range charges {
		slices.SortFunc(charge, func(a, b inventory.Charge) int {
			return cmp.Or(cmp.Compare(a.CounterSet, b.CounterSet), cmp.Compare(a.Counter, b.Counter))
		})
		// Held under a name that no device has, the amounts count without a device to go by.
		l.Take(Holding{Owner: owner, Pool: pool, Device: "\x00" + owner, Charge: charge})
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
			has := map[string]int64{}
			for _, s := range now.roomOf(host).seats() {
				if s.requests[resource] > 0 {
					has[holder(s.pod)] = inventory.Add(has[holder(s.pod)], s.requests[resource])
				}
			}
			more[resource] = most(demand, has, kept)
		}
		l.Use(host, owner, more)
	}
}

// most is by how much what is kept can exceed what those leave behind who leave for it, whichever of it comes first.
func most(demand []int64, has map[string]int64, kept []Kept) int64 {
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
				if !left[name] {
					left[name] = true
					more -= has[name]
				}
			}
		}
		worst = max(worst, more)
	}
	return worst
}
