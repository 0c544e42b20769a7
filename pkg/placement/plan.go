package placement

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// Limits of a ResourceClaim and of the pod policy.
const (
	maxClaimsPerPod    = 8
	maxDevicesPerClaim = 32
)

// plan is what the pods of one pod set need: blocks of pods, each on one set of hosts. Where some claim is served by a
// device that spans several hosts, a block is one such device with one pod per host; else a block is one pod.
type plan struct {
	set    *gang.PodSet
	blocks int
	size   int // hosts of a block
	// items, the one that fixes the hosts of a block first.
	items []*item
}

// item is one request of one claim.
type item struct {
	claim, request int
	req            *gang.Request
	class          *inventory.Class
	span           int // hosts per device: plan.size or 1
	count          int // devices per claim
	// devices of the class that have the right span, in order.
	devices []*inventory.Device
	// shares is true when some of them may be allocated several times at once.
	shares bool
	// bond is how much it matters that they stand in one domain.
	bond bond
}

// needed is how many devices the whole pod set takes for the item.
func (p *plan) needed(it *item) int {
	if it.span > 1 {
		return p.blocks
	}
	return p.blocks * p.size * it.count
}

// planFor checks everything about a pod set that does not depend on what is taken.
func planFor(set *gang.PodSet, inv *inventory.Inventory) (*plan, *reason.Refusal) {
	if r := checkShape(set); r != nil {
		return nil, r
	}
	p := &plan{set: set, size: 1, blocks: set.Count}
	slices := max(1, set.Slices)
	for c := range set.Claims {
		for q := range set.Claims[c].Requests {
			req := &set.Claims[c].Requests[q]
			it := &item{claim: c, request: q, req: req, count: req.Count, class: inv.Class(req.Class)}
			if r := checkClass(it.class); r != nil {
				return nil, r
			}
			if r := it.fixSpan(set, slices); r != nil {
				return nil, r
			}
			it.shares = it.class.Shared(it.span)
			if it.span > 1 {
				p.size, p.blocks = it.span, slices
			}
			p.items = append(p.items, it)
		}
	}
	if r := p.checkSpans(); r != nil {
		return nil, r
	}
	if r := p.bind(); r != nil {
		return nil, r
	}
	p.lead()
	return p, nil
}

// lead puts the item first that decides where a block stands, which the others must follow: one whose devices span all
// hosts of it, and of those one that is bound to a domain, so that a search can go from domain to domain.
func (p *plan) lead() {
	best := -1
	for i, it := range p.items {
		if it.span == p.size && (best < 0 || p.items[best].bond == apart && it.bond != apart) {
			best = i
		}
	}
	p.items[0], p.items[best] = p.items[best], p.items[0]
}

func checkShape(set *gang.PodSet) *reason.Refusal {
	if set.Count <= 0 {
		return refuse(reason.CountMismatch, "there are %d pods to place, at least 1 is needed", set.Count)
	}
	if len(set.Claims) == 0 {
		return refuse(reason.Unsupported, "the pods have no claim for managed devices")
	}
	if len(set.Claims) > maxClaimsPerPod {
		return refuse(reason.TooManyClaims, "a pod has %d claims for managed devices, at most %d are possible", len(set.Claims), maxClaimsPerPod)
	}
	for _, c := range set.Claims {
		total := 0
		for _, q := range c.Requests {
			if q.Count <= 0 {
				return refuse(reason.Unsupported, "claim %s, request %s asks for %d devices, at least 1 is needed", c.PodClaim, q.Name, q.Count)
			}
			total += min(q.Count, maxDevicesPerClaim+1)
		}
		if total == 0 {
			return refuse(reason.Unsupported, "claim %s asks for no device", c.PodClaim)
		}
		if total > maxDevicesPerClaim {
			return refuse(reason.Unsupported, "claim %s asks for more than the %d devices that a ResourceClaim can hold", c.PodClaim, maxDevicesPerClaim)
		}
	}
	return nil
}

func checkClass(c *inventory.Class) *reason.Refusal {
	switch {
	case c.State == inventory.ClassEmpty && len(c.Withheld) > 0:
		return withheld(c)
	case c.State == inventory.ClassUnmanaged:
		return refuse(reason.ShapeUnknown, "DeviceClass %s selects no device of an AcceleratorPool", c.Name)
	case c.Unseen() != "":
		return refuse(reason.ShapeUnknown, "%s", c.Unseen())
	}
	if len(c.Devices) == 0 {
		return withheld(c)
	}
	return nil
}

