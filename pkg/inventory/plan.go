package inventory

import (
	"cmp"
	"slices"
	"sync"
)

// Plan is one pool in numbers: devices, counters and hosts by position instead of by name, with the indexes that every
// question about the pool needs. It is made once per pool and never changes; all slices it returns are read-only.
//
// A device's position is its index in Pool.Devices, a counter's that in Pool.Counters.
type Plan struct {
	at    map[*Device]int32
	uses  table[Use]
	users table[User]
	hosts []string
	host  map[string]int32
	on    table[int32]
	under table[int32]
	total []int64

	once       sync.Once
	neighbours *Neighbours
}

// Use is the consumption of one counter by a device.
type Use struct {
	Counter int32
	// Rivals is how many of the counter's Users, from the first on, leave too little for this device.
	Rivals int32
	// Milli is in thousandths of the counter's unit.
	Milli int64
}

// User is a device that consumes a counter.
type User struct {
	Device int32
	// Milli is in thousandths of the counter's unit.
	Milli int64
}

// table holds a short list for every position, all in one piece of memory.
type table[T any] struct {
	from []int32
	all  []T
}

func (t *table[T]) row(i int) []T { return t.all[t.from[i]:t.from[i+1]] }

func (t *table[T]) add(row []T) {
	if t.from == nil {
		t.from = append(t.from, 0)
	}
	t.all = append(t.all, row...)
	t.from = append(t.from, int32(len(t.all)))
}

var noPlan = &Plan{}

// Plan returns the pool's plan; that of a pool that NewPool did not make is empty.
func (p *Pool) Plan() *Plan {
	if p == nil || p.plan == nil {
		return noPlan
	}
	return p.plan
}

// Devices is how many devices the plan has.
func (pl *Plan) Devices() int { return len(pl.at) }

// Position of a device in the pool, or false when it is not one of the pool's.
func (pl *Plan) Position(d *Device) (int, bool) {
	i, ok := pl.at[d]
	return int(i), ok
}

// Uses are the counters that the device consumes.
func (pl *Plan) Uses(device int) []Use { return pl.uses.row(device) }

// Users are the devices that consume the counter, the greatest consumption first.
func (pl *Plan) Users(counter int) []User { return pl.users.row(counter) }

// Total of the counter, in thousandths of its unit.
func (pl *Plan) Total(counter int) int64 { return pl.total[counter] }

// Short is how many of the counter's Users, from the first on, do not find what they consume when only left remains of it.
func (pl *Plan) Short(counter int, left int64) int {
	users := pl.Users(counter)
	n, _ := slices.BinarySearchFunc(users, left, func(u User, left int64) int {
		if u.Milli > left {
			return -1
		}
		return 1
	})
	return n
}

// Hosts are the names of all hosts that devices of the pool name.
func (pl *Plan) Hosts() []string { return pl.hosts }

// HostPosition is where a host stands in Hosts, or false when no device of the pool names it.
func (pl *Plan) HostPosition(name string) (int, bool) {
	at, ok := pl.host[name]
	return int(at), ok
}

// On are the devices that stand on the host with that position in Hosts.
func (pl *Plan) On(host int) []int32 { return pl.on.row(host) }

// Under are the positions in Hosts of the device's hosts, in rank order.
func (pl *Plan) Under(device int) []int32 { return pl.under.row(device) }

// newPlan ignores consumption of counters that the pool does not have; such a pool has a Problem.
func newPlan(p *Pool) *Plan {
	pl := &Plan{at: make(map[*Device]int32, len(p.Devices)), host: map[string]int32{}}
	users := make([][]User, len(p.Counters))
	uses := make([][]Use, len(p.Devices))
	var on [][]int32
	for i, d := range p.Devices {
		pl.at[d] = int32(i)
		for _, c := range d.Charge {
			if counter, known := p.CounterIndex(c.CounterSet, c.Counter); known {
				uses[i] = append(uses[i], Use{Counter: int32(counter), Milli: c.Milli})
				users[counter] = append(users[counter], User{Device: int32(i), Milli: c.Milli})
			}
		}
		var under []int32
		for _, name := range d.Hosts {
			h, seen := pl.host[name]
			if !seen {
				h = int32(len(pl.hosts))
				pl.host[name] = h
				pl.hosts, on = append(pl.hosts, name), append(on, nil)
			}
			under, on[h] = append(under, h), append(on[h], int32(i))
		}
		pl.under.add(under)
	}
	for _, devices := range on {
		pl.on.add(devices)
	}
	for i, list := range users {
		slices.SortFunc(list, func(a, b User) int {
			return cmp.Or(cmp.Compare(b.Milli, a.Milli), cmp.Compare(a.Device, b.Device))
		})
		pl.users.add(list)
		pl.total = append(pl.total, p.Counters[i].Milli)
	}
	for _, list := range uses {
		for i := range list {
			list[i].Rivals = int32(pl.Short(int(list[i].Counter), Add(pl.total[list[i].Counter], -list[i].Milli)))
		}
		pl.uses.add(list)
	}
	return pl
}
