package ledger

import "github.com/berth-dev/berth/pkg/inventory"

// EachHolder calls each with the owner of every holding that keeps one of the devices at these positions of the pool at a
// position in the inventory's Pools from being taken, once for each holding; compare Holders.
func (l *Ledger) EachHolder(pool int, devices []int32, each func(owner string)) {
	u := l.at(pool)
	if u == nil {
		return
	}
	plan := u.occupied.plan
	seen := make(map[*hold]struct{}, min(u.held, 4*len(devices)))
	once := func(holds []*hold) {
		for _, h := range holds {
			if _, known := seen[h]; !known {
				seen[h] = struct{}{}
				each(h.Owner)
			}
		}
	}
	// Many devices lack the same counters.
	lacking := make([]bool, len(u.used))
	for _, d := range devices {
		once(u.onDevice[d].all())
		if u.unbooked != nil {
			once(u.blockedBy(u.pool.Devices[d]))
		}
		for _, use := range plan.Uses(int(d)) {
			if !lacking[use.Counter] && inventory.Add(plan.Total(int(use.Counter)), -u.used[use.Counter]) < use.Milli {
				lacking[use.Counter] = true
				once(u.onCounter[use.Counter].all())
			}
		}
	}
}
