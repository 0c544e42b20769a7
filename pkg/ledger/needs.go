package ledger

import "github.com/berth-dev/berth/pkg/inventory"

// Needs is what a pod asks of a host, made ready for asking many of them.
type Needs []needed

type needed struct {
	resource string
	milli    int64
	column   []int64
}

// Needs of a pod with these requests, in the memory of into. They are for ledgers of the same inventory.
func (l *Ledger) Needs(requests map[string]int64, into Needs) Needs {
	into = into[:0]
	add := func(resource string, milli int64) {
		if milli > 0 {
			into = append(into, needed{resource, milli, l.inv.Column(resource)})
		}
	}
	for resource, milli := range requests {
		add(resource, milli)
	}
	if _, given := requests[Pods]; !given {
		add(Pods, 1000)
	}
	return into
}

// FitsAt is Fits of the host at a position in the inventory's Hosts.
func (l *Ledger) FitsAt(host int32, needs Needs) bool {
	if host < 0 {
		return len(needs) == 0
	}
	u := l.rooms[host]
	for i := range needs {
		n := &needs[i]
		if inventory.Add(n.column[host], -u.of(n.resource)) < n.milli {
			return false
		}
	}
	return true
}
