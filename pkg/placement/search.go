package placement

import (
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// search tries devices for every slot of every plan, first fit, and goes back where a later slot finds none.
type search struct {
	world   World
	trial   *ledger.Trial
	plans   []*plan
	slots   []slot
	options map[*item]*options
	// budget is how many devices may still be tried, of whole.
	budget, whole int
	exhausted     bool
	// rank puts an item's options into the order in which they are tried; nil for the order of names.
	rank func(options []*inventory.Device)
	// domains that have a place for a plan, and those that have places enough, in the order in which they are tried; only for
	// plans whose leading item has a bond.
	domains, enough map[*plan][]seats
	// relaxed items are bound no more; in is where a bound item stands, as soon as it has a device, and by where all bound
	// items of a plan stand that are of one interconnect.
	relaxed map[*item]bool
	in      map[*item]tie
	by      map[interconnect]tie
	// worth of each domain, the least of which is tried first; nil for the order of names.
	worth []int64
}

// tie is the domain that a bound item stands in, and with how many devices.
type tie struct {
	domain int32
	n      int
}

// interconnect is that of some devices of a plan.
type interconnect struct {
	plan *plan
	name string
}

// slot is the place of one device.
type slot struct {
	plan  *plan
	item  *item
	block int
	// leads is true when the slot decides the hosts of its block.
	leads bool
	// leader is the index of the slot that leads the block.
	leader int
	// host is the position in the block of the host that the device must stand on, for devices of one host.
	host int
	// previous is the slot whose device must come before this one's, because both are exchangeable; -1 for none.
	previous int

	chosen *inventory.Device
	index  int // of chosen in options.all
}

func newSearch(w World, plans []*plan, budget int) *search {
	if budget <= 0 {
		budget = DefaultBudget
	}
	return &search{
		world: w, trial: w.Ledger.Try(), plans: plans, options: map[*item]*options{}, budget: budget, whole: budget,
		domains: map[*plan][]seats{}, enough: map[*plan][]seats{}, relaxed: map[*item]bool{}, in: map[*item]tie{}, by: map[interconnect]tie{},
	}
}

func (s *search) addSlots(p *plan) {
	leader, copyOf := -1, 0
	for b := range p.blocks {
		previous := leader
		leader = len(s.slots)
		for i, it := range p.items {
			if it.span > 1 {
				sl := slot{plan: p, item: it, block: b, leader: leader, previous: -1}
				if i == 0 {
					sl.leads, sl.previous = true, previous
				}
				s.slots = append(s.slots, sl)
				continue
			}
			for h := range p.size {
				for c := range it.count {
					sl := slot{plan: p, item: it, block: b, leader: leader, host: h, previous: -1}
					switch {
					case c > 0:
						sl.previous = copyOf
					case i == 0:
						sl.leads, sl.previous = true, previous
					}
					copyOf = len(s.slots)
					s.slots = append(s.slots, sl)
				}
			}
		}
	}
}

// fill gives slot i and all later ones a device, or leaves no trace.
func (s *search) fill(i int) bool {
	if i == len(s.slots) {
		return true
	}
	sl := &s.slots[i]
	o := s.options[sl.item]
	from := 0
	if sl.previous >= 0 {
		from = s.slots[sl.previous].index
		// Another pod may take another share of the same device, but one request of one claim takes no two.
		if !sl.leads || !o.all[from].Shared {
			from++
		}
	}
	if sl.leads {
		if s.bound(sl.item) {
			return s.leadIn(i, from)
		}
		return s.leadFrom(i, from)
	}
	hosts := s.slots[sl.leader].chosen.Hosts
	candidates := o.onHost[hosts[sl.host]]
	if sl.item.span > 1 {
		candidates = o.onHosts[hostsKey(hosts)]
	}
	for _, index := range candidates {
		if s.exhausted {
			return false
		}
		if index >= from && s.tryDevice(i, index) {
			return true
		}
	}
	return false
}

// leadFrom tries the leading device of a block from a place in the options on.
func (s *search) leadFrom(i, from int) bool {
	sl := &s.slots[i]
	o := s.options[sl.item]
	for index := from; index < len(o.all) && !s.exhausted; index++ {
		// Every later block needs a device of its own behind this one.
		if !sl.item.shares && len(o.all)-index < sl.plan.blocks-sl.block {
			return false
		}
		if s.tryLeader(i, index) {
			return true
		}
	}
	return false
}

// leadIn is leadFrom for an item that is bound to one domain: the first block goes from domain to domain.
func (s *search) leadIn(i, from int) bool {
	sl := &s.slots[i]
	o := s.options[sl.item]
	domains := []seats{{domain: s.in[sl.item].domain}}
	if s.in[sl.item].n == 0 {
		domains = s.enough[sl.plan]
	}
	for _, d := range domains {
		list := o.in[d.domain]
		first, _ := slices.BinarySearch(list, from)
		for at := first; at < len(list) && !s.exhausted; at++ {
			if !sl.item.shares && len(list)-at < sl.plan.blocks-sl.block {
				break
			}
			if s.tryLeader(i, list[at]) {
				return true
			}
		}
	}
	return false
}

// tryLeader also seats the block's pods, so that a host without room is noticed before its companions are searched.
func (s *search) tryLeader(i, index int) bool {
	sl := &s.slots[i]
	d := s.options[sl.item].all[index]
	requests := sl.plan.set.Requests
	seated := 0
	for _, h := range d.Hosts {
		if s.trial.Shortage(h, requests) != nil {
			break
		}
		s.trial.Seat(h, requests)
		seated++
	}
	if seated == len(d.Hosts) && s.tryDevice(i, index) {
		return true
	}
	for _, h := range d.Hosts[:seated] {
		s.trial.Unseat(h, requests)
	}
	return false
}

func (s *search) tryDevice(i, index int) bool {
	if s.budget--; s.budget < 0 {
		s.exhausted = true
		return false
	}
	sl := &s.slots[i]
	o := s.options[sl.item]
	d := o.all[index]
	if obstacle(s.trial, d, o.takes[index]) != nil || !s.join(sl, index) {
		return false
	}
	take(s.trial, d, o.takes[index])
	sl.chosen, sl.index = d, index
	if s.fill(i + 1) {
		return true
	}
	drop(s.trial, d, o.takes[index])
	s.part(sl, index)
	sl.chosen = nil
	return false
}

// join enters the domain of an option, or is false when the slot is bound to another one.
func (s *search) join(sl *slot, index int) bool {
	if !s.bound(sl.item) {
		return true
	}
	o := s.options[sl.item]
	domain, by := o.domain[index], interconnect{sl.plan, o.all[index].Domain.By}
	own, shared := s.in[sl.item], s.by[by]
	if domain < 0 || own.n > 0 && own.domain != domain || shared.n > 0 && shared.domain != domain {
		return false
	}
	s.in[sl.item], s.by[by] = tie{domain, own.n + 1}, tie{domain, shared.n + 1}
	return true
}

// part undoes join.
func (s *search) part(sl *slot, index int) {
	if !s.bound(sl.item) {
		return
	}
	by := interconnect{sl.plan, s.options[sl.item].all[index].Domain.By}
	own, shared := s.in[sl.item], s.by[by]
	s.in[sl.item], s.by[by] = tie{own.domain, own.n - 1}, tie{shared.domain, shared.n - 1}
}
