package ledger

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Pods is the resource that every pod takes one of.
const Pods = "pods"

// hostUse is what pods use of one host. Sum over pods == used.
type hostUse struct {
	used map[string]int64
	pods map[string]map[string]int64
}

// Use books a pod on a host. Requests are in thousandths by resource; one pod is added to them unless they name "pods"
// themselves. Booking a pod of the same name again replaces the first booking.
func (l *Ledger) Use(host, pod string, requests map[string]int64) {
	u, ok := l.hosts[host]
	if !ok {
		u = &hostUse{used: map[string]int64{}, pods: map[string]map[string]int64{}}
		l.hosts[host] = u
	}
	for name, milli := range u.pods[pod] {
		u.used[name] -= milli
	}
	requests = withPod(requests)
	u.pods[pod] = requests
	for name, milli := range requests {
		u.used[name] = inventory.Add(u.used[name], milli)
	}
}

func withPod(requests map[string]int64) map[string]int64 {
	out := maps.Clone(requests)
	if out == nil {
		out = map[string]int64{}
	}
	if _, given := out[Pods]; !given {
		out[Pods] = 1000
	}
	return out
}

// Shortage is a resource that a host has too little of.
type Shortage struct {
	Host, Resource string
	// Needs and Has in thousandths of the resource's unit. Has is never negative.
	Needs, Has int64
	// Pods that use the resource there, the largest user first.
	Pods []string
}

// shortage finds the resource that does not suffice for requests, or nil. Like the scheduler it looks only at what is
// asked for. Of several the first by name counts, with "pods" last because it explains least.
func (l *Ledger) shortage(host string, requests map[string]int64) *Shortage {
	h, _ := l.inv.Host(host)
	u := l.hosts[host]
	var found *Shortage
	for _, name := range slices.SortedFunc(maps.Keys(requests), byExplanation) {
		needs := requests[name]
		if needs <= 0 {
			continue
		}
		has := h.Allocatable[name]
		if u != nil {
			has = inventory.Add(has, -u.used[name])
		}
		if has < needs {
			found = &Shortage{Host: host, Resource: name, Needs: needs, Has: max(has, 0), Pods: u.users(name)}
			break
		}
	}
	return found
}

func byExplanation(a, b string) int {
	rank := func(name string) int {
		if name == Pods {
			return 1
		}
		return 0
	}
	return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b))
}

func (u *hostUse) users(resource string) []string {
	if u == nil {
		return nil
	}
	var names []string
	for pod, requests := range u.pods {
		if requests[resource] > 0 {
			names = append(names, pod)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(u.pods[b][resource], u.pods[a][resource]), inventory.Natural(a, b))
	})
	return names
}

// Room is how many more pods with these requests fit on the host: zero on a host that nobody knows.
func (l *Ledger) Room(host string, requests map[string]int64) int {
	h, _ := l.inv.Host(host)
	u := l.hosts[host]
	room := int64(math.MaxInt32)
	for name, needs := range withPod(requests) {
		if needs <= 0 {
			continue
		}
		has := h.Allocatable[name]
		if u != nil {
			has = inventory.Add(has, -u.used[name])
		}
		room = min(room, max(has, 0)/needs)
	}
	return int(room)
}

// Fits reports whether one more pod with these requests fits on the host. It allocates nothing.
func (l *Ledger) Fits(host string, requests map[string]int64) bool {
	allocatable := l.inv.Allocatable(host)
	u := l.hosts[host]
	fits := func(name string, needs int64) bool {
		has := allocatable[name]
		if u != nil {
			has = inventory.Add(has, -u.used[name])
		}
		return needs <= 0 || has >= needs
	}
	for name, needs := range requests {
		if !fits(name, needs) {
			return false
		}
	}
	_, given := requests[Pods]
	return given || fits(Pods, 1000)
}

// Blockers are the pods that use something of the host, in natural order.
func (l *Ledger) Blockers(host string) []string {
	u, ok := l.hosts[host]
	if !ok {
		return nil
	}
	return slices.SortedFunc(maps.Keys(u.pods), inventory.Natural)
}
