package ledger

import (
	"cmp"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Overdraw is more taken than there is. Berth never causes one; others can where the fence only observes.
type Overdraw struct {
	Pool inventory.PoolID
	// CounterSet and Counter that are overdrawn; empty when it is a device without counters that several hold.
	CounterSet, Counter string
	// Device that several hold; empty for a counter. Of a device that several may share, Counter is then the capacity of which
	// they have more than there is.
	Device string
	// Milli is by how much the counter or capacity is overdrawn, in thousandths of its unit.
	Milli int64
	// Owners of the holdings involved, sorted.
	Owners []string
}

// Overdrawn lists every overdraw in a stable order.
func (l *Ledger) Overdrawn() []Overdraw {
	var out []Overdraw
	for _, u := range l.uses() {
		for i, used := range u.used {
			if c := u.pool.Counters[i]; used > c.Milli {
				out = append(out, Overdraw{Pool: u.id, CounterSet: c.Set, Counter: c.Name, Milli: used - c.Milli, Owners: owners(u.onCounter[i].all())})
			}
		}
		twice := func(r *row) {
			holds := r.all()
			if len(holds) > 0 && r.shared() {
				if d := u.pool.Device(holds[0].Device); d != nil {
					if name, milli := r.overshared(d); milli > 0 {
						out = append(out, Overdraw{Pool: u.id, Device: d.Name, Counter: name, Milli: milli, Owners: owners(holds)})
					}
				}
				return
			}
			if len(holds) > 1 {
				out = append(out, Overdraw{Pool: u.id, Device: holds[0].Device, Owners: owners(holds)})
			}
		}
		for _, r := range u.onDevice {
			twice(r)
		}
		for _, r := range u.vanished {
			twice(r)
		}
	}
	slices.SortFunc(out, func(a, b Overdraw) int {
		return cmp.Or(inventory.ComparePools(a.Pool, b.Pool), cmp.Compare(a.CounterSet, b.CounterSet),
			cmp.Compare(a.Counter, b.Counter), inventory.Natural(a.Device, b.Device))
	})
	return out
}

// Holdings lists everything that is held, by pool, device and owner.
func (l *Ledger) Holdings() []Holding {
	var out []Holding
	for _, u := range l.uses() {
		u.all(func(h *hold) { out = append(out, h.Holding) })
	}
	slices.SortFunc(out, func(a, b Holding) int {
		return cmp.Or(inventory.ComparePools(a.Pool, b.Pool), inventory.Natural(a.Device, b.Device),
			inventory.Natural(a.Owner, b.Owner), cmp.Compare(a.Reservation, b.Reservation))
	})
	return out
}

// HeldHosts returns the hosts that stand under a held device, in natural order. Where a device is still published, its
// own hosts count, else those on record.
func (l *Ledger) HeldHosts() []string {
	var hosts []string
	for _, h := range l.Holdings() {
		if d := l.inv.Device(h.Pool, h.Device); d != nil {
			hosts = append(hosts, d.Hosts...)
			continue
		}
		hosts = append(hosts, h.Hosts...)
	}
	slices.SortFunc(hosts, inventory.Natural)
	return slices.Compact(hosts)
}

// Left is what is left of a counter of a managed pool, in thousandths of its unit. It is negative when the counter is
// overdrawn and zero when there is no such counter.
func (l *Ledger) Left(pool inventory.PoolID, set, name string) int64 {
	p := l.inv.Pool(pool)
	i, ok := p.CounterIndex(set, name)
	if !ok {
		return 0
	}
	if u := l.pool(pool); u != nil {
		return inventory.Add(p.Counters[i].Milli, -u.used[i])
	}
	return p.Counters[i].Milli
}

func owners(holds []*hold) []string {
	var names []string
	for _, h := range holds {
		names = append(names, h.Owner)
	}
	return sorted(names)
}

func sorted(names []string) []string {
	slices.SortFunc(names, inventory.Natural)
	return slices.Compact(names)
}
