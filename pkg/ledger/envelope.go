package ledger

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Envelope is a copy in which of everything as much is taken as in the fuller of two ledgers of one inventory: counter by
// counter, device by device, host by host. What can be taken there can be taken now and can be kept later on as well,
// when those who leave have made room for those who come. The difference is booked for owner.
func (l *Ledger) Envelope(later *Ledger, owner string) *Ledger {
	out := l.Clone()
	for id, u := range later.pools {
		out.coverPool(id, u, owner)
	}
	for host, u := range later.hosts {
		now := map[string]int64{}
		if have := l.hosts[host]; have != nil {
			now = have.used
		}
		more, any := map[string]int64{Pods: 0}, false
		for resource, used := range u.used {
			if used > now[resource] {
				more[resource], any = used-now[resource], true
			}
		}
		if any {
			out.Use(host, owner, more)
		}
	}
	return out
}

func (l *Ledger) coverPool(id inventory.PoolID, later *poolUse, owner string) {
	now := l.use(id)
	for host := range later.quarantined {
		l.Quarantine(id, host)
	}
	for key, h := range later.unbooked {
		if now.holds[key] == nil {
			l.Take(h.Holding)
		}
	}
	// Amounts are held under a name that no device has, so that they are counted without a device to go by.
	var charge []inventory.Charge
	for i, used := range later.used {
		if used > now.used[i] {
			c := now.pool.Counters[i]
			charge = append(charge, inventory.Charge{CounterSet: c.Set, Counter: c.Name, Milli: used - now.used[i]})
		}
	}
	if len(charge) > 0 {
		l.Take(Holding{Owner: owner, Pool: id, Device: fmt.Sprintf("\x00%s", owner), Charge: charge})
	}
	// A device without counters is taken by its name alone.
	for name, holds := range later.onDevice {
		if d := now.pool.Device(name); d != nil && len(d.Charge) == 0 && len(holds) > 0 && len(now.onDevice[name]) == 0 {
			l.Take(Holding{Owner: owner, Pool: id, Device: name})
		}
	}
}
