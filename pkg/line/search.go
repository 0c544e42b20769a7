package line

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
)

// bases are ledgers without those who run, kept while nothing is given out.
type bases struct {
	// foreign has what is held by others, nobody nothing but quarantine.
	foreign, nobody *ledger.Ledger
	// beside has targets besides.
	beside map[string]*ledger.Ledger
}

func (p *pass) world(l *ledger.Ledger) placement.World {
	w := p.World
	w.Ledger = l
	return w
}

// bare is what is taken when every gang has ended: what is foreign, or nothing.
func (p *pass) bare(withForeign bool) *ledger.Ledger {
	if !withForeign {
		if p.bases.nobody == nil {
			all := func(string) bool { return true }
			p.bases.nobody = p.World.Ledger.Without(all, all)
		}
		return p.bases.nobody
	}
	if p.bases.foreign == nil {
		p.bases.foreign = p.World.Ledger.Without(
			func(owner string) bool { return p.running[owner] != nil },
			func(pod string) bool { _, ours := p.holder[pod]; return ours },
		)
	}
	return p.bases.foreign
}

// beside is bare with what is kept in targets. The caller must not change it.
func (p *pass) beside(withForeign bool, targets []*Target) *ledger.Ledger {
	key := names(targets)
	if withForeign {
		key += "+"
	}
	if l := p.bases.beside[key]; l != nil {
		return l
	}
	l := p.bare(withForeign).Clone()
	for _, t := range targets {
		t.charge(l)
	}
	if p.bases.beside == nil {
		p.bases.beside = map[string]*ledger.Ledger{}
	}
	p.bases.beside[key] = l
	return l
}

// names of targets as a key.
func names(targets []*Target) string {
	uids := make([]string, 0, len(targets))
	for _, t := range targets {
		uids = append(uids, t.For)
	}
	return strings.Join(uids, "\x00")
}

// search finds the devices for the gang that drain soonest, beside all other targets, or else beside those of gangs that
// stand in line for longer. own is the target that the result would replace. Nil when there is none.
func (p *pass) search(e Entry, own *Target) *Target {
	// Where a gang found none, one behind it in its queue that needs the same gets none in the place of another queue's: it
	// would be gone by the next pass. Of gangs of other queues that says nothing: they may stand in line for longer.
	key := e.Queue + "\x00" + p.refusals.needOf(e)
	if own != nil {
		key += "\x00" + own.For
	}
	if p.hopeless[key] == p.version && p.version > 0 {
		return nil
	}
	var others, older []*Target
	for _, t := range p.targets {
		if t == own || t.Open {
			continue
		}
		others = append(others, t)
		if p.places.compare(t.entry, e) < 0 {
			older = append(older, t)
		}
	}
	sets := [][]*Target{others}
	if len(older) < len(others) {
		sets = append(sets, older)
	}
	for _, withForeign := range []bool{true, false} {
		for _, targets := range sets {
			if t := p.soonest(e, withForeign, targets); t != nil {
				return t
			}
		}
	}
	p.hopeless[key] = p.version
	return nil
}

func (p *pass) soonest(e Entry, withForeign bool, targets []*Target) *Target {
	base := p.beside(withForeign, targets)
	if set, devices := single(e.Gang, p.World.Inventory); set != nil {
		return p.soonestOne(e, set, devices, base)
	}
	return p.soonestSeveral(e, withForeign, targets)
}

// single is the pod set of a gang that asks for one device, and the devices that could serve it; nil for other gangs.
func single(g gang.Gang, inv *inventory.Inventory) (*gang.PodSet, []*inventory.Device) {
	if len(g.PodSets) != 1 || len(g.PodSets[0].Claims) != 1 || len(g.PodSets[0].Claims[0].Requests) != 1 {
		return nil, nil
	}
	set := &g.PodSets[0]
	req := &set.Claims[0].Requests[0]
	if req.Count != 1 || set.Slices > 1 {
		return nil, nil
	}
	devices := inv.Class(req.Class).OfSpan(set.Count)
	if len(devices) == 0 {
		return nil, nil
	}
	return set, devices
}

// soonestOne looks at every device. Of equal drains the first by pool and name counts.
func (p *pass) soonestOne(e Entry, set *gang.PodSet, devices []*inventory.Device, base *ledger.Ledger) *Target {
	var best *Target
	for _, d := range devices {
		if at, ok := p.World.Inventory.Position(d.Pool); ok {
			if occ := base.Occupied(at); occ.Short != nil && !d.Shared {
				i, known := p.World.Inventory.Pools()[at].Plan().Position(d)
				if known && (occ.Short[i] != 0 || occ.Shut[i] != 0) {
					continue
				}
			}
		}
		decision := decisionOf(set, d)
		if p.Barred != nil && p.Barred(d.Pool) || placement.Recheck(e.Gang, decision, p.world(base)) != nil {
			continue
		}
		drain, enough := p.drainOf(e, decision)
		if !enough || best != nil && drain.compare(best.drain) >= 0 {
			continue
		}
		best = &Target{For: e.Gang.UID, Decision: decision, entry: e, drain: drain}
	}
	if best != nil {
		best.tell()
	}
	return best
}

