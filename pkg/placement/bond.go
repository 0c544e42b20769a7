package placement

import (
	"cmp"
	"slices"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// bond is how much it matters that the devices of an item stand in one interconnect domain.
type bond int

const (
	// apart: it does not. One device is always together with itself, and some pools name no interconnect.
	apart bond = iota
	// preferred: it should be one where that is possible.
	preferred
	// required: it must be one.
	required
)

// bind fixes the bond of every item. The devices of a pod set that are of one interconnect belong together, whichever request
// they serve.
func (p *plan) bind() *reason.Refusal {
	several, tied := "", 0
	for _, it := range p.items {
		if p.needed(it) > 1 && several == "" {
			several = it.class.Name
		}
		if it.class.Tied(it.span) {
			tied += p.needed(it)
		}
	}
	if p.set.Interconnect == gang.Required && several != "" && tied == 0 {
		return refuse(reason.ShapeUnknown, "the devices must stand in one interconnect domain (annotation berth.dev/interconnect: required), "+
			"and no AcceleratorPool of %s names an interconnect", several)
	}
	for _, it := range p.items {
		switch {
		case tied <= 1 || !it.class.Tied(it.span):
		case p.set.Interconnect == gang.Required:
			it.bond = required
		default:
			it.bond = preferred
		}
	}
	return nil
}

// domainOf is the position of the device's domain in the inventory's Domains, or negative.
func domainOf(inv *inventory.Inventory, d *inventory.Device) int32 {
	pool, ok := inv.Position(d.Pool)
	if !ok {
		return -1
	}
	at, ok := inv.Pools()[pool].Plan().Position(d)
	if !ok {
		return -1
	}
	return inv.State(pool).DomainOf(int32(at))
}

// seats is at most how many blocks of a plan find their leading device, and room, in one domain. It is exact where the
// leading devices exclude each other by nothing but their hosts' room.
type seats struct {
	domain int32
	blocks int
}

// seating lists the domains that have a place for at least one block, those with the most places first.
func (s *search) seating(p *plan) []seats {
	lead := p.items[0]
	o := s.options[lead]
	blocks := map[int32]int{}
	if p.size > 1 {
		for domain, indexes := range o.in {
			blocks[domain] = o.places(indexes)
		}
	} else {
		for host := range o.onHost {
			for domain, n := range s.seatsOn(host, p) {
				blocks[domain] += n
			}
		}
	}
	out := make([]seats, 0, len(blocks))
	for domain, n := range blocks {
		if domain >= 0 && n > 0 {
			out = append(out, seats{domain, n})
		}
	}
	slices.SortFunc(out, func(a, b seats) int { return cmp.Or(cmp.Compare(b.blocks, a.blocks), cmp.Compare(a.domain, b.domain)) })
	return out
}

// seatsOn counts, by domain of their leading device, the pods that find all their devices and room on the host.
func (s *search) seatsOn(host string, p *plan) map[int32]int {
	fit := map[int32]int{}
	lead := s.options[p.items[0]]
	for _, index := range lead.onHost[host] {
		fit[lead.domain[index]] += lead.copies[index]
	}
	room := -1
	for domain := range fit {
		fit[domain] /= p.items[0].count
		for _, it := range p.items[1:] {
			fit[domain] = min(fit[domain], s.options[it].places(s.options[it].onHost[host])/it.count)
		}
		if fit[domain] > 0 && room < 0 {
			room = s.world.Ledger.Room(host, p.set.Requests)
		}
		fit[domain] = min(fit[domain], max(room, 0))
	}
	return fit
}

// checkDomains refuses a plan that is bound to one domain when none has enough places, whatever the combination. A plan that
// only prefers one is relaxed instead.
func (s *search) checkDomains(p *plan) *reason.Refusal {
	lead := p.items[0]
	if lead.bond == apart {
		return nil
	}
	all := s.seating(p)
	s.domains[p] = all
	for _, d := range all {
		if d.blocks >= p.blocks {
			s.enough[p] = append(s.enough[p], d)
		}
	}
	slices.SortFunc(s.enough[p], s.byWorth)
	if len(s.enough[p]) > 0 {
		return nil
	}
	if lead.bond == preferred {
		s.relax(p)
		return nil
	}
	return s.noDomain(p)
}

func (s *search) byWorth(a, b seats) int {
	if s.worth != nil && s.worth[a.domain] != s.worth[b.domain] {
		return cmp.Compare(s.worth[a.domain], s.worth[b.domain])
	}
	return cmp.Compare(a.domain, b.domain)
}

// relax lets the items of a plan that only prefer it stand in several domains, as few as possible.
func (s *search) relax(p *plan) {
	for _, it := range p.items {
		if it.bond == preferred {
			s.relaxed[it] = true
		}
	}
	lead := p.items[0]
	if !s.relaxed[lead] {
		return
	}
	place := map[int32]int{}
	for i, domain := range s.cover(p) {
		place[domain] = i - len(s.domains[p])
	}
	o := s.options[lead]
	order := make([]int, len(o.all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return place[o.domain[a]] - place[o.domain[b]] })
	sorted := make([]*inventory.Device, len(order))
	for i, from := range order {
		sorted[i] = o.all[from]
	}
	o.all = sorted
	s.index(p, lead, o)
}

// cover puts the domains of a plan into an order in which the first few have places for all its blocks: the largest, until
// one is enough for the rest, and of those the one worth least.
func (s *search) cover(p *plan) []int32 {
	left := slices.Clone(s.domains[p])
	order := make([]int32, 0, len(left))
	for need := p.blocks; len(left) > 0; {
		last := -1
		for i, d := range left {
			if need > 0 && d.blocks >= need && (last < 0 || s.byWorth(d, left[last]) < 0) {
				last = i
			}
		}
		next := max(last, 0)
		need -= left[next].blocks
		order = append(order, left[next].domain)
		left = slices.Delete(left, next, next+1)
	}
	return order
}

// bound reports whether the item's devices must all stand in one domain as the search stands now.
func (s *search) bound(it *item) bool { return it.bond != apart && !s.relaxed[it] }
