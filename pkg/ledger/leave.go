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
	Devices []*inventory.Device
	// Seats are the requests of all pods together by host, in thousandths by resource, including "pods".
	Seats map[string]map[string]int64
}

// lack is something of which too little is left, and who has how much of it.
type lack struct {
	lacks int64
	has   map[string]int64
}

// InTheWay names who has to go before everything wanted can be had at once: of those who could go the first in order, and
// nobody who might as well stay. Holders are named by their Owner, pods by what holder returns for the pod's name. It is
// false when the wanted cannot be had even with nobody there. Quarantine and the state of hosts do not count.
//
// The last of them in order is the earliest possible: it goes as soon as anybody's leaving suffices. How many there are is
// not minimal in general, only that none of them can be left out.
func (l *Ledger) InTheWay(w Want, holder func(pod string) string, order func(a, b string) int) ([]string, bool) {
	needs := append(l.deviceNeeds(w.Devices), l.roomNeeds(w.Seats, holder)...)
	for _, n := range needs {
		all := int64(0)
		for _, amount := range n.has {
			all = inventory.Add(all, amount)
		}
		if all < n.lacks {
			return nil, false
		}
	}
	// Where fewest could help there is the least choice; whoever must go there helps elsewhere as well.
	slices.SortStableFunc(needs, func(a, b lack) int { return cmp.Compare(len(a.has), len(b.has)) })
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
func (n lack) left(going map[string]bool) int64 {
	lacks := n.lacks
	for name := range going {
		lacks -= n.has[name]
	}
	return lacks
}

// cover lets the first in order go until nothing is lacking.
func (n lack) cover(going map[string]bool, order func(a, b string) int) {
	lacks := n.left(going)
	if lacks <= 0 {
		return
	}
	for _, name := range slices.SortedFunc(maps.Keys(n.has), order) {
		switch {
		case lacks <= 0:
			return
		case !going[name]:
			going[name] = true
			lacks -= n.has[name]
		}
	}
}

// everybody is the lack that ends when all of some holders have gone.
func everybody(holds []*hold) lack {
	n := lack{has: map[string]int64{}}
	for _, h := range holds {
		n.has[h.Owner]++
		n.lacks++
	}
	return n
}

func (l *Ledger) deviceNeeds(devices []*inventory.Device) []lack {
	var needs []lack
	wanted := map[inventory.PoolID]map[int]int64{}
	var order []inventory.PoolID
	for _, d := range devices {
		if u := l.pool(d.Pool); u != nil {
			if holds := u.at(d.Name).all(); len(holds) > 0 {
				needs = append(needs, everybody(holds))
			}
			if holds := u.blockedBy(d); len(holds) > 0 {
				needs = append(needs, everybody(holds))
			}
		}
		if wanted[d.Pool] == nil {
			wanted[d.Pool] = map[int]int64{}
			order = append(order, d.Pool)
		}
		for _, c := range d.Charge {
			if i, known := l.inv.Pool(d.Pool).CounterIndex(c.CounterSet, c.Counter); known {
				wanted[d.Pool][i] = inventory.Add(wanted[d.Pool][i], c.Milli)
			}
		}
	}
	for _, id := range order {
		u := l.pool(id)
		for _, i := range slices.Sorted(maps.Keys(wanted[id])) {
			n := lack{lacks: inventory.Add(wanted[id][i], -l.inv.Pool(id).Counters[i].Milli)}
			if u != nil {
				n.lacks = inventory.Add(n.lacks, u.used[i])
			}
			if n.lacks <= 0 {
				continue
			}
			if u != nil {
				n.has = u.amounts(i)
			}
			needs = append(needs, n)
		}
	}
	return needs
}

// amounts are what each holder takes of a counter.
func (u *poolUse) amounts(counter int) map[string]int64 {
	has := map[string]int64{}
	for _, h := range u.onCounter[counter].all() {
		has[h.Owner] = inventory.Add(has[h.Owner], h.takes(int32(counter)))
	}
	return has
}

func (l *Ledger) roomNeeds(seats map[string]map[string]int64, holder func(pod string) string) []lack {
	var needs []lack
	for _, host := range slices.Sorted(maps.Keys(seats)) {
		allocatable, u := l.inv.Allocatable(host), l.roomOf(host)
		for _, resource := range slices.Sorted(maps.Keys(seats[host])) {
			wants := seats[host][resource]
			lacks := inventory.Add(inventory.Add(wants, -allocatable[resource]), u.of(resource))
			if wants > 0 && lacks > 0 {
				needs = append(needs, lack{lacks: lacks, has: u.amounts(resource, holder)})
			}
		}
	}
	return needs
}

// amounts are what each holder uses of a resource, by the holders of its pods.
func (u *hostUse) amounts(resource string, holder func(pod string) string) map[string]int64 {
	has := map[string]int64{}
	for _, s := range u.seats() {
		if milli := s.requests[resource]; milli > 0 {
			name := holder(s.pod)
			has[name] = inventory.Add(has[name], milli)
		}
	}
	return has
}
