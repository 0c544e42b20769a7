package ledger

import "github.com/berth-dev/berth/pkg/inventory"

// Overcommitted reports whether the pods on a host, with those that are promised a place there, use more than the host
// has of anything.
func (l *Ledger) Overcommitted(host string) bool {
	u, used := l.hosts[host]
	h, known := l.inv.Host(host)
	if !used || !known {
		return false
	}
	for name, milli := range u.used {
		if inventory.Add(h.Allocatable[name], -milli) < 0 {
			return true
		}
	}
	return false
}
