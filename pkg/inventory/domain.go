package inventory

import (
	"cmp"
	"slices"
	"strings"
)

// Domain is a set of devices that an interconnect ties together, such as a rack.
type Domain struct {
	// By is the node label or the device attribute that tells domains apart, as "label <key>" or "attribute <name>".
	// Empty when the device's AcceleratorPool names no interconnect.
	By string
	// Value of it. Empty for a device that has none, and so belongs to no domain.
	Value string
}

// Named reports whether the device's AcceleratorPool names an interconnect.
func (d Domain) Named() bool { return d.By != "" }

// Known reports whether the device belongs to a domain.
func (d Domain) Known() bool { return d.By != "" && d.Value != "" }

// Noun is what people call such a domain: the last part of the key, so "rack" for topology.example.com/rack.
func (d Domain) Noun() string {
	noun := d.By[strings.LastIndexAny(d.By, " /")+1:]
	if noun == "" {
		return "domain"
	}
	return noun
}

// String is the domain as people call it: "rack a", or "no rack" for a device that belongs to none.
func (d Domain) String() string {
	if !d.Known() {
		return "no " + d.Noun()
	}
	return d.Noun() + " " + d.Value
}

// CompareDomains orders domains by what tells them apart, then by value in natural order.
func CompareDomains(a, b Domain) int {
	return cmp.Or(cmp.Compare(a.By, b.By), Natural(a.Value, b.Value))
}

// DomainMembers are the devices of one domain. They may lie in many pools, as those of node-local drivers do.
type DomainMembers struct {
	Domain Domain
	Pools  []DomainPool
}

// DomainPool is the part of a domain that lies in one pool.
type DomainPool struct {
	// Pool is the position in Inventory.Pools.
	Pool int
	// Devices are positions in the pool, in ascending order.
	Devices []int32
}

// Domains of all devices that can be reserved, in order. The caller must not change the result.
func (inv *Inventory) Domains() []DomainMembers { return inv.domains }

// noDomain is the domain of a device that belongs to none.
const noDomain = -1

// scattered is the common domain of devices that have none in common.
const scattered = -2

// DomainOf is the position in Domains of the device's domain, or negative.
func (s *State) DomainOf(device int32) int32 {
	if s.domains == nil {
		return noDomain
	}
	return s.domains[device]
}

// Common is the position in Domains of the domain that all devices of the pool belong to. It is negative when they belong
// to none; false when they differ.
func (s *State) Common() (int32, bool) {
	return max(s.common, noDomain), s.common != scattered
}

// joinDomains numbers the domains and lists their members.
func (inv *Inventory) joinDomains() {
	at := map[Domain]int32{}
	for _, p := range inv.pools {
		for _, d := range p.Devices {
			if p.Usable() && d.Domain.Known() && d.Unusable == nil && len(d.Hosts) > 0 {
				if _, seen := at[d.Domain]; !seen {
					at[d.Domain] = 0
					inv.domains = append(inv.domains, DomainMembers{Domain: d.Domain})
				}
			}
		}
	}
	slices.SortFunc(inv.domains, func(a, b DomainMembers) int { return CompareDomains(a.Domain, b.Domain) })
	for i := range inv.domains {
		at[inv.domains[i].Domain] = int32(i)
	}
	for i, p := range inv.pools {
		inv.states[i].common = noDomain
		if len(at) > 0 {
			inv.enterDomains(i, p, at)
		}
	}
}

func (inv *Inventory) enterDomains(pool int, p *Pool, at map[Domain]int32) {
	s := &inv.states[pool]
	for i, d := range p.Devices {
		domain, in := at[d.Domain]
		if !in || !p.Usable() || d.Unusable != nil || len(d.Hosts) == 0 {
			domain = noDomain
		}
		if i == 0 {
			s.common = domain
		} else if s.common != domain {
			s.common = scattered
		}
		if domain == noDomain {
			continue
		}
		if s.domains == nil {
			s.domains = slices.Repeat([]int32{noDomain}, len(p.Devices))
		}
		s.domains[i] = domain
		pools := &inv.domains[domain].Pools
		if n := len(*pools); n == 0 || (*pools)[n-1].Pool != pool {
			*pools = append(*pools, DomainPool{Pool: pool})
		}
		last := &(*pools)[len(*pools)-1]
		last.Devices = append(last.Devices, int32(i))
	}
}
