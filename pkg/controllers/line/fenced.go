package line

import (
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// fenced keeps a decision back while a pool that it uses is not fenced: what others could take as well is not reserved.
type fenced struct {
	placement.Placer
	unfenced func(inventory.PoolID) *reason.Refusal
}

// Place is placement.Placer.Place. A gang that would go to a pool that is not fenced goes elsewhere if it can.
func (f fenced) Place(g gang.Gang, w placement.World) placement.Decision {
	d := f.Placer.Place(g, w)
	why := f.uses(d)
	if why == nil {
		return d
	}
	w.Ledger = w.Ledger.Clone()
	for _, pool := range w.Inventory.Pools() {
		if f.unfenced(pool.ID) == nil {
			continue
		}
		for _, device := range pool.Devices {
			for _, host := range device.Hosts {
				w.Ledger.Quarantine(pool.ID, host)
			}
		}
	}
	if elsewhere := f.Placer.Place(g, w); elsewhere.Fits() && f.uses(elsewhere) == nil {
		return elsewhere
	}
	return placement.Decision{Refusal: why, Proved: d.Proved}
}

// uses is why one of the pools of a decision must not be used.
func (f fenced) uses(d placement.Decision) *reason.Refusal {
	for _, ps := range d.PodSets {
		for _, c := range ps.Claims {
			for _, instance := range c.Instances {
				for _, device := range instance.Devices {
					if why := f.unfenced(device.Pool); why != nil {
						return why
					}
				}
			}
		}
	}
	return nil
}
