package placement

import (
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/reason"
)

// heldBy are devices of one pool, by position, that nothing but their holders keeps from the pods. In a full pool most
// devices are, and there are many: who holds them is asked once for all together, and by itself only for those told first.
type heldBy struct {
	ledger  *ledger.Ledger
	pool    int
	devices []int32
}

// held finds the devices of an item of which blocked would name only holders, before the gang took anything. skip says of
// each of it.devices whether it is one. Where there may be more to say of any, nothing is found.
func (s *search) held(p *plan, it *item) (found []heldBy, skip []bool) {
	if len(it.req.Capacity) > 0 || !everyHostLarge(s.world.Inventory, p.set.Requests) {
		return nil, nil
	}
	skip = make([]bool, len(it.devices))
	from := 0
	for i := range it.class.Members {
		m := &it.class.Members[i]
		if m.Span != it.span {
			continue
		}
		if from+len(m.Devices) > len(it.devices) {
			return nil, nil
		}
		if h := s.heldOf(p, m, it.devices[from:], skip[from:]); len(h.devices) > 0 {
			found = append(found, h)
		}
		from += len(m.Devices)
	}
	return found, skip
}

// heldOf looks at the devices of one pool, which stand in the order of m.
func (s *search) heldOf(p *plan, m *inventory.Members, devices []*inventory.Device, skip []bool) heldBy {
	out := heldBy{ledger: s.world.Ledger, pool: m.Pool}
	pool, off, short := s.world.Inventory.Pools()[m.Pool], s.world.Inventory.State(m.Pool).Off, s.world.Ledger.Occupied(m.Pool).Short
	if short == nil || !pool.Usable() {
		return out
	}
	for i, at := range m.Devices {
		d := devices[i]
		if off[at] || short[at] == 0 || pool.Devices[at] != d || d.Shared || ineligible(d, p) {
			continue
		}
		if out.devices == nil {
			out.devices = make([]int32, 0, len(m.Devices)-i)
		}
		skip[i] = true
		out.devices = append(out.devices, at)
	}
	return out
}

func ineligible(d *inventory.Device, p *plan) bool {
	if len(p.set.Ineligible) == 0 {
		return false
	}
	return slices.ContainsFunc(d.Hosts, func(h string) bool { _, out := p.set.Ineligible[h]; return out })
}

// hold adds devices to the group, and who holds them: where they come in order, of those behind the first only their number.
func (g *grouped) hold(h heldBy) {
	g.n += len(h.devices)
	h.ledger.EachHolder(h.pool, h.devices, func(owner string) {
		switch {
		case g.inOrder && len(g.owners) == maxNames:
			g.others++
		case g.owners == nil:
			g.owners = append(make([]string, 0, maxNames), owner)
		default:
			g.owners = append(g.owners, owner)
		}
	})
	pool := h.ledger.Inventory().Pools()[h.pool]
	g.evidence = slices.Grow(g.evidence, max(0, maxEvidence+maxNames-len(g.evidence)))
	for _, at := range h.devices {
		if len(g.evidence) >= maxEvidence {
			return
		}
		d := pool.Devices[at]
		g.evidence = holding(g.evidence, d, h.ledger.Holders(d))
	}
}

// holding adds that each of the owners holds a device.
func holding(to []reason.Evidence, d *inventory.Device, owners []string) []reason.Evidence {
	detail := "holds " + d.Pool.Name + "/" + d.Name + " or a part of it"
	for _, o := range owners {
		to = append(to, reason.Evidence{Kind: reason.KindHolder, Name: o, Code: reason.NoFreeSlice, Detail: detail})
	}
	return to
}

// foremost puts the first of the owners, as many as are told, in front and in order, each once.
func (g *grouped) foremost() {
	slices.Sort(g.owners) // By bytes, which is cheap.
	g.owners = slices.Compact(g.owners)
	top := min(maxNames, len(g.owners))
	slices.SortStableFunc(g.owners[:top], inventory.Natural)
	for i := top; i < len(g.owners); i++ {
		owner, at := g.owners[i], top
		for at > 0 && inventory.Natural(owner, g.owners[at-1]) < 0 {
			at--
		}
		if at < top {
			g.owners[i] = g.owners[top-1]
			copy(g.owners[at+1:top], g.owners[at:])
			g.owners[at] = owner
		}
	}
}
