package inventory

import (
	"slices"
	"strconv"
)

// Amount is how much is asked for, or taken, of one capacity of a device.
type Amount struct {
	// Name is the capacity's name as the driver publishes it.
	Name string
	// Milli is in thousandths of its unit.
	Milli int64
}

// Quantity writes the amount exactly as people write it in a request, in whatever way is shortest: 30Gi, 100G, 40, 1500m.
// Below a million there is no suffix but m.
func (a Amount) Quantity() string {
	if a.Milli%1000 != 0 {
		return strconv.FormatInt(a.Milli, 10) + "m"
	}
	value := a.Milli / 1000
	shortest := strconv.FormatInt(value, 10)
	if value < 1_000_000 {
		return shortest
	}
	for _, family := range []struct {
		base     int64
		suffixes []string
	}{{1024, []string{"Ki", "Mi", "Gi", "Ti", "Pi"}}, {1000, []string{"k", "M", "G", "T", "P"}}} {
		unit := int64(1)
		for _, suffix := range family.suffixes {
			unit *= family.base
			text := strconv.FormatInt(value/unit, 10) + suffix
			if value%unit == 0 && len(text) < len(shortest) {
				shortest = text
			}
		}
	}
	return shortest
}

// Capacity is one capacity of a device. Of a shared device every share takes some of it; of another device it only says
// which requests the device can serve.
type Capacity struct {
	Name string
	// Milli is what there is, in thousandths of its unit.
	Milli int64
	// Policy of a shared device says what a share may take; nil for whatever is asked.
	Policy *CapacityPolicy
}

// CapacityPolicy is how a request becomes what a share takes. At most one of Range and Values is set.
type CapacityPolicy struct {
	// Default is taken by a request that does not ask for the capacity; nil for all of it.
	Default *int64
	Range   *CapacityRange
	// Values that can be taken, in ascending order.
	Values []int64
}

// CapacityRange is from Min to Max in steps; without steps Step is zero.
type CapacityRange struct{ Min, Max, Step int64 }

// Takes is what a share takes that asks for an amount, or for none (asked false). It is false when the policy allows no such
// share. The rules are those of kube-scheduler's allocator: up to the minimum, then up to the next step or value.
func (c Capacity) Takes(amount int64, asked bool) (int64, bool) {
	p := c.Policy
	switch {
	case asked && amount < 0:
		return 0, false
	case !asked && p != nil && p.Default != nil:
		return *p.Default, true
	case !asked:
		amount = c.Milli
	case p == nil:
		return amount, true
	case p.Range != nil:
		amount = p.Range.up(amount)
	case len(p.Values) > 0:
		at, _ := slices.BinarySearch(p.Values, amount)
		if at == len(p.Values) {
			return 0, false
		}
		return p.Values[at], true
	}
	return amount, p == nil || p.allows(amount)
}

// up rounds up to the next step from the minimum on. A number beyond all bounds stays there, and is more than anything has.
func (r *CapacityRange) up(amount int64) int64 {
	if amount < r.Min {
		return r.Min
	}
	if r.Step <= 0 {
		return amount
	}
	if over := (amount - r.Min) % r.Step; over > 0 {
		return Add(amount, r.Step-over)
	}
	return amount
}

// allows reports whether an amount may be taken.
func (p *CapacityPolicy) allows(amount int64) bool {
	switch {
	case p.Range != nil:
		return amount <= p.Range.Max && (p.Range.Step <= 0 || (amount-p.Range.Min)%p.Range.Step == 0)
	case len(p.Values) > 0:
		return slices.Contains(p.Values, amount)
	}
	return true
}

// Share is what a request takes of every capacity of the device, in their order. It is false when no share of the device
// can serve it, whatever is free: it asks for a capacity that the device does not have, for more than there is, or for
// what a policy forbids. A device that is not shared is taken as a whole, so its share only says that it suffices.
func (d *Device) Share(asked []Amount) ([]Amount, bool) {
	for _, a := range asked {
		if !slices.ContainsFunc(d.Capacity, func(c Capacity) bool { return c.Name == a.Name }) {
			return nil, false
		}
	}
	if !d.Shared && len(asked) == 0 {
		return nil, true
	}
	share := make([]Amount, 0, len(d.Capacity))
	for _, c := range d.Capacity {
		i := slices.IndexFunc(asked, func(a Amount) bool { return a.Name == c.Name })
		var amount int64
		if i >= 0 {
			amount = asked[i].Milli
		}
		takes, ok := c.Takes(amount, i >= 0)
		if !ok || takes > c.Milli {
			return nil, false
		}
		share = append(share, Amount{Name: c.Name, Milli: takes})
	}
	return share, true
}
