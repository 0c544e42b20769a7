package placement

import (
	"slices"
	"sync"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// Scored takes the devices whose loss to everybody else is smallest. What the hardware is worth is
//
//	Σ over devices that somebody can ask for: hosts × demand of the class × ½^(distinct holders standing in it)
//
// and a placement costs by how much it lowers that. A device that is out of use is worth nothing; what the gang's own pods
// need of cpu and memory decides whether a device suits, not what it costs. Where windows overlap, each weighs by what of
// its shape can stand together (see crowding).
//
// One device is chosen exactly, among all that are free. Several are exact in pools that are forests, in which each device
// lies in another or is apart from it; elsewhere each next device is the cheapest beside those before it. Requests that
// must share hosts are tried in order of cost within a budget. Ties go to the first by pool and name.
//
// The answer depends on the arguments alone: what Scored keeps between calls is derived and checked against them. It may
// be used concurrently, one call at a time.
type Scored struct {
	budget int

	mutex   sync.Mutex
	inv     *inventory.Inventory
	classes []*inventory.Class
	wants   uint64
	shelves []*shelf // by position of the pool in inv
	kept    map[*inventory.Plan]*shelf
	visit   uint64                          // number of the call
	needs   ledger.Needs                    // of the pods of the call, made when they are first asked for
	asked   uint64                          // the call that needs are of
	stood   []uint64                        // by position of the host, the visit that apart met it on
	rank    map[*inventory.Class][]*ranking // by position in Class.Members
	lineups map[rankKey]*lineup
	// whole: the neighbours of all devices of the class are known.
	whole map[*inventory.Class]bool

	// realms by position in the inventory's Domains, and the worth of each; nil until it is asked for.
	realms    []realm
	appraised *appraisal
	// holders, seen and round are scratch of appraise.
	holders map[string]struct{}
	seen    []uint32
	round   uint32
}

var _ Placer = (*Scored)(nil)

// NewScored returns a Scored that tries at most budget devices where it searches; 0 means DefaultBudget.
func NewScored(budget int) *Scored {
	return &Scored{budget: budget, kept: map[*inventory.Plan]*shelf{}, holders: map[string]struct{}{}}
}

// Place implements Placer.
func (s *Scored) Place(g gang.Gang, w World) Decision {
	plans, refusal := plansFor(g, w)
	if refusal != nil {
		return *refusal
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.visit++
	s.prepare(w)
	if len(plans) == 1 && plans[0].simple() {
		p := plans[0]
		if d, ok := s.simple(p, w); ok {
			return d
		}
	}
	search := newSearch(w, plans, s.budget)
	if len(s.realms) > 0 {
		search.worth = s.worths(w)
	}
	search.rank = func(options []*inventory.Device) { s.order(options, w) }
	d := search.run(g)
	if d.Fits() {
		d.Proved = false
		s.price(&d, w)
	}
	return d
}

// simple places a pod set of one request for one device. It is false when that leads to no placement; the search then finds
// one, or says why there is none.
func (s *Scored) simple(p *plan, w World) (Decision, bool) {
	switch {
	case p.blocks == 1:
		return s.one(p, w)
	case p.items[0].bond == apart:
		return s.several(p, w)
	default:
		return s.joined(p, w)
	}
}

// prepare drops what was kept for another inventory or another demand.
func (s *Scored) prepare(w World) {
	wants := w.Demand.print()
	if s.inv == w.Inventory && s.wants == wants {
		return
	}
	s.inv, s.wants, s.classes = w.Inventory, wants, w.Inventory.Classes()
	s.rank, s.lineups, s.whole = map[*inventory.Class][]*ranking{}, map[rankKey]*lineup{}, map[*inventory.Class]bool{}
	s.shelves = make([]*shelf, len(w.Inventory.Pools()))
	kept := make(map[*inventory.Plan]*shelf, len(s.shelves))
	for i, p := range w.Inventory.Pools() {
		state := w.Inventory.State(i)
		key := shelfKey{plan: p.Plan(), classes: state.Classes(), off: state.Fingerprint, wants: wants}
		if old := s.kept[key.plan]; old != nil && old.key == key {
			s.shelves[i], kept[key.plan] = old, old
		}
	}
	s.kept = kept
	s.realms, s.appraised = newRealms(w.Inventory, s.classes, w.Demand), nil
}

// shelf of the pool at a position. Pools of which no device is asked for never need theirs.
func (s *Scored) shelf(pool int, w World) *shelf {
	if s.shelves[pool] == nil {
		state := w.Inventory.State(pool)
		key := shelfKey{plan: w.Inventory.Pools()[pool].Plan(), classes: state.Classes(), off: state.Fingerprint, wants: s.wants}
		sh := newShelf(w.Inventory, s.classes, pool, key, w.Demand)
		s.shelves[pool], s.kept[key.plan] = sh, sh
	}
	return s.shelves[pool]
}

// ranks are the rankings of a class by its Members, whether or not they are up to date.
func (s *Scored) ranks(class *inventory.Class, w World) []*ranking {
	list := s.rank[class]
	if list == nil {
		list = make([]*ranking, len(class.Members))
		whole := true
		for i := range class.Members {
			m := &class.Members[i]
			sh := s.shelf(m.Pool, w)
			list[i] = sh.ranking(class.Name, m)
			list[i].lineup = nil // It may come from another inventory, where pools had other positions.
			whole = whole && sh.near.Complete
		}
		s.rank[class], s.whole[class] = list, whole
	}
	return list
}

// rankings of a class by its Members, each of the item's span brought up to date.
func (s *Scored) rankings(it *item, w World) []*ranking {
	list := s.ranks(it.class, w)
	for i := range it.class.Members {
		if m := &it.class.Members[i]; m.Span == it.span {
			s.refresh(list[i], m, w)
		}
	}
	return list
}

// refresh brings a ranking up to date, and its lineup with it.
func (s *Scored) refresh(r *ranking, m *inventory.Members, w World) {
	if r.fresh && r.taken == w.Ledger.Fingerprint(m.Pool) {
		return
	}
	occ := w.Ledger.Occupied(m.Pool)
	s.shelves[m.Pool].rank(r, m.Devices, &occ)
	if r.lineup != nil {
		s.enter(r.lineup, r.leaf, w)
	}
}

// suits reports whether pods of the set may use a free device: everything that blockedBy checks but what is taken.
func (s *Scored) suits(pool int, device int32, req *gang.Request, set *gang.PodSet, w World) bool {
	d := w.Inventory.Pools()[pool].Devices[device]
	if w.Inventory.State(pool).Off[device] && blockedBy(d, req, set, w, w.Ledger.Try()) != nil {
		return false
	}
	sh, state := s.shelves[pool], w.Inventory.State(pool)
	if s.asked != s.visit {
		s.needs, s.asked = w.Ledger.Needs(set.Requests, s.needs), s.visit
	}
	for _, h := range sh.plan.Under(int(device)) {
		// Windows share hosts, so each is looked at once.
		if sh.room[h]>>1 != s.visit {
			has := uint64(0)
			if _, out := set.Ineligible[sh.plan.Hosts()[h]]; !out && w.Ledger.FitsAt(state.Hosts[h], s.needs) {
				has = 1
			}
			sh.room[h] = s.visit<<1 | has
		}
		if sh.room[h]&1 == 0 {
			return false
		}
	}
	return true
}

// decide makes the decision for a pod set of one request whose devices are chosen.
func (s *Scored) decide(p *plan, w World, chosen []suitor) Decision {
	it := p.items[0]
	ps := PodSet{Name: p.set.Name, Claims: []Claim{{PodClaim: p.set.Claims[it.claim].PodClaim, PodsPerClaim: it.span}}}
	instances := make([]Instance, len(chosen))
	for i, c := range chosen {
		d := w.Inventory.Pools()[c.pool].Devices[c.device]
		instances[i].Devices = []Device{device(it.req, d)}
		ps.Hosts = append(ps.Hosts, d.Hosts...)
		ps.Domains = appendDomain(ps.Domains, d)
	}
	ps.Claims[0].Instances = instances
	d := Decision{PodSets: []PodSet{ps}, Proved: s.whole[it.class]}
	s.price(&d, w)
	return d
}

// order sorts devices by what each alone would cost; equal ones stay in order.
func (s *Scored) order(devices []*inventory.Device, w World) {
	loss := make(map[*inventory.Device]int64, len(devices))
	occupied := map[int]ledger.Occupied{}
	worth := s.worths(w)
	for _, d := range devices {
		pool, _ := w.Inventory.Position(d.Pool)
		sh := s.shelf(pool, w)
		at, known := sh.plan.Position(d)
		if !known {
			continue
		}
		occ, seen := occupied[pool]
		if !seen {
			occ = w.Ledger.Occupied(pool)
			occupied[pool] = occ
		}
		sh.begin(&occ)
		if loss[d] = sh.loss(int32(at), &occ); d.Shared {
			// Others may stand in it although a share is free.
			loss[d] = sh.together([]int32{int32(at)}, &occ)
		}
		if domain := w.Inventory.State(pool).DomainOf(int32(at)); domain >= 0 {
			loss[d] = inventory.Add(loss[d], worth[domain])
		}
	}
	slices.SortStableFunc(devices, func(a, b *inventory.Device) int {
		return candidate{loss: loss[a]}.compare(candidate{loss: loss[b]})
	})
}
