package ledger

import (
	"hash/maphash"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Occupied is what is taken of one pool, by the position of its devices (see inventory.Plan). Its slices are kept up with
// every change, are nil while nothing is taken, and must not be changed.
type Occupied struct {
	// Standing is how many distinct holders stand in the device: hold it, or something that cannot be held beside it.
	// A reservation that holds several such devices counts once.
	Standing []int32
	// Short is zero when nothing that is taken keeps the device from being taken as well.
	Short []int32
	// Shut is how many of the device's hosts are quarantined.
	Shut []int32
	// Irregular is true when something is held that is not, or not only, a published device's consumption.
	Irregular bool
	// Fingerprint is equal for equal contents, in whatever order they were booked, within one process.
	Fingerprint uint64
}

// Occupied returns what is taken of the pool at a position in the inventory's Pools.
func (l *Ledger) Occupied(pool int) Occupied {
	u := l.at(pool)
	if u == nil {
		return Occupied{}
	}
	o := &u.occupied
	return Occupied{Standing: o.standing, Short: o.lacking, Shut: o.shut, Irregular: o.irregular > 0, Fingerprint: o.print}
}

func (l *Ledger) at(pool int) *poolUse {
	if pool < 0 || pool >= len(l.pools) {
		return nil
	}
	return l.pools[pool]
}

// Fingerprint is that of Occupied.
func (l *Ledger) Fingerprint(pool int) uint64 {
	if u := l.at(pool); u != nil {
		return u.occupied.print
	}
	return 0
}

// Used is what is taken of each counter of the pool at a position in the inventory's Pools, in thousandths; nil for
// nothing. The caller must not change it.
func (l *Ledger) Used(pool int) []int64 {
	if u := l.at(pool); u != nil {
		return u.used
	}
	return nil
}

// occupied is the same while it is kept.
type occupied struct {
	plan *inventory.Plan
	// standing[d] is the number of identities of which some hold has d in its footprint: the devices that it excludes.
	standing, lacking, shut []int32
	irregular               int
	print                   uint64
	stands                  map[string]*stand

	// mark[d] == stamp: d was met already. Scratch of footprint.
	mark  []uint32
	stamp uint32
}

// stand is one identity's holds of the pool. It is written to by its owner only.
type stand struct {
	owner *token
	holds int
	// first is the hold that was there first; count[d], once there was a second, how many have d in their footprint. A hold
	// that came to be known otherwise has the same footprint, so first may be its former self.
	first *hold
	count []int32
}

func newOccupied(p *inventory.Pool) occupied {
	pl := p.Plan()
	n := pl.Devices()
	o := occupied{
		plan: pl, standing: make([]int32, n), lacking: make([]int32, n), shut: make([]int32, n), stands: map[string]*stand{},
	}
	if p != nil {
		for i := range p.Counters {
			// A device that consumes more than there is makes its pool invalid, but the count must be right.
			o.drain(i, -1, 0)
		}
	}
	return o
}

func (o *occupied) clone() occupied {
	c := *o
	c.standing, c.lacking, c.shut = slices.Clone(o.standing), slices.Clone(o.lacking), slices.Clone(o.shut)
	c.stands = maps.Clone(o.stands)
	c.mark, c.stamp = nil, 0
	return c
}

// short is how many users of a counter find too little when only left remains.
func (o *occupied) short(counter int, left int64) int {
	if o.plan.Devices() == 0 {
		return 0
	}
	return o.plan.Short(counter, left)
}

// drain follows a counter whose used amount changes; from is -1 before anything was counted.
func (o *occupied) drain(counter int, from, to int64) {
	if o.plan.Devices() == 0 {
		return
	}
	total := o.plan.Total(counter)
	before := 0
	if from >= 0 {
		before = o.plan.Short(counter, inventory.Add(total, -from))
	}
	after := o.plan.Short(counter, inventory.Add(total, -to))
	step := int32(1)
	if after < before {
		before, after, step = after, before, -1
	}
	for _, u := range o.plan.Users(counter)[before:after] {
		o.lacking[u.Device] += step
	}
}

// enter follows a hold that was booked; only says that nobody else holds its device.
func (o *occupied) enter(t *token, h *hold, only bool) {
	o.count(h, only, 1)
	s := o.stands[h.of]
	switch {
	case s == nil:
		o.stands[h.of] = &stand{owner: t, holds: 1, first: h}
		o.footprint(h, func(d int32) { o.standing[d]++ })
		return
	case s.owner != t:
		s = s.clone(t)
		o.stands[h.of] = s
	}
	if s.count == nil {
		s.count = make([]int32, o.plan.Devices())
		o.footprint(s.first, func(d int32) { s.count[d]++ })
	}
	s.holds++
	o.footprint(h, func(d int32) {
		if s.count[d]++; s.count[d] == 1 {
			o.standing[d]++
		}
	})
}

// leave undoes enter.
func (o *occupied) leave(t *token, h *hold, only bool) {
	o.count(h, only, -1)
	s := o.stands[h.of]
	if s.holds == 1 {
		delete(o.stands, h.of)
		o.footprint(h, func(d int32) { o.standing[d]-- })
		return
	}
	if s.owner != t {
		s = s.clone(t)
		o.stands[h.of] = s
	}
	s.holds--
	o.footprint(h, func(d int32) {
		if s.count[d]--; s.count[d] == 0 {
			o.standing[d]--
		}
	})
}

func (s *stand) clone(t *token) *stand {
	return &stand{owner: t, holds: s.holds, first: s.first, count: slices.Clone(s.count)}
}

func (o *occupied) count(h *hold, only bool, step int32) {
	if step > 0 {
		o.print += h.print
	} else {
		o.print -= h.print
	}
	if !h.regular {
		o.irregular += int(step)
	}
	if h.device >= 0 && only {
		o.lacking[h.device] += step
	}
	if h.unbooked {
		o.blocked(h, func(device int32) { o.lacking[device] += step })
	}
}

// footprint calls each once for every device that cannot be held beside h.
func (o *occupied) footprint(h *hold, each func(int32)) {
	if o.plan.Devices() == 0 {
		return
	}
	if o.mark == nil {
		o.mark = make([]uint32, o.plan.Devices())
	}
	if o.stamp++; o.stamp == 0 {
		clear(o.mark)
		o.stamp = 1
	}
	once := func(d int32) {
		if o.mark[d] != o.stamp {
			o.mark[d] = o.stamp
			each(d)
		}
	}
	if h.device >= 0 {
		once(h.device)
	}
	for _, c := range h.counters {
		for _, u := range o.plan.Users(int(c.Counter))[:c.Rivals] {
			once(u.Device)
		}
	}
	if h.unbooked {
		o.blocked(h, once)
	}
}

// blocked calls each for the devices that a hold blocks whose consumption nobody knows; compare poolUse.blockedBy.
func (o *occupied) blocked(h *hold, each func(int32)) {
	seen := make([]bool, o.plan.Devices())
	for _, host := range h.Hosts {
		if at, known := o.plan.HostPosition(host); known {
			for _, d := range o.plan.On(at) {
				if !seen[d] {
					seen[d] = true
					each(d)
				}
			}
		}
	}
	for d := range seen {
		if len(h.Hosts) == 0 || len(o.plan.Under(d)) == 0 {
			if !seen[d] {
				each(int32(d))
			}
		}
	}
}

// quarantine follows a host whose quarantine begins or ends.
func (o *occupied) quarantine(host string, step int32) {
	at, known := o.plan.HostPosition(host)
	if !known {
		return
	}
	if step > 0 {
		o.print += maphash.String(seed, host)
	} else {
		o.print -= maphash.String(seed, host)
	}
	for _, d := range o.plan.On(at) {
		o.shut[d] += step
	}
}
