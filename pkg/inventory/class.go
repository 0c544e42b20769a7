package inventory

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/reason"
)

// ClassState is how a DeviceClass relates to managed hardware.
type ClassState int

// States of a class.
const (
	// ClassUnknown: there is no DeviceClass of that name.
	ClassUnknown ClassState = iota
	// ClassBroken: its selectors cannot be evaluated; Class.Problem says why.
	ClassBroken
	// ClassEmpty: it selects no device at all.
	ClassEmpty
	// ClassUnmanaged: it selects devices, none of them in an AcceleratorPool.
	ClassUnmanaged
	// ClassManaged: it selects devices of managed pools, usable or not.
	ClassManaged
)

// String is for logs and test failures.
func (s ClassState) String() string {
	return [...]string{"Unknown", "Broken", "Empty", "Unmanaged", "Managed"}[min(max(s, 0), ClassManaged)]
}

// Class is what a DeviceClass selects of the managed hardware.
type Class struct {
	Name  string
	State ClassState
	// Problem of a broken class.
	Problem string
	// Devices of usable pools, by pool and name in natural order. It is the only list that devices may be given out
	// from.
	Devices []*Device
	// Withheld are pools with a Problem whose published devices the class selects. For a class that selects nothing
	// they are the incomplete pools: its devices may be among those that are still to come.
	Withheld []*Pool
	// Members are the same devices by pool and by the number of their hosts, as positions, in the order of Devices.
	// Devices that Berth never reserves, and those that match no node, are left out.
	Members []Members

	spans   []Span
	byLabel bool
}

// Class looks a DeviceClass up by name; it never returns nil.
func (inv *Inventory) Class(name string) *Class {
	if c, ok := inv.classes[name]; ok {
		return c
	}
	return &Class{Name: name, State: ClassUnknown}
}

// Unseen is why nobody knows yet whose devices the class selects; "" when that is known.
func (c *Class) Unseen() string {
	switch c.State {
	case ClassUnknown:
		return "there is no DeviceClass " + c.Name
	case ClassBroken:
		return fmt.Sprintf("DeviceClass %s cannot be evaluated: %s", c.Name, c.Problem)
	case ClassEmpty:
		return fmt.Sprintf("DeviceClass %s selects no device that is published now", c.Name)
	}
	return ""
}

// Classes returns all classes that select managed devices, by name.
func (inv *Inventory) Classes() []*Class {
	var all []*Class
	for _, c := range inv.classes {
		if c.State == ClassManaged {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *Class) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func (inv *Inventory) class(m ClassMatch) *Class {
	c := &Class{Name: m.Name, Problem: m.Problem}
	withheld := map[*Pool]bool{}
	for _, name := range m.Devices {
		p := inv.pool[name.Pool]
		d := p.Device(name.Name)
		switch {
		case d == nil:
		case p.Usable():
			c.Devices = append(c.Devices, d)
		case !withheld[p]:
			withheld[p] = true
			c.Withheld = append(c.Withheld, p)
		}
	}
	slices.SortFunc(c.Devices, func(a, b *Device) int {
		return cmp.Or(ComparePools(a.Pool, b.Pool), Natural(a.Name, b.Name))
	})
	c.Devices = slices.Compact(c.Devices)
	c.count(inv)
	slices.SortFunc(c.Withheld, func(a, b *Pool) int { return ComparePools(a.ID, b.ID) })
	switch {
	case len(c.Devices) > 0 || len(c.Withheld) > 0:
		c.State = ClassManaged
	case m.Unmanaged:
		// Selectors written for another driver often fail on managed devices; that is no business of ours.
		c.State = ClassUnmanaged
	case m.Problem != "":
		c.State = ClassBroken
	default:
		c.State = ClassEmpty
		for _, p := range inv.pools {
			if p.Problem != nil && p.Problem.Code == reason.PoolIncomplete {
				c.Withheld = append(c.Withheld, p)
			}
		}
	}
	return c
}
