package ledger

import (
	"maps"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Onto is the ledger with the same things taken of another inventory. Pools and hosts that did not change are shared, so
// it costs as much as the pools that changed have holders, and a look at every pool and host.
func (l *Ledger) Onto(inv *inventory.Inventory) *Ledger {
	out := New(inv)
	l.token.Store(&token{}) // out shares with l.
	for _, u := range l.uses() {
		at, known := inv.Position(u.id)
		switch {
		case !known && u.pool == nil:
			out.astray[u.id] = u
		case known && inv.Pools()[at] == u.pool:
			out.pools[at] = u
			out.prints.change(at, 0, u.occupied.print)
		default:
			out.again(u)
		}
	}
	for at, u := range l.rooms {
		if u != nil {
			out.moveRoom(at, l.inv.Hosts()[at], u)
		}
	}
	for host, u := range l.strange {
		out.setRoom(host, u)
	}
	out.quarantined = maps.Clone(l.quarantined)
	return out
}

// again books what another pool of the same name had.
func (l *Ledger) again(u *poolUse) {
	u.all(func(h *hold) {
		for _, r := range h.records {
			l.Take(r)
		}
	})
	for host, times := range u.quarantined {
		for range times {
			l.Quarantine(u.id, host)
		}
	}
}

// moveRoom puts the room of a host where it stands now, which is mostly where it stood.
func (l *Ledger) moveRoom(at int, host string, u *hostUse) {
	if names := l.inv.Hosts(); at < len(names) && names[at] == host {
		l.rooms[at] = u
		return
	}
	l.setRoom(host, u)
}
