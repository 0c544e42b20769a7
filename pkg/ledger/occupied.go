package ledger

import (
	"hash/maphash"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Occupied is what is taken of one pool, by the position of its devices (see inventory.Plan). Its slices are kept up with
// every Take, are nil while nothing was taken, and must not be changed.
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
	return u.occupied.Occupied()
}

func (l *Ledger) at(pool int) *poolUse {
	if pool < 0 || pool >= len(l.managed) {
		return nil
	}
	return l.managed[pool]
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

// occupied is the same while it is kept. Invariant: standing[d] is the number of identities whose footprint has d.
type occupied struct {
	plan      *inventory.Plan
	standing  []int32
	short     []int32
	shut      []int32
	irregular bool
	print     uint64
	footprint map[string]*footprint
	hosts     map[string]int
}

// footprint is the set of devices that one identity stands in.
type footprint struct{ set []uint64 }

func (f *footprint) add(device int32) (isNew bool) {
	word, bit := device/64, uint64(1)<<(device%64)
	isNew = f.set[word]&bit == 0
	f.set[word] |= bit
	return isNew
}

func newOccupied(p *inventory.Pool) occupied {
	pl := p.Plan()
	n := pl.Devices()
	o := occupied{plan: pl, standing: make([]int32, n), short: make([]int32, n), shut: make([]int32, n),
		footprint: map[string]*footprint{}, hosts: make(map[string]int, len(pl.Hosts()))}
	for h, name := range pl.Hosts() {
		o.hosts[name] = h
	}
	for i := range p.Counters {
		// A device that consumes more than there is makes its pool invalid, but the count must be right.
		o.drain(i, -1, 0)
	}
	return o
}

// Occupied is the view for readers.
func (o *occupied) Occupied() Occupied {
	return Occupied{Standing: o.standing, Short: o.short, Shut: o.shut, Irregular: o.irregular, Fingerprint: o.print}
}

// drain follows a counter whose used amount changes; from is -1 before anything was counted.
func (o *occupied) drain(counter int, from, to int64) {
	if o.plan == nil || o.plan.Devices() == 0 {
		return
	}
	total := o.plan.Total(counter)
	before := 0
	if from >= 0 {
		before = o.plan.Short(counter, inventory.Add(total, -from))
	}
	after := o.plan.Short(counter, inventory.Add(total, -to))
	users := o.plan.Users(counter)
	for _, u := range users[min(before, after):max(before, after)] {
		if after > before {
			o.short[u.Device]++
		} else {
			o.short[u.Device]--
		}
	}
}

// enter follows a holding that was booked; first says that nobody else holds the device by its name.
func (o *occupied) enter(key holdKey, h *hold, first bool) {
	if o.plan == nil {
		return
	}
	o.print += h.print(key)
	if device, ok := o.device(h); ok && first {
		o.short[device]++
	}
	if h.unbooked {
		o.blocked(h, func(device int32) { o.short[device]++ })
	}
	o.stand(key.identity, h)
}

// stand adds a holding to the footprint of its identity.
func (o *occupied) stand(identity string, h *hold) {
	f := o.footprint[identity]
	if f == nil {
		f = &footprint{set: make([]uint64, (o.plan.Devices()+63)/64)}
		o.footprint[identity] = f
	}
	stand := func(device int32) {
		if f.add(device) {
			o.standing[device]++
		}
	}
	if device, ok := o.device(h); ok {
		stand(device)
	}
	for i, milli := range h.counters {
		for _, u := range o.plan.Users(i)[:o.plan.Short(i, inventory.Add(o.plan.Total(i), -milli))] {
			stand(u.Device)
		}
	}
	if h.unbooked {
		o.blocked(h, stand)
	}
	o.irregular = o.irregular || !o.regular(h)
}

// retrace makes the footprint of an identity anew.
func (o *occupied) retrace(identity string, holds map[holdKey]*hold) {
	if o.plan == nil || o.footprint[identity] == nil {
		return
	}
	for d := range o.standing {
		if o.footprint[identity].set[d/64]&(1<<(d%64)) != 0 {
			o.standing[d]--
		}
	}
	delete(o.footprint, identity)
	for key, h := range holds {
		if key.identity == identity {
			o.stand(identity, h)
		}
	}
}

// leave undoes enter but for the footprint: a holding is only taken out to be entered again with a greater charge; where
// the new one may take less, retrace follows.
func (o *occupied) leave(key holdKey, h *hold, last bool) {
	if o.plan == nil {
		return
	}
	o.print -= h.print(key)
	if device, ok := o.device(h); ok && last {
		o.short[device]--
	}
	if h.unbooked {
		o.blocked(h, func(device int32) { o.short[device]-- })
	}
}

func (o *occupied) device(h *hold) (int32, bool) {
	if h.published == nil {
		return 0, false
	}
	at, ok := o.plan.Position(h.published)
	return int32(at), ok
}

// regular reports whether the holding takes exactly what a published device consumes.
func (o *occupied) regular(h *hold) bool {
	at, ok := o.device(h)
	if !ok {
		return false
	}
	uses := o.plan.Uses(int(at))
	for _, u := range uses {
		if h.counters[int(u.Counter)] != u.Milli {
			return false
		}
	}
	return len(uses) == len(h.counters)
}

// blocked calls each for the devices that a holding blocks whose consumption nobody knows; compare poolUse.blockedBy.
func (o *occupied) blocked(h *hold, each func(int32)) {
	seen := make([]bool, o.plan.Devices())
	for _, host := range h.Hosts {
		if at, known := o.hosts[host]; known {
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
			each(int32(d))
		}
	}
}

func (o *occupied) quarantine(host string) {
	if o.plan == nil {
		return
	}
	at, known := o.hosts[host]
	if !known {
		return
	}
	o.print += maphash.String(seed, host)
	for _, d := range o.plan.On(at) {
		o.shut[d]++
	}
}

var seed = maphash.MakeSeed()

type amountKey struct {
	of      uint64
	counter int
	milli   int64
}

// print is a fingerprint of what is taken and for whom.
func (h *hold) print(key holdKey) uint64 {
	of := maphash.Comparable(seed, key)
	sum := of
	for i, milli := range h.counters {
		sum += maphash.Comparable(seed, amountKey{of, i, milli})
	}
	if h.unbooked {
		for _, host := range h.Hosts {
			sum += maphash.Comparable(seed, host) ^ of
		}
	}
	return sum
}
