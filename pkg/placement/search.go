package placement

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// search tries devices for every slot of every plan, first fit, and goes back where a later slot finds none.
type search struct {
	world     World
	trial     *ledger.Trial
	plans     []*plan
	slots     []slot
	options   map[*item]*options
	budget    int
	exhausted bool
	// rank puts an item's options into the order in which they are tried; nil for the order of names.
	rank func(options []*inventory.Device)
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

// options are the devices that an item may use, each by itself, before the gang took anything.
type options struct {
	all     []*inventory.Device
	onHost  map[string][]int
	onHosts map[string][]int
}

func newSearch(w World, plans []*plan, budget int) *search {
	if budget <= 0 {
		budget = DefaultBudget
	}
	return &search{world: w, trial: w.Ledger.Try(), plans: plans, options: map[*item]*options{}, budget: budget}
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

// narrow computes an item's options.
func (s *search) narrow(p *plan, it *item) (*options, []*blocked) {
	o := &options{onHost: map[string][]int{}, onHosts: map[string][]int{}}
	var out []*blocked
	for _, d := range it.devices {
		if b := s.blocked(d, it, p); b != nil {
			out = append(out, b)
			continue
		}
		o.all = append(o.all, d)
	}
	if s.rank != nil {
		s.rank(o.all)
	}
	for i, d := range o.all {
		if it.span == 1 {
			o.onHost[d.Hosts[0]] = append(o.onHost[d.Hosts[0]], i)
		} else {
			o.onHosts[hostsKey(d.Hosts)] = append(o.onHosts[hostsKey(d.Hosts)], i)
		}
	}
	return o, out
}

func hostsKey(hosts []string) string {
	sorted := slices.Clone(hosts)
	slices.Sort(sorted)
	return strings.Join(sorted, ",")
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
		from = s.slots[sl.previous].index + 1
	}
	if sl.leads {
		for index := from; index < len(o.all) && !s.exhausted; index++ {
			// Every later block needs a device of its own behind this one.
			if len(o.all)-index < sl.plan.blocks-sl.block {
				return false
			}
			if s.tryLeader(i, index) {
				return true
			}
		}
		return false
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
	d := s.options[sl.item].all[index]
	if s.trial.Obstacle(d) != nil {
		return false
	}
	s.trial.Take(d)
	sl.chosen, sl.index = d, index
	if s.fill(i + 1) {
		return true
	}
	s.trial.Drop(d)
	sl.chosen = nil
	return false
}

// decision reads the filled slots.
func (s *search) decision() []PodSet {
	var out []PodSet
	at := 0
	for _, p := range s.plans {
		ps := PodSet{Name: p.set.Name}
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
			in.Devices = append(in.Devices, device(sl.item.req.Name, sl.chosen))
		}
		for c := range ps.Claims {
			for i := range ps.Claims[c].Instances {
				inRequestOrder(ps.Claims[c].Instances[i].Devices, p.set.Claims[c].Requests)
			}
		}
		out = append(out, ps)
	}
	return out
}
