package placement

import (
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// realm is what Scored keeps of one interconnect domain from decision to decision. Like a shelf it follows from the inventory,
// the demand and what is taken.
type realm struct {
	// demand is the greatest share of demand of a class that selects devices of the domain, in parts of oneHost.
	demand int64
	// members are the devices of the smallest span, on which the hosts are counted, pool by pool.
	members []realmPool
	// hosts is how many there are.
	hosts int

	// stale is true when something else may be taken of it than when its worth was found.
	stale bool
}

type realmPool struct {
	pool    int
	all     []int32 // every device of the domain
	devices []int32
	// under are the numbers of their hosts within the domain, one after the other, and from where each one's begin.
	under, from []int32
}

// newRealms makes the realms of an inventory; nil where no pool names an interconnect.
func newRealms(inv *inventory.Inventory, classes []*inventory.Class, demand Demand) []realm {
	domains := inv.Domains()
	if len(domains) == 0 {
		return nil
	}
	realms := make([]realm, len(domains))
	greatest := demand.greatest()
	for _, c := range classes {
		share := int64(demand.share(c.Name, greatest) * oneHost)
		for i := range c.Members {
			m := &c.Members[i]
			state := inv.State(m.Pool)
			if common, same := state.Common(); same {
				if common >= 0 {
					realms[common].demand = max(realms[common].demand, share)
				}
				continue
			}
			for _, d := range m.Devices {
				if domain := state.DomainOf(d); domain >= 0 {
					realms[domain].demand = max(realms[domain].demand, share)
				}
			}
		}
	}
	for i := range domains {
		realms[i].enter(inv, &domains[i])
	}
	return realms
}

func (r *realm) enter(inv *inventory.Inventory, d *inventory.DomainMembers) {
	smallest := 0
	for _, p := range d.Pools {
		for _, device := range p.Devices {
			if span := len(inv.Pools()[p.Pool].Devices[device].Hosts); smallest == 0 || span < smallest {
				smallest = span
			}
		}
	}
	number := map[string]int32{}
	for _, p := range d.Pools {
		rp := realmPool{pool: p.Pool, all: p.Devices, from: []int32{0}}
		plan := inv.Pools()[p.Pool].Plan()
		for _, device := range p.Devices {
			under := plan.Under(int(device))
			if len(under) != smallest || inv.State(p.Pool).Off[device] {
				continue
			}
			rp.devices = append(rp.devices, device)
			for _, h := range under {
				name := plan.Hosts()[h]
				if _, seen := number[name]; !seen {
					number[name] = int32(len(number))
				}
				rp.under = append(rp.under, number[name])
			}
			rp.from = append(rp.from, int32(len(rp.under)))
		}
		r.members = append(r.members, rp)
	}
	r.hosts = len(number)
}

// appraisal is the worth of every domain, kept up with what is taken.
type appraisal struct {
	worth []int64
	// seen are the fingerprints of pools that the worths are of; of lists the domains of each pool.
	seen *ledger.Seen
	of   [][]int32
	// stale are the realms that are.
	stale []int32
}

func newAppraisal(realms []realm, pools int) *appraisal {
	a := &appraisal{worth: make([]int64, len(realms)), seen: ledger.NewSeen(pools), of: make([][]int32, pools)}
	for i := range realms {
		realms[i].stale = true
		a.stale = append(a.stale, int32(i))
		for _, m := range realms[i].members {
			a.of[m.pool] = append(a.of[m.pool], int32(i))
		}
	}
	return a
}

// worths brings the worth of every domain up to date: the hosts on which a free device stands × demand, halved for every
// distinct holder in the domain. It is what the domain can still serve as a whole, and by half of it whoever enters the
// domain lowers it. Only domains of pools of which something else is taken are looked at.
func (s *Scored) worths(w World) []int64 {
	if len(s.realms) == 0 {
		return nil
	}
	a := s.appraised
	if a == nil {
		a = newAppraisal(s.realms, len(s.shelves))
		s.appraised = a
	}
	w.Ledger.Changed(a.seen, func(pool int) {
		a.seen.See(pool, w.Ledger.Fingerprint(pool))
		for _, domain := range a.of[pool] {
			if !s.realms[domain].stale {
				s.realms[domain].stale = true
				a.stale = append(a.stale, domain)
			}
		}
	})
	for _, domain := range a.stale {
		r := &s.realms[domain]
		r.stale = false
		if worth := s.appraise(r, w); worth != a.worth[domain] {
			a.worth[domain] = worth
			for _, l := range s.lineups {
				l.revalue(domain)
			}
		}
	}
	a.stale = a.stale[:0]
	return a.worth
}

func (s *Scored) appraise(r *realm, w World) int64 {
	clear(s.holders)
	if len(s.seen) < r.hosts {
		s.seen = make([]uint32, r.hosts)
		s.round = 0
	}
	if s.round++; s.round == 0 {
		clear(s.seen)
		s.round = 1
	}
	free := int64(0)
	for i := range r.members {
		p := &r.members[i]
		occ := w.Ledger.Occupied(p.pool)
		if occ.Standing != nil {
			w.Ledger.Standers(p.pool, p.all, s.holders)
		}
		for j, d := range p.devices {
			if occ.Short != nil && (occ.Short[d] != 0 || occ.Shut[d] != 0) {
				continue
			}
			for _, h := range p.under[p.from[j]:p.from[j+1]] {
				if s.seen[h] != s.round {
					s.seen[h] = s.round
					free++
				}
			}
		}
	}
	if len(s.holders) > 62 {
		return 0
	}
	return free * r.demand >> len(s.holders)
}
