package ledger

// Standers adds to into whoever stands in one of the devices at these positions of the pool at a position in the inventory's
// Pools; see Occupied.Standing. A holder has the same name in every pool.
func (l *Ledger) Standers(pool int, devices []int32, into map[string]struct{}) {
	u := l.at(pool)
	if u == nil {
		return
	}
	for identity, f := range u.occupied.footprint {
		for _, d := range devices {
			if f.set[d/64]&(1<<(d%64)) != 0 {
				into[identity] = struct{}{}
				break
			}
		}
	}
}
