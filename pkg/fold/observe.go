package fold

import (
	"slices"

	"github.com/berth-dev/berth/pkg/capacity"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/reason"
)

// Gangs are the gangs that Kueue charges to the fold's targets and that hold devices of the fold, in shares.
type Gangs struct {
	// Held is what all of them hold, those included whose devices are being released.
	Held int
	// Running is what those hold that Kueue still admits, and Charged what it charges to them. It charges less than they
	// hold when some of their pods have succeeded.
	Running, Charged int
}

// Observation is the hardware of a fold at one moment, in shares.
type Observation struct {
	// Usable is a largest set of sound devices, held or not, that can be held at the same time; Free the same of free ones.
	Usable, UsableAtMost int
	Free, FreeAtMost     int
	Gangs
	// Proved is false when a budget ended a search, so that some AtMost is above what was found.
	Proved bool
}

// Observe counts the hardware of a fold that makes sense. The ledger's inventory is the one it was compiled on.
func (c *Compiled) Observe(calculate *capacity.Calculator, inv *inventory.Inventory, l *ledger.Ledger, gangs Gangs) Observation {
	all := calculate.In(inv, l, c.In, c.Classes...)
	free := all
	if !slices.Equal(c.Classes, c.Counted) {
		free = calculate.In(inv, l, c.In, c.Counted...)
	}
	return Observation{
		Usable: all.Whole, UsableAtMost: all.WholeAtMost, Free: free.Together, FreeAtMost: free.AtMost,
		Gangs: gangs, Proved: all.WholeProved && free.Proved,
	}
}

// Hardware is what the hardware can serve, between what was found and what it cannot exceed. Live counts a running gang's
// devices and the free ones. Those of a gang that is being released belong to nobody yet, but come back in a moment; they are
// left out, and the hysteresis bridges the gap.
func (o Observation) Hardware(live bool) (atLeast, atMost int) {
	if !live {
		return o.Usable, o.UsableAtMost
	}
	return o.Running + o.Free, o.Running + o.FreeAtMost
}

// Uncharged is what running gangs hold although Kueue charges for it no more: hardware that nobody can have. It is taken off
// at once, without hysteresis, because Kueue gives such quota away at once.
func (o Observation) Uncharged(live bool) int {
	if !live {
		return 0
	}
	return max(0, o.Running-o.Charged)
}

// Losses says what keeps published devices of the fold out of use, each host, device or pool once and in order: hosts first.
// Classes that nothing is published of come last.
func (c *Compiled) Losses(inv *inventory.Inventory, l *ledger.Ledger) []reason.Evidence {
	var pools, devices, classes []reason.Evidence
	hosts := map[string]reason.Evidence{}
	withheld := map[inventory.PoolID]bool{}
	for _, name := range c.Classes {
		class := inv.Class(name)
		if class.State == inventory.ClassEmpty && len(class.Withheld) == 0 {
			classes = append(classes, reason.Evidence{Kind: reason.KindClass, Name: name, Code: reason.ShapeUnknown})
		}
		for _, p := range class.Withheld {
			if c.In(p.ID) && !withheld[p.ID] {
				withheld[p.ID] = true
				pools = append(pools, reason.Evidence{Kind: reason.KindPool, Name: p.ID.Name, Code: p.Problem.Code, Detail: p.Problem.Message})
			}
		}
	}
	members := capacity.Members(inv, c.In, c.Classes...)
	for at, p := range inv.Pools() {
		for _, d := range members[at] {
			device := p.Devices[d]
			for _, t := range device.Taints {
				devices = append(devices, reason.Evidence{
					Kind: reason.KindDevice, Name: device.Short(), Code: reason.DeviceTainted, Detail: taint(t),
				})
				break
			}
			for _, name := range device.Hosts {
				if _, seen := hosts[name]; seen {
					continue
				}
				if h, known := inv.Host(name); !known {
					hosts[name] = reason.Evidence{Kind: reason.KindHost, Name: name, Code: reason.HostMissing}
				} else if h.Blocked != nil {
					hosts[name] = *h.Blocked
				} else if l.Quarantined(name) {
					hosts[name] = reason.Evidence{Kind: reason.KindHost, Name: name, Code: reason.Quarantined}
				}
			}
		}
	}
	lost := make([]reason.Evidence, 0, len(hosts)+len(devices)+len(pools))
	for _, e := range hosts {
		lost = append(lost, e)
	}
	slices.SortFunc(lost, func(a, b reason.Evidence) int { return inventory.Natural(a.Name, b.Name) })
	return slices.Concat(lost, devices, pools, classes)
}

func taint(t inventory.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}
