package inventory

import (
	"math"
	"sync"
)

// columns are the allocatable amounts of all hosts by resource: who asks many hosts for the same finds each at its
// position.
type columns struct {
	mutex sync.Mutex
	of    map[string]column
}

type column struct {
	amounts []int64
	least   int64
}

// Column is what the hosts have of a resource, by position in Hosts, in thousandths. It is made when it is first asked for.
// The caller must not change it.
func (inv *Inventory) Column(resource string) []int64 { return inv.column(resource).amounts }

// Least is the smallest amount of a resource that a host under some device has which is not blocked, in thousandths; without
// such a host it is zero.
func (inv *Inventory) Least(resource string) int64 { return inv.column(resource).least }

func (inv *Inventory) column(resource string) column {
	inv.columns.mutex.Lock()
	defer inv.columns.mutex.Unlock()
	if c, made := inv.columns.of[resource]; made {
		return c
	}
	c := column{amounts: make([]int64, len(inv.names)), least: math.MaxInt64}
	for i, name := range inv.names {
		c.amounts[i] = inv.hosts[name].Allocatable[resource]
	}
	for i := range inv.states {
		for _, at := range inv.states[i].Hosts {
			if at >= 0 && inv.hosts[inv.names[at]].Blocked == nil {
				c.least = min(c.least, c.amounts[at])
			}
		}
	}
	if c.least == math.MaxInt64 {
		c.least = 0
	}
	if inv.columns.of == nil {
		inv.columns.of = map[string]column{}
	}
	inv.columns.of[resource] = c
	return c
}
