package ledger

import (
	"cmp"
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
				for _, r := range h.records {
					out.Give(r)
				}
			}
		})
	}
	leave := func(host string, u *hostUse) {
		for _, s := range u.seats() {
			if pod(s.pod) {
				out.Leave(host, s.pod, s.requests)
			}
		}
	}
	for at, u := range l.rooms {
		leave(l.inv.Hosts()[at], u)
	}
	for host, u := range l.strange {
		leave(host, u)
	}
	return out
}

// Want is what somebody would like to hold: devices, and room on hosts.
type Want struct {
	Devices []*inventory.Device
	// Seats are the requests of all pods together by host, in thousandths by resource, including "pods".
	Seats map[string]map[string]int64
}

// need is something of which too little is left, and who has how much of it.
type need struct {
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
	slices.SortStableFunc(needs, func(a, b need) int { return cmp.Compare(len(a.has), len(b.has)) })
	going := map[string]bool{}
	for _, n := range needs {
		n.cover(going, order)
	}
	all := make([]string, 0, len(going))
	for name := range going {
		all = append(all, name)
	}
	slices.SortFunc(all, order)
	for _, name := range slices.Backward(all) {
		delete(going, name)
		if slices.ContainsFunc(needs, func(n need) bool { return n.left(going) > 0 }) {
			going[name] = true
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return !going[name] }), true
}

// left is what is lacking still when some have gone.
func (n need) left(going map[string]bool) int64 {
	lacks := n.lacks
	for name := range going {
		lacks -= n.has[name]
	}
	return lacks
}

// cover lets the first in order go until nothing is lacking.
func (n need) cover(going map[string]bool, order func(a, b string) int) {
	lacks := n.left(going)
	if lacks <= 0 {
		return
	}
	names := make([]string, 0, len(n.has))
	for name := range n.has {
		if !going[name] {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, order)
	for _, name := range names {
		if lacks <= 0 {
			return
		}
		going[name] = true
		lacks -= n.has[name]
	}
}

// everybody is the need for all of some holders to go.
func everybody(holds []*hold) need {
	n := need{has: map[string]int64{}}
	for _, h := range holds {
		n.has[h.Owner]++
		n.lacks++
	}
	return n
}

func (l *Ledger) deviceNeeds(devices []*inventory.Device) []need {
	var needs []need
	wanted := map[*poolUse]map[int]int64{}
	var order []*poolUse
	for _, d := range devices {
		u := l.pool(d.Pool)
		if u == nil {
			continue
		}
		if holds := u.at(d.Name).all(); len(holds) > 0 {
			needs = append(needs, everybody(holds))
		}
		if holds := u.blockedBy(d); len(holds) > 0 {
			needs = append(needs, everybody(holds))
		}
		if wanted[u] == nil {
			wanted[u] = map[int]int64{}
			order = append(order, u)
		}
		for _, c := range d.Charge {
			if i, known := u.pool.CounterIndex(c.CounterSet, c.Counter); known {
				wanted[u][i] = inventory.Add(wanted[u][i], c.Milli)
			}
		}
	}
	for _, u := range order {
		for _, i := range sortedKeys(wanted[u]) {
			lacks := inventory.Add(wanted[u][i], u.used[i]-u.pool.Counters[i].Milli)
			if lacks <= 0 {
				continue
			}
			n := need{lacks: lacks, has: map[string]int64{}}
			for _, h := range u.onCounter[i].all() {
				n.has[h.Owner] = inventory.Add(n.has[h.Owner], h.takes(int32(i)))
			}
			needs = append(needs, n)
		}
	}
	return needs
}

func (l *Ledger) roomNeeds(seats map[string]map[string]int64, holder func(pod string) string) []need {
	var needs []need
	for _, host := range sortedKeys(seats) {
		allocatable, u := l.inv.Allocatable(host), l.roomOf(host)
		for _, resource := range sortedKeys(seats[host]) {
			wants := seats[host][resource]
			lacks := inventory.Add(inventory.Add(wants, -allocatable[resource]), u.of(resource))
			if wants <= 0 || lacks <= 0 {
				continue
			}
			n := need{lacks: lacks, has: map[string]int64{}}
			for _, s := range u.seats() {
				if s.requests[resource] > 0 {
					n.has[holder(s.pod)] = inventory.Add(n.has[holder(s.pod)], s.requests[resource])
				}
			}
			needs = append(needs, n)
		}
	}
	return needs
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
