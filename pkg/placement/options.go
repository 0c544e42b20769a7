package placement

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/inventory"
)

// options are the devices that an item may use, each by itself, before the gang took anything.
type options struct {
	all     []*inventory.Device
	onHost  map[string][]int
	onHosts map[string][]int
	// domain of each, and the options of each domain; only for items with a bond.
	domain []int32
	in     map[int32][]int
	// copies is how many pods each can serve: 1, or of a shared device how many shares are left; total is their sum.
	copies []int
	total  int
	// takes is what a share of each takes.
	takes [][]inventory.Amount
}

// narrow computes an item's options. The other devices are either held or out for a reason of their own.
func (s *search) narrow(p *plan, it *item) (*options, []*blocked, []heldBy) {
	o := &options{}
	var out []*blocked
	held, skip := s.held(p, it)
	for i, d := range it.devices {
		if skip != nil && skip[i] {
			continue
		}
		if b := s.blocked(d, it, p); b != nil {
			out = append(out, b)
			continue
		}
		o.all = append(o.all, d)
	}
	if s.rank != nil {
		s.rank(o.all)
	}
	s.index(p, it, o)
	for _, n := range o.copies {
		o.total += n
	}
	return o, out, held
}

// index finds options by where they stand.
func (s *search) index(p *plan, it *item, o *options) {
	o.onHost, o.onHosts, o.in, o.domain = map[string][]int{}, map[string][]int{}, map[int32][]int{}, o.domain[:0]
	o.copies, o.takes = o.copies[:0], o.takes[:0]
	for i, d := range o.all {
		if it.span == 1 {
			o.onHost[d.Hosts[0]] = append(o.onHost[d.Hosts[0]], i)
		} else {
			o.onHosts[hostsKey(d.Hosts)] = append(o.onHosts[hostsKey(d.Hosts)], i)
		}
		domain := int32(-1)
		if it.bond != apart {
			domain = domainOf(s.world.Inventory, d)
			o.in[domain] = append(o.in[domain], i)
		}
		o.domain = append(o.domain, domain)
		copies := 1
		var takes []inventory.Amount
		if d.Shared {
			takes, _ = d.Share(it.req.Capacity)
			copies = s.world.Ledger.Shares(d, takes, p.blocks*p.size)
		}
		o.copies, o.takes = append(o.copies, copies), append(o.takes, takes)
	}
}

// places is how many pods these options can serve.
func (o *options) places(indexes []int) int {
	n := 0
	for _, i := range indexes {
		n += o.copies[i]
	}
	return n
}

func hostsKey(hosts []string) string {
	sorted := slices.Clone(hosts)
	slices.Sort(sorted)
	return strings.Join(sorted, ",")
}
