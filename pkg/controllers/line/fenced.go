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

// Place is placement.Placer.Place.
func (f fenced) Place(g gang.Gang, w placement.World) placement.Decision {
	d := f.Placer.Place(g, w)
	for _, ps := range d.PodSets {
		for _, c := range ps.Claims {
			for _, instance := range c.Instances {
				for _, device := range instance.Devices {
					if why := f.unfenced(device.Pool); why != nil {
						return placement.Decision{Refusal: why, Proved: d.Proved}
					}
				}
			}
		}
	}
	return d
}
