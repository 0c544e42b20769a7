package fold

import (
	"maps"

	"github.com/berth-dev/berth/pkg/capacity"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// ground is what one revision of a fold stands on: hosts by pool. A driver that restarts takes its devices back for a moment,
// and the fold's number falls later or not at all; a younger fold that took the hosts meanwhile would promise them again. So
// they stay the fold's until their pool comes back without them, their Nodes go, or the fold asks for something else.
//
// It is not written down. A new process knows nothing of pools that are withheld or gone when it begins.
type ground struct {
	revision string
	pools    map[inventory.PoolID]map[string]struct{}
}

// groundOf is what the fold stands on now.
func groundOf(inv *inventory.Inventory, f Fold) ground {
	g := ground{revision: f.Revision, pools: map[inventory.PoolID]map[string]struct{}{}}
	for pool, devices := range capacity.Members(inv, f.In, f.Classes...) {
		p := inv.Pools()[pool]
		hosts := map[string]struct{}{}
		for _, d := range devices {
			for _, h := range p.Devices[d].Hosts {
				hosts[h] = struct{}{}
			}
		}
		g.pools[p.ID] = hosts
	}
	return g
}

// recall adds what the fold stood on before. A usable pool says itself which hosts it has, but not for a fold that makes no
// sense: then a class may be missing that selects them.
func (g ground) recall(was ground, inv *inventory.Inventory, sound bool) {
	for id, hosts := range was.pools {
		if sound && inv.Pool(id).Usable() {
			continue
		}
		for h := range hosts {
			if node, known := inv.Host(h); !known || node.Blocked != nil && node.Blocked.Code == reason.HostMissing {
				continue
			}
			if g.pools[id] == nil {
				g.pools[id] = map[string]struct{}{}
			}
			g.pools[id][h] = struct{}{}
		}
	}
}

// add adds its hosts to a set.
func (g ground) add(to map[string]struct{}) {
	for _, hosts := range g.pools {
		maps.Copy(to, hosts)
	}
}
