package capacity

import (
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// Hosts counts the hosts that devices of some pools name.
type Hosts struct {
	Total int
	// Usable hosts are there, Ready and schedulable.
	Usable int
	// Held hosts stand under a device that somebody holds, usable or not.
	Held int
	// Quarantined hosts may still run a pod that nobody can see.
	Quarantined int
	// Free hosts are usable and neither held nor quarantined.
	Free int
	// Stranded hosts are free but in no free device of several hosts; in pools without such devices, in no free device.
	// Such pools are offered by themselves, whatever class selects them; compare Capacity.Stranded.
	Stranded int
}

// CountHosts counts the hosts of the pools that in accepts. A host of several pools counts once.
func CountHosts(inv *inventory.Inventory, l *ledger.Ledger, in func(inventory.PoolID) bool) Hosts {
	// offered says of each host that is named whether a free device stands on it.
	offered := map[string]bool{}
	for at, p := range inv.Pools() {
		if !in(p.ID) {
			continue
		}
		occ, off := l.Occupied(at), inv.State(at).Off
		multi := slices.ContainsFunc(p.Devices, func(d *inventory.Device) bool { return len(d.Hosts) > 1 })
		for i, d := range p.Devices {
			on := !off[i] && (len(d.Hosts) > 1 || !multi) && (occ.Short == nil || occ.Short[i] == 0 && occ.Shut[i] == 0)
			for _, name := range d.Hosts {
				offered[name] = offered[name] || on
			}
		}
	}
	held := map[string]bool{}
	for _, name := range l.HeldHosts() {
		held[name] = true
	}
	var c Hosts
	for name, on := range offered {
		c.Total++
		h, known := inv.Host(name)
		usable, quarantined := known && h.Blocked == nil, l.Quarantined(name)
		c.Usable += one(usable)
		c.Held += one(held[name])
		c.Quarantined += one(quarantined)
		free := usable && !held[name] && !quarantined
		c.Free += one(free)
		c.Stranded += one(free && !on)
	}
	return c
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// CountClass counts the devices that a class selects in the pools that in accepts, and those of them that are free: on
// sound hardware, and nobody stands in them. Unlike Capacity.Devices it counts devices that Berth never reserves as well.
func CountClass(inv *inventory.Inventory, l *ledger.Ledger, in func(inventory.PoolID) bool, class *inventory.Class) (devices, free int) {
	for _, d := range class.Devices {
		if !in(d.Pool) {
			continue
		}
		devices++
		pool, _ := inv.Position(d.Pool)
		at, known := inv.Pools()[pool].Plan().Position(d)
		if !known || inv.State(pool).Off[at] {
			continue
		}
		if occ := l.Occupied(pool); occ.Short == nil || occ.Short[at] == 0 && occ.Shut[at] == 0 {
			free++
		}
	}
	return devices, free
}
