package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// checkTogether refuses what can be proved without a search: companions that stand nowhere with the leading device, and
// hosts that take fewer pods than they have devices.
func (s *search) checkTogether(p *plan) *reason.Refusal {
	lead := p.items[0]
	for _, it := range p.items[1:] {
		if !meets(lead, it) {
			return refuse(reason.HostSetsDiffer, "no %s stands on the hosts of a %s: the devices of one pod must share its host",
				it.class.Name, lead.class.Name)
		}
	}
	if p.size > 1 {
		return s.checkDomains(p)
	}
	// What several claims of a pod choose from the same devices is counted together.
	perPod := make([]int, len(p.items))
	for i, it := range p.items {
		for _, o := range p.items {
			if s.alike(it, o) {
				perPod[i] += o.count
			}
		}
	}
	seats := 0
	var tight *reason.Refusal
	for _, host := range s.world.Inventory.Hosts() {
		fit := -1
		for i, it := range p.items {
			have := s.options[it].places(s.options[it].onHost[host]) / perPod[i]
			if fit < 0 || have < fit {
				fit = have
			}
		}
		if fit <= 0 {
			continue
		}
		if room := s.world.Ledger.Room(host, p.set.Requests); room < fit {
			fit = room
			if tight == nil {
				tight = s.tight(host, room, p)
			}
		}
		seats += fit
	}
	if seats >= p.set.Count {
		return s.checkDomains(p)
	}
	if why := s.never(p); why != nil {
		return why
	}
	if tight != nil {
		tight.Message = clamp(fmt.Sprintf("%s a device and room, %d %s needed: %s", find(seats), p.set.Count, are(p.set.Count), tight.Message))
		return tight
	}
	whose := "their"
	if seats == 1 {
		whose = "its"
	}
	return refuse(reason.NoFreeSlice, "devices are free, but not together: %s all %s devices on one host, %d %s needed (%s)",
		find(seats), whose, p.set.Count, are(p.set.Count), strings.Join(p.classes(), ", "))
}

// find counts pods that do: "1 pod finds", "2 pods find".
func find(pods int) string {
	if pods == 1 {
		return "1 pod finds"
	}
	return counted(pods, "pod") + " find"
}

// alike reports whether two items of a plan choose from the same devices. Shared devices may serve several at once, so
// they are never counted together.
func (s *search) alike(a, b *item) bool {
	return a == b || a.class == b.class && a.span == b.span && a.bond == b.bond && !a.shares && slices.Equal(s.options[a].all, s.options[b].all)
}

// tight words which resource ends first when one more pod than there is room for stands on the host.
func (s *search) tight(host string, room int, p *plan) *reason.Refusal {
	trial := s.world.Ledger.Try()
	for range room {
		trial.Seat(host, p.set.Requests)
	}
	short := trial.Shortage(host, p.set.Requests)
	if short == nil {
		return nil
	}
	return &reason.Refusal{Code: reason.HostsBusy, Message: shortText(short), Evidence: lacking(short).evidence()}
}

// meets reports whether some device of the companion could ever stand with some leading device.
func meets(lead, it *item) bool {
	at := map[string]bool{}
	for _, d := range it.devices {
		at[key(it, d)] = true
	}
	for _, d := range lead.devices {
		if it.span > 1 {
			if at[hostsKey(d.Hosts)] {
				return true
			}
			continue
		}
		all := true
		for _, h := range d.Hosts {
			all = all && at[h]
		}
		if all {
			return true
		}
	}
	return false
}

func key(it *item, d *inventory.Device) string {
	if it.span > 1 {
		return hostsKey(d.Hosts)
	}
	return d.Hosts[0]
}

// notTogether is the refusal after a search: each need can be met by itself. What could never be met is said first.
func (s *search) notTogether() *reason.Refusal {
	var needs []string
	for _, p := range s.plans {
		if why := s.never(p); why != nil {
			return why
		}
		prefix := ""
		if len(s.plans) > 1 {
			prefix = "pod set " + p.set.Name + " "
		}
		for i, it := range p.items {
			// What several claims ask for of the same devices is one need.
			like := func(o *item) bool { return s.alike(it, o) }
			if slices.ContainsFunc(p.items[:i], like) {
				continue
			}
			needed := 0
			for _, o := range p.items[i:] {
				if like(o) {
					needed += p.needed(o)
				}
			}
			need := fmt.Sprintf("%sneeds %d of %d free %s", prefix, needed, s.options[it].total, it.class.Name)
			if it.bond == required {
				need += " in one " + it.noun()
			}
			needs = append(needs, need)
		}
	}
	tail := ""
	if s.exhausted {
		tail = " (not every combination was tried)"
	}
	return refuse(reason.NoFreeSlice, "devices are free, but not together%s: %s", tail, strings.Join(needs, ", "))
}

func (p *plan) classes() []string {
	var names []string
	for _, it := range p.items {
		names = append(names, it.class.Name)
	}
	return names
}
