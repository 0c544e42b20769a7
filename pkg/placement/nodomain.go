package placement

import (
	"fmt"
	"math"
	"strings"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// noDomain is the refusal when devices are free, but not together in one domain.
func (s *search) noDomain(p *plan) *reason.Refusal {
	lead, all := p.items[0], s.domains[p]
	noun := lead.noun()
	simple := p.simple()
	unit, needed, of := lead.class.Name, p.blocks, "has"
	if !simple {
		unit, of = "pods", "takes"
		if p.size > 1 {
			unit = "slices"
		}
	}
	var have []string
	for _, d := range all[:min(len(all), maxNames)] {
		have = append(have, fmt.Sprintf("%s %s %d", s.world.Inventory.Domains()[d.domain].Domain.Value, of, d.blocks))
	}
	if more := len(all) - maxNames; more > 0 {
		have = append(have, fmt.Sprintf("and %d more", more))
	}
	if len(have) == 0 {
		have = []string{"none of them is in a " + noun}
	}
	r := &reason.Refusal{Code: reason.NoFreeSlice}
	switch r.Message = s.noneSoLarge(p); {
	case r.Message != "":
	case simple:
		r.Message = fmt.Sprintf("%d %s %s free, but not together: no %s has %d (%s)",
			s.options[lead].total, unit, are(s.options[lead].total), noun, needed, strings.Join(have, ", "))
	default:
		r.Message = fmt.Sprintf("devices are free, but not together: no %s takes %d %s (%s)", noun, needed, unit, strings.Join(have, ", "))
	}
	r.Message = clamp(r.Message)
	for _, d := range all[:min(len(all), maxEvidence)] {
		r.Evidence = append(r.Evidence, reason.Evidence{
			Kind: reason.KindDomain, Name: s.world.Inventory.Domains()[d.domain].Domain.Value, Code: reason.NoFreeSlice,
			Detail: fmt.Sprintf("%s %d of %d %s", of, d.blocks, needed, unit),
		})
	}
	return r
}

// noneSoLarge says that a pod set needs more devices in one domain than any has, free or not; "" when that is not so, or
// not known.
func (s *search) noneSoLarge(p *plan) string {
	lead := p.items[0]
	if lead.bond != required || !p.simple() || len(lead.class.Withheld) > 0 {
		return ""
	}
	name, most := s.largest(lead)
	switch {
	case most >= p.blocks:
		return ""
	case most == 0:
		return fmt.Sprintf("%d %s are needed in one %s, and none of them is in a %s", p.blocks, lead.class.Name, lead.noun(), lead.noun())
	}
	return fmt.Sprintf("%d %s are needed in one %s, and the largest, %s, has %d in all", p.blocks, lead.class.Name, lead.noun(), name, most)
}

// noun is what people call a domain of the item's devices.
func (it *item) noun() string {
	for _, d := range it.devices {
		if d.Domain.Named() {
			return d.Domain.Noun()
		}
	}
	return "domain"
}

// largest is the domain with the most devices of an item, free or not.
func (s *search) largest(it *item) (name string, most int) {
	if it.shares {
		return "", math.MaxInt // Of shares nobody knows how many there could be.
	}
	count := map[inventory.Domain]int{}
	for _, d := range it.devices {
		if d.Domain.Known() {
			count[d.Domain]++
		}
	}
	for d, n := range count {
		if n > most || n == most && inventory.Natural(d.Value, name) < 0 {
			name, most = d.Value, n
		}
	}
	return name, most
}

// simple reports whether one whole device serves each block and nothing else, so that devices can be counted.
func (p *plan) simple() bool {
	return len(p.items) == 1 && p.items[0].count == 1 && !p.items[0].shares && len(p.items[0].req.Capacity) == 0
}
