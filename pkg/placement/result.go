package placement

import (
	"slices"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
)

func newClaim(p *plan, claim int) Claim {
	c := Claim{PodClaim: p.set.Claims[claim].PodClaim, PodsPerClaim: 1}
	for _, it := range p.items {
		if it.claim == claim {
			c.PodsPerClaim = it.span
		}
	}
	c.Instances = make([]Instance, p.set.Count/c.PodsPerClaim)
	return c
}

func device(request string, d *inventory.Device) Device {
	return Device{
		Request: request, Pool: d.Pool, Generation: d.Generation, Name: d.Name,
		Hosts: slices.Clone(d.Hosts), Charge: slices.Clone(d.Charge),
	}
}

// inRequestOrder sorts devices as the requests of the claim stand; devices of one request keep their order.
func inRequestOrder(devices []Device, requests []gang.Request) {
	position := map[string]int{}
	for i, r := range requests {
		position[r.Name] = i
	}
	slices.SortStableFunc(devices, func(a, b Device) int { return position[a.Request] - position[b.Request] })
}
