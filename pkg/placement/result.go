package placement

import (
	"slices"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
)

// decision reads the filled slots.
func (s *search) decision() []PodSet {
	var out []PodSet
	at := 0
	for _, p := range s.plans {
		ps := PodSet{Name: p.set.Name}
		from := at
		for c := range p.set.Claims {
			ps.Claims = append(ps.Claims, newClaim(p, c))
		}
		for ; at < len(s.slots) && s.slots[at].plan == p; at++ {
			sl := s.slots[at]
			if sl.leads {
				ps.Hosts = append(ps.Hosts, sl.chosen.Hosts...)
			}
			instance := sl.block
			if sl.item.span == 1 {
				instance = sl.block*p.size + sl.host
			}
			in := &ps.Claims[sl.item.claim].Instances[instance]
			in.Devices = append(in.Devices, device(sl.item.req, sl.chosen))
		}
		for _, sl := range s.slots[from:at] {
			ps.Domains = appendDomain(ps.Domains, sl.chosen)
		}
		ps.Across = across(s.slots[from:at])
		for c := range ps.Claims {
			for i := range ps.Claims[c].Instances {
				inRequestOrder(ps.Claims[c].Instances[i].Devices, p.set.Claims[c].Requests)
			}
		}
		out = append(out, ps)
	}
	return out
}

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

func device(request *gang.Request, d *inventory.Device) Device {
	out := Device{
		Request: request.Name, Pool: d.Pool, Generation: d.Generation, Name: d.Name,
		Hosts: slices.Clone(d.Hosts), Charge: slices.Clone(d.Charge), Share: d.Shared,
	}
	if d.Shared {
		out.Capacity, _ = d.Share(request.Capacity)
	}
	return out
}

// across reports whether devices with a bond stand in several domains, or outside any.
func across(slots []slot) bool {
	in := map[any]inventory.Domain{}
	for _, sl := range slots {
		domain := sl.chosen.Domain
		if sl.item.bond == apart {
			continue
		}
		for _, of := range []any{sl.item, domain.By} {
			if other, seen := in[of]; !domain.Known() || seen && other != domain {
				return true
			}
			in[of] = domain
		}
	}
	return false
}

// appendDomain adds the domain of a device to a list in order, if its pool names an interconnect.
func appendDomain(domains []inventory.Domain, d *inventory.Device) []inventory.Domain {
	if !d.Domain.Named() {
		return domains
	}
	at, found := slices.BinarySearchFunc(domains, d.Domain, inventory.CompareDomains)
	if found {
		return domains
	}
	return slices.Insert(domains, at, d.Domain)
}

// inRequestOrder sorts devices as the requests of the claim stand; devices of one request keep their order.
func inRequestOrder(devices []Device, requests []gang.Request) {
	position := map[string]int{}
	for i, r := range requests {
		position[r.Name] = i
	}
	slices.SortStableFunc(devices, func(a, b Device) int { return position[a.Request] - position[b.Request] })
}
