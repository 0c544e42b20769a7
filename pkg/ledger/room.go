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

// hostUse is what pods use of one host.
type hostUse struct {
	owner *token
	// used is the sum over pods by resource, none of zero, in no order.
	used []amount
	// pods in no order. One that was booked twice counts twice.
	pods []seat
}

type amount struct {
	name  string
	milli int64
}

type seat struct {
	pod      string
	requests map[string]int64
}

// Use books a pod on a host. Requests are in thousandths by resource, and what is below zero counts as nothing; one pod is
// added to them unless they name "pods" themselves. The caller must not change them afterwards.
func (l *Ledger) Use(host, pod string, requests map[string]int64) {
	u := l.room(host)
	requests = withPod(requests)
	u.pods = append(u.pods, seat{pod, requests})
	for name, milli := range requests {
		if milli > 0 {
			u.add(name, milli)
		}
	}
}

// Leave undoes one Use of the same pod on the host with equal requests. It is false, and nothing changes, when there was
// none.
func (l *Ledger) Leave(host, pod string, requests map[string]int64) bool {
	requests = withPod(requests)
	i := slices.IndexFunc(l.roomOf(host).seats(), func(s seat) bool { return s.pod == pod && maps.Equal(s.requests, requests) })
	if i < 0 {
		return false
	}
	u := l.room(host)
	last := len(u.pods) - 1
	u.pods[i] = u.pods[last]
	u.pods[last] = seat{}
	if u.pods = u.pods[:last]; last == 0 {
		l.setRoom(host, nil)
		return true
	}
	for name, milli := range requests {
		if milli > 0 {
			u.subtract(name, milli)
		}
	}
	return true
}

func (u *hostUse) add(name string, milli int64) {
	for i := range u.used {
		if u.used[i].name == name {
			u.used[i].milli = inventory.Add(u.used[i].milli, milli)
			return
		}
	}
	u.used = append(u.used, amount{name, milli})
}

func (u *hostUse) subtract(name string, milli int64) {
	i := slices.IndexFunc(u.used, func(a amount) bool { return a.name == name })
	left := u.used[i].milli - milli
	if u.used[i].milli == math.MaxInt64 {
		// Beyond its limit a sum cannot be undone by subtracting.
		left = 0
		for _, s := range u.pods {
			left = inventory.Add(left, max(s.requests[name], 0))
		}
	}
	if u.used[i].milli = left; left == 0 {
		u.used = slices.Delete(u.used, i, i+1)
	}
}

// of is what is used of a resource; zero where nobody is.
func (u *hostUse) of(resource string) int64 {
	if u != nil {
		for i := range u.used {
			if u.used[i].name == resource {
				return u.used[i].milli
			}
		}
	}
	return 0
}

func (u *hostUse) seats() []seat {
	if u == nil {
		return nil
	}
	return u.pods
}

// roomOf is what is used of a host, or nil.
func (l *Ledger) roomOf(host string) *hostUse {
	if at, known := l.inv.HostPosition(host); known {
		return l.rooms[at]
	}
	return l.strange[host]
}

// room is roomOf for writing.
func (l *Ledger) room(host string) *hostUse {
	t := l.own()
	u := l.roomOf(host)
	switch {
	case u == nil:
		u = &hostUse{owner: t}
	case u.owner != t:
		u = &hostUse{owner: t, used: slices.Clone(u.used), pods: slices.Clone(u.pods)}
	default:
		return u
	}
	l.setRoom(host, u)
	return u
}

func (l *Ledger) setRoom(host string, u *hostUse) {
	at, known := l.inv.HostPosition(host)
	switch {
	case known:
		l.rooms[at] = u
	case u == nil:
		delete(l.strange, host)
	default:
		l.strange[host] = u
	}
}

func withPod(requests map[string]int64) map[string]int64 {
	if _, given := requests[Pods]; given {
		return requests
	}
	out := maps.Clone(requests)
	if out == nil {
		out = map[string]int64{}
	}
	out[Pods] = 1000
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
	allocatable, u := l.inv.Allocatable(host), l.roomOf(host)
	fits := true
	for name, needs := range requests {
		fits = fits && (needs <= 0 || inventory.Add(allocatable[name], -u.of(name)) >= needs)
	}
	if fits {
		return nil
	}
	for _, name := range slices.SortedFunc(maps.Keys(requests), byExplanation) {
		needs, has := requests[name], inventory.Add(allocatable[name], -u.of(name))
		if needs > 0 && has < needs {
			return &Shortage{Host: host, Resource: name, Needs: needs, Has: max(has, 0), Pods: u.users(name)}
		}
	}
	return nil
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
	var users []seat
	for _, s := range u.seats() {
		if s.requests[resource] > 0 {
			users = append(users, s)
		}
	}
	slices.SortFunc(users, func(a, b seat) int {
		return cmp.Or(cmp.Compare(b.requests[resource], a.requests[resource]), inventory.Natural(a.pod, b.pod))
	})
	var names []string
	for _, s := range users {
		names = append(names, s.pod)
	}
	return names
}

// Room is how many more pods with these requests fit on the host: zero on a host that nobody knows.
func (l *Ledger) Room(host string, requests map[string]int64) int {
	allocatable, u := l.inv.Allocatable(host), l.roomOf(host)
	room := int64(math.MaxInt32)
	for name, needs := range withPod(requests) {
		if needs > 0 {
			room = min(room, max(inventory.Add(allocatable[name], -u.of(name)), 0)/needs)
		}
	}
	return int(room)
}

// Fits reports whether one more pod with these requests fits on the host. It allocates nothing.
func (l *Ledger) Fits(host string, requests map[string]int64) bool {
	allocatable, u := l.inv.Allocatable(host), l.roomOf(host)
	for name, needs := range requests {
		if needs > 0 && inventory.Add(allocatable[name], -u.of(name)) < needs {
			return false
		}
	}
	if _, given := requests[Pods]; given {
		return true
	}
	return inventory.Add(allocatable[Pods], -u.of(Pods)) >= 1000
}

// Blockers are the pods that use something of the host, in natural order.
func (l *Ledger) Blockers(host string) []string {
	var names []string
	for _, s := range l.roomOf(host).seats() {
		names = append(names, s.pod)
	}
	return sorted(names)
}

// Overcommitted reports whether the pods on a host, with those that are promised a place there, use more than the host
// has of anything that requests name. Like the scheduler it looks only at what is asked for.
func (l *Ledger) Overcommitted(host string, requests map[string]int64) bool {
	u := l.roomOf(host)
	if _, known := l.inv.Host(host); !known || u == nil {
		return false
	}
	allocatable := l.inv.Allocatable(host)
	requests = withPod(requests)
	return slices.ContainsFunc(u.used, func(a amount) bool { return requests[a.name] > 0 && allocatable[a.name] < a.milli })
}