// decisionOf is the decision that gives the device to the only request of the pod set.
func decisionOf(set *gang.PodSet, d *inventory.Device) placement.Decision {
	chosen := placement.Device{
		Request: set.Claims[0].Requests[0].Name, Pool: d.Pool, Generation: d.Generation, Name: d.Name, Hosts: d.Hosts, Charge: d.Charge, Share: d.Shared,
	}
	if d.Shared {
		chosen.Capacity, _ = d.Share(set.Claims[0].Requests[0].Capacity) // Recheck refuses what cannot be.
	}
	return placement.Decision{Proved: true, PodSets: []placement.PodSet{{
		Name: set.Name, Hosts: d.Hosts, Claims: []placement.Claim{{
			PodClaim: set.Claims[0].PodClaim, PodsPerClaim: len(d.Hosts),
			Instances: []placement.Instance{{Devices: []placement.Device{chosen}}},
		}},
	}}}
}

// soonestSeveral has the placer decide as if the first so many of those who run had gone, as few as suffice.
func (p *pass) soonestSeveral(e Entry, withForeign bool, targets []*Target) *Target {
	try := func(gone map[string]bool) placement.Decision {
		l := p.beside(withForeign, targets)
		if gone != nil {
			l = p.keeping(p.World.Ledger.Without(
				func(owner string) bool { return gone[owner] },
				func(pod string) bool { return gone[p.holderOf(pod)] },
			), targets)
		}
		p.asked++
		return p.Placer.Place(e.Gang, p.world(l))
	}
	best := try(nil)
	if !best.Fits() {
		return nil
	}
	if withForeign {
		order := make([]string, 0, len(p.running))
		for owner := range p.running {
			order = append(order, owner)
		}
		slices.SortFunc(order, p.leaving(e))
		few, many := 0, len(order)
		for few < many {
			n := (few + many) / 2
			gone := make(map[string]bool, n)
			for _, owner := range order[:n] {
				gone[owner] = true
			}
			if d := try(gone); d.Fits() {
				best, many = d, n
			} else {
				few = n + 1
			}
		}
	}
	drain, enough := p.drainOf(e, best)
	if !enough {
		return nil
	}
	t := &Target{For: e.Gang.UID, Decision: best, entry: e, drain: drain}
	t.tell()
	return t
}

// serves reports whether the devices of a decision are still published as they were decided on, for the same requests.
func serves(e Entry, d placement.Decision, inv *inventory.Inventory) bool {
	sets := map[string]*gang.PodSet{}
	for i := range e.Gang.PodSets {
		sets[e.Gang.PodSets[i].Name] = &e.Gang.PodSets[i]
	}
	if len(sets) != len(d.PodSets) {
		return false
	}
	for _, ps := range d.PodSets {
		set := sets[ps.Name]
		if set == nil || len(ps.Hosts) != set.Count || len(ps.Claims) != len(set.Claims) || scattered(set, ps, inv) {
			return false
		}
		for i, c := range ps.Claims {
			for _, in := range c.Instances {
				for _, chosen := range in.Devices {
					dev := inv.Device(chosen.Pool, chosen.Name)
					if dev == nil || !slices.Equal(dev.Hosts, chosen.Hosts) || !selected(set.Claims[i].Requests, chosen.Request, dev, inv) {
						return false
					}
				}
			}
		}
	}
	return true
}

// scattered reports whether devices that have to stand in one domain of an interconnect do not, as labels are now.
func scattered(set *gang.PodSet, ps placement.PodSet, inv *inventory.Inventory) bool {
	if set.Interconnect != gang.Required {
		return false
	}
	var domains []inventory.Domain
	for i, c := range ps.Claims {
		for _, in := range c.Instances {
			for _, chosen := range in.Devices {
				dev := inv.Device(chosen.Pool, chosen.Name)
				tied := func(r gang.Request) bool {
					return r.Name == chosen.Request && inv.Class(r.Class).Tied(len(chosen.Hosts))
				}
				if dev != nil && slices.ContainsFunc(set.Claims[i].Requests, tied) {
					domains = append(domains, dev.Domain)
				}
			}
		}
	}
	return len(domains) > 1 && slices.ContainsFunc(domains, func(d inventory.Domain) bool { return !d.Known() || d != domains[0] })
}

// selected reports whether the class of the request still selects the device.
func selected(requests []gang.Request, name string, d *inventory.Device, inv *inventory.Inventory) bool {
	for i := range requests {
		if requests[i].Name == name {
			return slices.Contains(inv.Class(requests[i].Class).OfSpan(len(d.Hosts)), d)
		}
	}
	return false
}

// barred reports whether a decision takes something from a pool of which nothing may be given out.
func (p *pass) barred(d placement.Decision) bool {
	if p.Barred == nil {
		return false
	}
	for _, ps := range d.PodSets {
		for _, c := range ps.Claims {
			for _, in := range c.Instances {
				if slices.ContainsFunc(in.Devices, func(dev placement.Device) bool { return p.Barred(dev.Pool) }) {
					return true
				}
			}
		}
	}
	return false
}
