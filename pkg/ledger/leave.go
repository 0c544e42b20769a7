package ledger

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Without is a copy in which some holders hold nothing and some pods are gone: what is left when they have ended. holder
// is asked for the Owner of each holding and pod for the name of each pod. Quarantine stays.
func (l *Ledger) Without(holder, pod func(name string) bool) *Ledger {
	out := l.Clone()
	for _, u := range l.uses() {
		u.all(func(h *hold) {
			if holder(h.Owner) {
				for _, record := range h.records {
					out.Give(record)
				}
			}
		})
	}
	l.eachRoom(func(host string, u *hostUse) {
		for _, s := range u.pods {
			if pod(s.pod) {
				out.Leave(host, s.pod, s.requests)
			}
		}
	})
	return out
}

// eachRoom calls do for every host that pods use something of.
func (l *Ledger) eachRoom(do func(host string, u *hostUse)) {
	for at, u := range l.rooms {
		if u != nil {
			do(l.inv.Hosts()[at], u)
		}
	}
	for host, u := range l.strange {
		do(host, u)
	}
}

// Want is what somebody would like to hold: devices, and room on hosts.
type Want struct {
	// Devices that are wanted whole.
	Devices []*inventory.Device
	// Shares of shared devices, of which others may have shares, too.
	Shares []Share
	// Seats are the requests of all pods together by host, in thousandths by resource, including "pods".
	Seats map[string]map[string]int64
}

// Share is a share of a shared device, with what it takes of the device's capacities, in their order.
type Share struct {
	Device *inventory.Device
	Takes  []inventory.Amount
}

// lack is something of which too little is left, and the parts of it that others have.
type lack struct {
	lacks int64
	parts parts
}

// part is an amount that becomes free when all of its holders have gone. Only of a shared device there can be several: its
// counters are taken once for all who have a share.
type part struct {
	milli   int64
	holders []string
}

type parts []part

// freed is what becomes free when some have gone.
func (p parts) freed(going map[string]bool) int64 {
	var sum int64
	for _, x := range p {
		if !slices.ContainsFunc(x.holders, func(name string) bool { return !going[name] }) {
			sum = inventory.Add(sum, x.milli)
		}
	}
	return sum
}

// each makes a part of every name.
func each(has map[string]int64) parts {
	all := make(parts, 0, len(has))
	for name, milli := range has {
		all = append(all, part{milli, []string{name}})
	}
	return all
}

// InTheWay names who has to go before everything wanted can be had at once: of those who could go the first in order, and
// nobody who might as well stay. Holders are named by their Owner, pods by what holder returns for the pod's name. It is
// false when the wanted cannot be had even with nobody there. Quarantine and the state of hosts do not count.
//
// The last of them in order is the earliest possible: it goes as soon as anybody's leaving suffices. How many there are is
// not minimal in general, only that none of them can be left out.
func (l *Ledger) InTheWay(w Want, holder func(pod string) string, order func(a, b string) int) ([]string, bool) {
	needs := append(l.deviceNeeds(w), l.roomNeeds(w.Seats, holder)...)
	for _, n := range needs {
		all := int64(0)
		for _, p := range n.parts {
			all = inventory.Add(all, p.milli)
		}
		if all < n.lacks {
			return nil, false
		}
	}
	// Where fewest could help there is the least choice; whoever must go there helps elsewhere as well.
	slices.SortStableFunc(needs, func(a, b lack) int { return cmp.Compare(len(a.parts), len(b.parts)) })
	going := map[string]bool{}
	for _, n := range needs {
		n.cover(going, order)
	}
	all := slices.SortedFunc(maps.Keys(going), order)
	for _, name := range slices.Backward(all) {
		delete(going, name)
		if slices.ContainsFunc(needs, func(n lack) bool { return n.left(going) > 0 }) {
			going[name] = true
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return !going[name] }), true
}

// left is what is lacking still when some have gone.
func (n lack) left(going map[string]bool) int64 { return inventory.Add(n.lacks, -n.parts.freed(going)) }

// cover lets the first in order go until nothing is lacking. A part goes with the last of its holders.
func (n lack) cover(going map[string]bool, order func(a, b string) int) {
	last := func(p part) string { return slices.MaxFunc(p.holders, order) }
	slices.SortStableFunc(n.parts, func(a, b part) int { return order(last(a), last(b)) })
	for _, p := range n.parts {
		if n.left(going) <= 0 {
			return
		}
		for _, name := range p.holders {
			going[name] = true
		}
	}
}

// everybody is the lack that ends when all of some holders have gone.
func everybody(holds []*hold) lack {
	has := map[string]int64{}
	for _, h := range holds {
		has[h.Owner] = 1
	}
	return lack{lacks: int64(len(has)), parts: each(has)}
}

