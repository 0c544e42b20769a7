package ledger

import (
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// EachHolder calls each with the owner of every holding that keeps one of the devices at these positions of the pool at a
// position in the inventory's Pools from being taken, once for each holding; compare Holders.
func (l *Ledger) EachHolder(pool int, devices []int32, each func(owner string)) {
	u := l.at(pool)
	if u == nil {
		return
	}
	plan := u.occupied.plan
	// Many devices lack the same counters, and a holding stands on many of them: so what is lacking is found first, and then
	// each holding is looked at once.
	asked, lacking := make([]bool, plan.Devices()), make([]bool, len(u.used))
	for _, d := range devices {
		asked[d] = true
		for _, use := range plan.Uses(int(d)) {
			if inventory.Add(plan.Total(int(use.Counter)), -u.used[use.Counter]) < use.Milli {
				lacking[use.Counter] = true
			}
		}
	}
	u.all(func(h *hold) {
		switch {
		case h.device >= 0 && asked[h.device]:
		case slices.ContainsFunc(h.counters, func(c inventory.Use) bool { return lacking[c.Counter] }):
		case h.unbooked && slices.ContainsFunc(devices, func(d int32) bool { return slices.Contains(u.blockedBy(u.pool.Devices[d]), h) }):
		default:
			return
		}
		each(h.Owner)
	})
}
