package placement

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/reason"
)

// outright gives devices that are taken, or whose hosts have no room now, the reason that outlasts it: a host that is too
// small for one of the pods when nobody else is on it. It is asked for refusals only.
func (s *search) outright(p *plan, out []*blocked) []*blocked {
	if everyHostLarge(s.world.Inventory, p.set.Requests) {
		return out
	}
	for i, b := range out {
		if b.code != reason.NoFreeSlice && b.code != reason.HostsBusy && b.code != reason.Quarantined {
			continue
		}
		var notes []reason.Evidence
		for _, host := range b.device.Hosts {
			if why := hostTooSmall(s.world.Inventory, host, p.set.Requests); why != "" {
				notes = append(notes, reason.Evidence{Kind: "host", Name: host, Code: reason.HostUnusable, Detail: why})
			}
		}
		if len(notes) > 0 {
			out[i] = &blocked{device: b.device, code: reason.HostUnusable, ineligible: true, notes: notes}
		}
	}
	return out
}

// everyHostLarge reports whether every host that is in use could take one pod if it were empty, which is so almost always.
func everyHostLarge(inv *inventory.Inventory, requests map[string]int64) bool {
	for name, needs := range requests {
		if needs > 0 && needs > inv.Least(name) {
			return false
		}
	}
	return true
}

// hostTooSmall names the first resource by name of which the host has less in all than one pod needs; empty when there is none.
func hostTooSmall(inv *inventory.Inventory, host string, requests map[string]int64) string {
	allocatable := inv.Allocatable(host)
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if needs, has := requests[name], allocatable[name]; needs > has && needs > 0 {
			return fmt.Sprintf("has %s %s in all, a pod needs %s", amount(name, has), name, amount(name, needs))
		}
	}
	return ""
}

// never refuses a pod set whose claims exclude each other: an item finds no device beside the leading one, whichever that
// is, even when nothing else is taken. It is nil when that is not proved; a pool that cannot be read now may hold more.
func (s *search) never(p *plan) *reason.Refusal {
	lead := p.items[0]
	trial := ledger.New(s.world.Inventory).Try()
	for _, it := range p.items[1:] {
		if len(lead.class.Withheld)+len(it.class.Withheld) == 0 && !beside(trial, lead, it) {
			where := "host"
			if lead.span > 1 {
				where = "set of hosts"
			}
			return refuse(reason.HostSetsDiffer, "%s and %s exclude each other: no %s offers a pod both, even with nothing taken",
				p.ask(lead), p.ask(it), where)
		}
	}
	return nil
}

// beside reports whether some leading device leaves the item a device on each of its hosts.
func beside(trial *ledger.Trial, lead, it *item) bool {
	at := map[string][]*inventory.Device{}
	for _, d := range it.devices {
		at[key(it, d)] = append(at[key(it, d)], d)
	}
	free := func(d *inventory.Device) bool {
		takes, serves := d.Share(it.req.Capacity)
		return serves && obstacle(trial, d, takes) == nil
	}
	for _, d := range lead.devices {
		takes, serves := d.Share(lead.req.Capacity)
		if !serves {
			continue
		}
		places := d.Hosts
		if it.span > 1 {
			places = []string{hostsKey(d.Hosts)}
		}
		take(trial, d, takes)
		all := !slices.ContainsFunc(places, func(place string) bool { return !slices.ContainsFunc(at[place], free) })
		drop(trial, d, takes)
		if all {
			return true
		}
	}
	return false
}

// ask names the request of an item for people: "claim tpu (tpu-4x4)".
func (p *plan) ask(it *item) string {
	claim := p.set.Claims[it.claim]
	if len(claim.Requests) > 1 {
		return fmt.Sprintf("claim %s, request %s (%s)", claim.PodClaim, it.req.Name, it.class.Name)
	}
	return fmt.Sprintf("claim %s (%s)", claim.PodClaim, it.class.Name)
}
