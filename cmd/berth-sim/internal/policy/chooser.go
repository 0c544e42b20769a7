package policy

import (
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// candidate is a free device that suits a gang.
type candidate struct {
	// pool is a position in the inventory's Pools, device one in the pool.
	pool   int
	device int32
}

// rule picks one of several candidates, which stand in order of pools and names.
type rule interface {
	pick(w placement.World, span int, free []candidate) candidate
}

// chooser is a policy that looks at all free devices and takes the one of its rule.
type chooser struct {
	rule rule
	free []candidate
}

var _ placement.Placer = (*chooser)(nil)

// Place implements placement.Placer.
func (c *chooser) Place(g gang.Gang, w placement.World) placement.Decision {
	class, span, refusal := asked(g, w)
	if refusal != nil {
		return *refusal
	}
	c.free = c.free[:0]
	for i := range class.Members {
		m := &class.Members[i]
		if m.Span != span {
			continue
		}
		for _, d := range m.Devices {
			if suits(w, m.Pool, d, &g.PodSets[0]) {
				c.free = append(c.free, candidate{m.Pool, d})
			}
		}
	}
	if len(c.free) == 0 {
		return none(class.Name)
	}
	return decide(g, w, c.rule.pick(w, span, c.free))
}

// asked reads a gang of one pod set with one request for one device.
func asked(g gang.Gang, w placement.World) (*inventory.Class, int, *placement.Decision) {
	if len(g.PodSets) != 1 || len(g.PodSets[0].Claims) != 1 || len(g.PodSets[0].Claims[0].Requests) != 1 ||
		g.PodSets[0].Slices > 1 || g.PodSets[0].Claims[0].Requests[0].Count != 1 {
		return nil, 0, &placement.Decision{Refusal: &reason.Refusal{Code: reason.Unsupported, Message: "policies of the simulation place gangs of one device"}}
	}
	return w.Inventory.Class(g.PodSets[0].Claims[0].Requests[0].Class), g.PodSets[0].Count, nil
}

// suits reports whether a device can be taken now, as placement decides it for a gang that tolerates nothing.
func suits(w placement.World, pool int, device int32, set *gang.PodSet) bool {
	occ := w.Ledger.Occupied(pool)
	if occ.Short != nil && (occ.Short[device] != 0 || occ.Shut[device] != 0) || w.Inventory.State(pool).Off[device] {
		return false
	}
	plan := w.Inventory.Pools()[pool].Plan()
	for _, h := range plan.Under(int(device)) {
		if !w.Ledger.Fits(plan.Hosts()[h], set.Requests) {
			return false
		}
	}
	return true
}

func none(class string) placement.Decision {
	return placement.Decision{Refusal: &reason.Refusal{Code: reason.NoFreeSlice, Message: "no " + class + " is free"}, Proved: true}
}

func decide(g gang.Gang, w placement.World, c candidate) placement.Decision {
	d := w.Inventory.Pools()[c.pool].Devices[c.device]
	claim := &g.PodSets[0].Claims[0]
	return placement.Decision{Proved: true, PodSets: []placement.PodSet{{
		Name: g.PodSets[0].Name, Hosts: d.Hosts,
		Claims: []placement.Claim{{PodClaim: claim.PodClaim, PodsPerClaim: len(d.Hosts), Instances: []placement.Instance{{
			Devices: []placement.Device{{
				Request: claim.Requests[0].Name, Pool: d.Pool, Generation: d.Generation, Name: d.Name, Hosts: d.Hosts, Charge: d.Charge,
			}},
		}}}},
	}}}
}
