package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// joined places a gang of several devices of one class that are bound to one interconnect domain, or should stand in one. It
// is false when no domain can be found for them so; the search then finds one, spreads them over several, or says why not.
//
// In every domain the choice is that of several; of the domains the one counts in which devices and entry cost least. Domains
// are tried in the order of the least that they can cost, so most are never looked into.
func (s *Scored) joined(p *plan, w World) (Decision, bool) {
	best, in, proved := choice{cost: math.MaxInt64}, int32(everywhere), true
	s.eachRoomy(p, w, func(r roomy, worth int64) bool {
		// Of equal costs the first domain in order stays, whatever it was promised to cost.
		if r.least > best.cost || r.least == best.cost && r.domain > in {
			return false // And so it is for all that come later.
		}
		c := s.choose(p, w, false, r.domain)
		exact := c.exact
		if c.devices != nil && !s.holds(p, w, c.devices) {
			c = s.choose(p, w, true, r.domain)
			exact = exact && c.exact
			if c.devices != nil && !s.holds(p, w, c.devices) {
				c.devices, exact = nil, false
			}
		}
		proved = proved && exact
		if c.devices == nil {
			return true
		}
		c.cost = inventory.Add(c.cost, worth)
		if c.cost < best.cost || c.cost == best.cost && r.domain < in {
			best, in = c, r.domain
		}
		return true
	})
	if best.devices == nil {
		return Decision{}, false
	}
	d := s.decide(p, w, best.devices)
	d.Proved = d.Proved && proved
	return d, true
}

// roomy is a domain with enough free devices, and at least what a placement in it costs.
type roomy struct {
	domain int32
	least  int64
}

// eachRoomy calls each for all of them, those that promise to cost least first and of equal ones in order, until it is false.
func (s *Scored) eachRoomy(p *plan, w World, each func(r roomy, worth int64) bool) {
	l := s.lineup(p.items[0], w)
	if l.tied == nil || l.tied.scattered {
		worth := s.worths(w)
		for _, r := range s.roomy(p, w, worth) {
			if !each(r, worth[r.domain]) {
				return
			}
		}
		return
	}
	t := l.tied
	cup, lightest := t.roomy(p.blocks), t.lightest()
	var met []int32
	for {
		domain, worth := cup.first()
		if worth == none || !each(roomy{domain, inventory.Add(worth, int64(p.blocks)*lightest)}, worth) {
			break
		}
		met = append(met, domain)
		cup.set(domain, none)
	}
	for _, domain := range met {
		t.enroll(cup, p.blocks, domain)
	}
}

// roomy lists them where devices of one pool are of several domains.
func (s *Scored) roomy(p *plan, w World, worth []int64) []roomy {
	it := p.items[0]
	free, lightest := make([]int, len(worth)), int64(math.MaxInt64)
	for i, r := range s.rankings(it, w) {
		m := &it.class.Members[i]
		if m.Span != it.span {
			continue
		}
		state := w.Inventory.State(m.Pool)
		common, same := state.Common()
		occ := w.Ledger.Occupied(m.Pool)
		for _, c := range r.all {
			if !same {
				common = state.DomainOf(c.device)
			}
			if common >= 0 {
				free[common]++
				// Whatever else a device excludes may be shared with the next one; its own worth is not.
				lightest = min(lightest, s.shelves[m.Pool].value(c.device, &occ))
			}
		}
	}
	var out []roomy
	for domain, n := range free {
		if n >= p.blocks {
			out = append(out, roomy{int32(domain), inventory.Add(worth[domain], int64(p.blocks)*lightest)})
		}
	}
	slices.SortFunc(out, func(a, b roomy) int { return cmp.Or(cmp.Compare(a.least, b.least), cmp.Compare(a.domain, b.domain)) })
	return out
}
