package inventory

import "sync"

// columns are the allocatable amounts of all hosts by resource: who asks many hosts for the same finds each at its
// position.
type columns struct {
	mutex sync.Mutex
	of    map[string][]int64
}

// Column is what the hosts have of a resource, by position in Hosts, in thousandths. It is made when it is first asked for.
// The caller must not change it.
func (inv *Inventory) Column(resource string) []int64 {
	inv.columns.mutex.Lock()
	defer inv.columns.mutex.Unlock()
	if c, made := inv.columns.of[resource]; made {
		return c
	}
	c := make([]int64, len(inv.names))
	for i, name := range inv.names {
		c[i] = inv.hosts[name].Allocatable[resource]
	}
	if inv.columns.of == nil {
		inv.columns.of = map[string][]int64{}
	}
	inv.columns.of[resource] = c
	return c
}