// fixSpan decides which devices of the class serve the request: those that spread the pods evenly over the slices that
// were asked for, else those of a single host.
func (it *item) fixSpan(set *gang.PodSet, slices int) *reason.Refusal {
	per := 0
	if set.Count%slices == 0 {
		per = set.Count / slices
	}
	c := it.class
	switch {
	case per > 1 && len(c.OfSpan(per)) > 0 && it.count == 1:
		it.span, it.devices = per, c.OfSpan(per)
		if per > gang.MaxPodsPerClaim {
			return refuse(reason.TooManyPods, "%d pods would share one ResourceClaim of %s, at most %d can", per, it.class.Name, gang.MaxPodsPerClaim)
		}
		return nil
	case len(c.OfSpan(1)) > 0:
		it.span, it.devices = 1, c.OfSpan(1)
		return nil
	case len(c.Spans()) == 0:
		return it.unusable()
	case len(it.class.Withheld) > 0:
		// The fitting shape may be in there.
		return withheld(it.class)
	case c.ByLabel():
		return refuse(reason.HostMissing, "no %s stands on %d hosts now: its devices match their hosts by label and match %s",
			it.class.Name, max(per, 1), spans(c))
	case it.count > 1:
		return refuse(reason.Unsupported, "claim %s, request %s asks for %d devices of %s, which span several hosts: a claim can hold one of them",
			set.Claims[it.claim].PodClaim, it.req.Name, it.count, it.class.Name)
	}
	return it.misfit(set, slices)
}

// misfit words why the pods do not fill devices that all span several hosts.
func (it *item) misfit(set *gang.PodSet, slices int) *reason.Refusal {
	for _, hosts := range sortedSpans(it.class) {
		if set.Count%hosts != 0 {
			continue
		}
		need := set.Count / hosts
		shape := fmt.Sprintf("%s of %d hosts (%s)", counted(need, "slice"), hosts, it.class.Name)
		if set.Slices > 0 {
			return refuse(reason.CountMismatch, "%s need %s, and the annotation berth.dev/slices asks for %d",
				counted(set.Count, "pod"), shape, slices)
		}
		return refuse(reason.CountMismatch, "%s need %s: ask for a larger slice or set the annotation berth.dev/slices: %q on the pod template of the Job",
			counted(set.Count, "pod"), shape, strconv.Itoa(need))
	}
	return refuse(reason.NotDivisible, "%s cannot fill slices of %s (%s)", counted(set.Count, "pod"), spans(it.class), it.class.Name)
}

// unusable is the refusal when no device of the class can be reserved at all.
func (it *item) unusable() *reason.Refusal {
	for _, d := range it.class.Devices {
		if d.Unusable != nil {
			return refuse(d.Unusable.Code, "no %s can be reserved: %s", it.class.Name, d.Unusable.Detail)
		}
	}
	return refuse(reason.HostMissing, "no %s can be reserved: its devices match no node", it.class.Name)
}

// checkSpans makes sure that one claim is not shared by some pods for one request and private to a pod for another.
func (p *plan) checkSpans() *reason.Refusal {
	of := map[int]*item{}
	for _, it := range p.items {
		other, seen := of[it.claim]
		if seen && other.span != it.span {
			return refuse(reason.Unsupported, "claim %s asks for %s of %s and %s of %s: the devices of one claim must stand on the same hosts",
				p.set.Claims[it.claim].PodClaim, other.class.Name, counted(other.span, "host"), it.class.Name, counted(it.span, "host"))
		}
		of[it.claim] = it
	}
	return nil
}

// spans lists the host counts of devices: "2 hosts", "2 and 8 hosts".
func spans(c *inventory.Class) string {
	all := sortedSpans(c)
	text := ""
	for i, n := range all {
		switch {
		case i == 0:
			text = strconv.Itoa(n)
		case i == len(all)-1:
			text += " or " + strconv.Itoa(n)
		default:
			text += ", " + strconv.Itoa(n)
		}
	}
	if len(all) == 1 && all[0] == 1 {
		return text + " host"
	}
	return text + " hosts"
}

// sortedSpans puts the largest first, because fewer and larger slices are what a gang wants.
func sortedSpans(c *inventory.Class) []int {
	var all []int
	for _, s := range slices.Backward(c.Spans()) {
		all = append(all, s.Hosts)
	}
	return all
}