func (l *Ledger) deviceNeeds(w Want) []lack {
	var needs []lack
	counters := newDemand(l)
	for _, d := range w.Devices {
		if u := l.pool(d.Pool); u != nil {
			needs = append(needs, everybody(u.at(d.Name).all()), everybody(u.blockedBy(d)))
		}
		counters.add(d)
	}
	for _, s := range w.together() {
		u := l.pool(s.Device.Pool)
		var held *row
		if u != nil {
			held = u.at(s.Device.Name)
			needs = append(needs, everybody(held.alone()), everybody(u.blockedBy(s.Device)))
		}
		for i, c := range s.Device.Capacity {
			needs = append(needs, lack{lacks: inventory.Add(s.Takes[i].Milli, -held.left(c)), parts: held.amounts(c.Name)})
		}
		// Whoever has a share has taken the counters for all.
		if len(held.alone()) == len(held.all()) {
			counters.add(s.Device)
		}
	}
	needs = append(needs, counters.needs(w.Shares)...)
	return slices.DeleteFunc(needs, func(n lack) bool { return n.lacks <= 0 })
}

// together are the shares that are wanted, those of one device as one.
func (w Want) together() []Share {
	var all []Share
	for _, s := range w.Shares {
		i := slices.IndexFunc(all, func(o Share) bool { return o.Device == s.Device })
		if i < 0 {
			all = append(all, Share{Device: s.Device, Takes: slices.Clone(s.Takes)})
			continue
		}
		for j := range s.Takes {
			all[i].Takes[j].Milli = inventory.Add(all[i].Takes[j].Milli, s.Takes[j].Milli)
		}
	}
	return all
}

// alone are the holds that are not shares.
func (r *row) alone() []*hold {
	var out []*hold
	for _, h := range r.all() {
		if !h.shared {
			out = append(out, h)
		}
	}
	return out
}

// demand is what devices consume of the counters of their pools.
type demand struct {
	ledger *Ledger
	of     map[inventory.PoolID]map[int]int64
	order  []inventory.PoolID
}

func newDemand(l *Ledger) *demand {
	return &demand{ledger: l, of: map[inventory.PoolID]map[int]int64{}}
}

func (d *demand) add(dev *inventory.Device) {
	if d.of[dev.Pool] == nil {
		d.of[dev.Pool] = map[int]int64{}
		d.order = append(d.order, dev.Pool)
	}
	for _, c := range dev.Charge {
		if i, known := d.ledger.inv.Pool(dev.Pool).CounterIndex(c.CounterSet, c.Counter); known {
			d.of[dev.Pool][i] = inventory.Add(d.of[dev.Pool][i], c.Milli)
		}
	}
}

// needs are the counters of which too little is left for whoever wants the shares.
func (d *demand) needs(shares []Share) []lack {
	var needs []lack
	for _, id := range d.order {
		u := d.ledger.pool(id)
		for _, i := range slices.Sorted(maps.Keys(d.of[id])) {
			n := lack{lacks: inventory.Add(d.of[id][i], -d.ledger.inv.Pool(id).Counters[i].Milli)}
			if u != nil {
				n.lacks, n.parts = inventory.Add(n.lacks, u.used[i]), u.amounts(i, shares)
			}
			needs = append(needs, n)
		}
	}
	return needs
}

// amounts are what is taken of a counter, and for whom. A shared device of which a share is wanted gives nothing back.
func (u *poolUse) amounts(counter int, wanted []Share) parts {
	has, shared := map[string]int64{}, map[string]*part{}
	for _, h := range u.onCounter[counter].all() {
		milli := h.takes(int32(counter))
		if !h.shared {
			has[h.Owner] = inventory.Add(has[h.Owner], milli)
			continue
		}
		p := shared[h.Device]
		if p == nil {
			p = &part{}
			shared[h.Device] = p
		}
		p.milli, p.holders = max(p.milli, milli), append(p.holders, h.Owner)
	}
	all := each(has)
	for name, p := range shared {
		if !slices.ContainsFunc(wanted, func(s Share) bool { return s.Device.Pool == u.id && s.Device.Name == name }) {
			all = append(all, *p)
		}
	}
	return all
}

// amounts are what each holder takes of a capacity of the device.
func (r *row) amounts(capacity string) parts {
	has := map[string]int64{}
	for _, h := range r.all() {
		has[h.Owner] = inventory.Add(has[h.Owner], h.takesOf(capacity))
	}
	return each(has)
}

func (l *Ledger) roomNeeds(seats map[string]map[string]int64, holder func(pod string) string) []lack {
	var needs []lack
	for _, host := range slices.Sorted(maps.Keys(seats)) {
		allocatable, u := l.inv.Allocatable(host), l.roomOf(host)
		for _, resource := range slices.Sorted(maps.Keys(seats[host])) {
			wants := seats[host][resource]
			lacks := inventory.Add(inventory.Add(wants, -allocatable[resource]), u.of(resource))
			if wants > 0 && lacks > 0 {
				needs = append(needs, lack{lacks: lacks, parts: u.amounts(resource, holder)})
			}
		}
	}
	return needs
}

// amounts are what each holder uses of a resource, by the holders of its pods.
func (u *hostUse) amounts(resource string, holder func(pod string) string) parts {
	has := map[string]int64{}
	for _, s := range u.seats() {
		if milli := s.requests[resource]; milli > 0 {
			name := holder(s.pod)
			has[name] = inventory.Add(has[name], milli)
		}
	}
	return each(has)
}
