package ledger

import "github.com/berth-dev/berth/pkg/inventory"

// Standers adds to into whoever stands in one of the devices at these positions of the pool at a position in the inventory's
// Pools; see Occupied.Standing. A holder has the same name in every pool.
func (l *Ledger) Standers(pool int, devices []int32, into map[string]struct{}) {
	u := l.at(pool)
	if u == nil {
		return
	}
	for _, d := range devices {
		if u.occupied.standing[d] == 0 {
			continue
		}
		u.standers(d, func(h *hold) { into[h.of] = struct{}{} })
	}
}

// standers calls each for every hold that cannot be beside the device, some of them several times.
func (u *poolUse) standers(device int32, each func(*hold)) {
	for _, h := range u.onDevice[device].all() {
		each(h)
	}
	plan := u.occupied.plan
	for _, use := range plan.Uses(int(device)) {
		for _, h := range u.onCounter[use.Counter].all() {
			if inventory.Add(h.takes(use.Counter), use.Milli) > plan.Total(int(use.Counter)) {
				each(h)
			}
		}
	}
	for _, h := range u.blockedBy(u.pool.Devices[device]) {
		each(h)
	}
}
