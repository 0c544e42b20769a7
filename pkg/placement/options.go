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
}

// narrow computes an item's options.
func (s *search) narrow(p *plan, it *item) (*options, []*blocked) {
	o := &options{}
	var out []*blocked
	for _, d := range it.devices {
		if b := s.blocked(d, it, p); b != nil {
			out = append(out, b)
			continue
		}
		o.all = append(o.all, d)
	}
	if s.rank != nil {
		s.rank(o.all)
	}
	s.index(it, o)
	return o, out
}

// index finds options by where they stand.
func (s *search) index(it *item, o *options) {
	o.onHost, o.onHosts, o.in, o.domain = map[string][]int{}, map[string][]int{}, map[int32][]int{}, o.domain[:0]
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
	}
}

func hostsKey(hosts []string) string {
	sorted := slices.Clone(hosts)
	slices.Sort(sorted)
	return strings.Join(sorted, ",")
}
