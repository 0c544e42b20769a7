package placement

import (
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/reason"
)

// blocked is why one device cannot be used by itself.
type blocked struct {
	device *inventory.Device
	code   reason.Code
	// notes are clauses about hosts or the device, sorted as found.
	notes []reason.Evidence
	// owners hold the device or something that it needs.
	owners []string
	// shorts are the hosts that lack room, of many the first ones.
	shorts []*ledger.Shortage
	// ineligible is true when the pods, not the hardware, rule a host out.
	ineligible bool
}

// blocked checks one device against everything but the rest of the gang. Hardware comes first, then who holds it, then
// the room on its hosts: a reader fixes the first before the last matters.
func (s *search) blocked(d *inventory.Device, it *item, p *plan) *blocked {
	return blockedBy(d, it.req, p.set, s.world, s.trial)
}

func blockedBy(d *inventory.Device, req *gang.Request, set *gang.PodSet, w World, trial *ledger.Trial) *blocked {
	if d.Unusable != nil {
		return &blocked{device: d, code: d.Unusable.Code, notes: []reason.Evidence{*d.Unusable}}
	}
	if len(d.Hosts) == 0 {
		return &blocked{device: d, code: reason.HostMissing, notes: []reason.Evidence{{
			Kind: reason.KindDevice, Name: d.Short(), Code: reason.HostMissing, Detail: "matches no node",
		}}}
	}
	if b := taintedBy(d, req.Tolerations); b != nil {
		return b
	}
	if b := badHosts(d, set, w.Inventory); b != nil {
		return b
	}
	takes, fits := d.Share(req.Capacity)
	if !fits {
		return unserved(d, req.Capacity)
	}
	if o := obstacle(trial, d, takes); o != nil {
		b := &blocked{device: d, code: o.Code, owners: o.Owners}
		for _, h := range o.Hosts {
			b.notes = append(b.notes, reason.Evidence{Kind: reason.KindHost, Name: h, Code: o.Code, Detail: "may still run a pod that nobody can see"})
		}
		return b
	}
	var shorts []*ledger.Shortage
	for _, h := range d.Hosts {
		if short := trial.Shortage(h, set.Requests); short != nil && len(shorts) < maxEvidence {
			shorts = append(shorts, short)
		}
	}
	if len(shorts) > 0 {
		return &blocked{device: d, code: reason.HostsBusy, shorts: shorts}
	}
	return nil
}

func taintedBy(d *inventory.Device, tolerations []gang.Toleration) *blocked {
	for _, t := range d.Taints {
		if Tolerated(t, tolerations) {
			continue
		}
		return &blocked{device: d, code: reason.DeviceTainted, notes: []reason.Evidence{{
			Kind: reason.KindDevice, Name: d.Short(), Code: reason.DeviceTainted, Detail: taintText(t),
		}}}
	}
	return nil
}

func taintText(t inventory.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// Tolerated reports whether one of the tolerations bears the taint. It follows the resource API: an empty key or effect matches every one.
func Tolerated(t inventory.Taint, tolerations []gang.Toleration) bool {
	for _, tol := range tolerations {
		if tol.Effect != "" && tol.Effect != t.Effect || tol.Key != "" && tol.Key != t.Key {
			continue
		}
		if tol.Exists || tol.Value == t.Value {
			return true
		}
	}
	return false
}

// badHosts collects hosts that are blocked for everybody; hosts that only these pods may not use come second.
func badHosts(d *inventory.Device, set *gang.PodSet, inv *inventory.Inventory) *blocked {
	var b, ineligible *blocked
	for _, name := range d.Hosts {
		h, known := inv.Host(name)
		if !known {
			h.Blocked = &reason.Evidence{Kind: reason.KindHost, Name: name, Code: reason.HostMissing, Detail: "does not exist"}
		}
		if h.Blocked != nil {
			if b == nil {
				b = &blocked{device: d, code: h.Blocked.Code}
			}
			if b.code == h.Blocked.Code {
				b.notes = append(b.notes, *h.Blocked)
			}
			continue
		}
		if why, out := set.Ineligible[name]; out {
			if ineligible == nil {
				ineligible = &blocked{device: d, code: reason.HostUnusable, ineligible: true}
			}
			ineligible.notes = append(ineligible.notes, reason.Evidence{Kind: reason.KindHost, Name: name, Code: reason.HostUnusable, Detail: why})
		}
	}
	if b != nil {
		return b
	}
	return ineligible
}

// Recheck says why a decision could not be taken in the world any more, or nil. The world must not contain the gang
// itself. Pod sets and claims of the decision are matched to the gang's by name.
func Recheck(g gang.Gang, d Decision, w World) *reason.Refusal {
	trial := w.Ledger.Try()
	for _, ps := range d.PodSets {
		var set *gang.PodSet
		for i := range g.PodSets {
			if g.PodSets[i].Name == ps.Name {
				set = &g.PodSets[i]
			}
		}
		if set == nil {
			return refuse(reason.SliceLost, "pod set %s is not part of the gang any more", ps.Name)
		}
		if r := recheckSet(set, ps, w, trial); r != nil {
			return r
		}
	}
	return nil
}

func recheckSet(set *gang.PodSet, ps PodSet, w World, trial *ledger.Trial) *reason.Refusal {
	for _, c := range ps.Claims {
		for _, in := range c.Instances {
			for _, chosen := range in.Devices {
				if r := recheckDevice(set, c.PodClaim, chosen, w, trial); r != nil {
					return r
				}
			}
		}
	}
	for _, h := range ps.Hosts {
		if short := trial.Shortage(h, set.Requests); short != nil {
			return refuse(reason.SliceLost, "%s", shortText(short))
		}
		trial.Seat(h, set.Requests)
	}
	return nil
}

func recheckDevice(set *gang.PodSet, podClaim string, chosen Device, w World, trial *ledger.Trial) *reason.Refusal {
	p := w.Inventory.Pool(chosen.Pool)
	d := p.Device(chosen.Name)
	switch {
	case p == nil || d == nil:
		return refuse(reason.SliceLost, "device %s/%s is not published any more", chosen.Pool.Name, chosen.Name)
	case p.Problem != nil:
		return refuse(reason.SliceLost, "%s", p.Problem.Message)
	}
	req := &gang.Request{}
	for _, c := range set.Claims {
		for i := range c.Requests {
			if c.PodClaim == podClaim && c.Requests[i].Name == chosen.Request {
				req = &c.Requests[i]
			}
		}
	}
	// Room is counted once per pod, not per device, so it is left to the caller.
	withoutRoom := *set
	withoutRoom.Requests = map[string]int64{ledger.Pods: 0}
	if b := blockedBy(d, req, &withoutRoom, w, trial); b != nil {
		return refuse(reason.SliceLost, "device %s: %s", d.Short(), b.text())
	}
	takes, _ := d.Share(req.Capacity)
	take(trial, d, takes)
	return nil
}
