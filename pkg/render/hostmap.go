package render

import (
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// MapReport is who holds what, host by host.
type MapReport struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Pools      []PoolMap `json:"pools"`
	// Holders in order of their letters.
	Holders []Holder `json:"holders"`
	// Warnings and Errors are as in FitReport.
	Warnings []string `json:"warnings"`
	Errors   []string `json:"errors"`
}

// PoolMap is one DRA pool.
type PoolMap struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	// Columns of the grid in which the hosts stand row by row; 0 when they have no positions.
	Columns int `json:"columns"`
	// Domains are the hosts in rank order: all of them where there is a grid, else those that devices tie together.
	Domains [][]HostMap `json:"domains"`
}

// HostState is what can be done with a host.
type HostState string

// States of a host.
const (
	// HostFree: nothing on it is held.
	HostFree HostState = "Free"
	// HostHeld: some device on it is held.
	HostHeld HostState = "Held"
	// HostOverdrawn: more is held on it than there is.
	HostOverdrawn HostState = "Overdrawn"
	// HostQuarantined: it may still run a pod that nobody can see.
	HostQuarantined HostState = "Quarantined"
	// HostUnusable: it is missing, not Ready or cordoned, or its pool cannot be used.
	HostUnusable HostState = "Unusable"
)

// HostMap is one host of one pool.
type HostMap struct {
	Name  string    `json:"name"`
	State HostState `json:"state"`
	// Domain of the interconnect that its devices belong to, such as "rack a"; empty when they belong to none, or to several.
	Domain string `json:"domain"`
	// Holders are letters of MapReport.Holders.
	Holders []string `json:"holders"`
	// Devices of this host alone, and how many of them are free; both 0 where the pool has devices of several hosts.
	Devices int `json:"devices"`
	Free    int `json:"free"`
}

// Holder is a reservation, claim or gang that holds devices.
type Holder struct {
	Letter string `json:"letter"`
	// Name is namespace/name.
	Name string `json:"name"`
	// Devices are <pool>/<device>.
	Devices []string `json:"devices"`
	Hosts   []string `json:"hosts"`
}

// NewMapReport draws everything that exists and who holds it.
func NewMapReport(inv *inventory.Inventory, l *ledger.Ledger, warnings, errors []string) MapReport {
	r := MapReport{
		APIVersion: APIVersion, Kind: "MapReport", Pools: []PoolMap{}, Holders: []Holder{}, Warnings: full(warnings), Errors: full(errors),
	}
	if inv == nil {
		return r
	}
	m := mapper{inv: inv, ledger: l, held: map[spot][]string{}, over: map[spot]bool{}}
	r.Holders = m.holders()
	for _, p := range inv.Pools() {
		r.Pools = append(r.Pools, m.pool(p))
	}
	return r
}

type spot struct {
	pool inventory.PoolID
	host string
}

type mapper struct {
	inv    *inventory.Inventory
	ledger *ledger.Ledger
	// held are the letters at a spot, over the spots under an overdrawn device or counter.
	held map[spot][]string
	over map[spot]bool
}

// holders names everybody who holds something, in order of their names, and notes where.
func (m *mapper) holders() []Holder {
	of := map[string]*Holder{}
	var names []string
	holdings := m.ledger.Holdings()
	for _, h := range holdings {
		if of[h.Owner] == nil {
			of[h.Owner] = &Holder{Name: h.Owner}
			names = append(names, h.Owner)
		}
	}
	slices.SortFunc(names, inventory.Natural)
	for i, name := range names {
		of[name].Letter = letter(i)
	}
	overdrawn := map[inventory.PoolID][]string{}
	for _, o := range m.ledger.Overdrawn() {
		overdrawn[o.Pool] = append(overdrawn[o.Pool], o.Owners...)
	}
	on := map[spot]int{}
	for _, h := range holdings {
		holder := of[h.Owner]
		hosts := h.Hosts
		if d := m.inv.Device(h.Pool, h.Device); d != nil {
			hosts = d.Hosts
		} else if p := m.inv.Pool(h.Pool); len(hosts) == 0 && p != nil {
			// A device that is published no more, and nobody knows where it stood: the ledger gives out nothing of its pool.
			hosts = p.Plan().Hosts()
		}
		holder.Devices = append(holder.Devices, h.Pool.Name+"/"+h.Device)
		holder.Hosts = append(holder.Hosts, hosts...)
		for _, host := range hosts {
			at := spot{h.Pool, host}
			if !slices.Contains(m.held[at], holder.Letter) {
				m.held[at] = append(m.held[at], holder.Letter)
			}
			if slices.Contains(overdrawn[h.Pool], h.Owner) {
				on[at]++
				m.over[at] = on[at] > 1
			}
		}
	}
	out := make([]Holder, 0, len(names))
	for _, name := range names {
		h := of[name]
		slices.SortFunc(h.Hosts, inventory.Natural)
		h.Hosts = full(slices.Compact(h.Hosts))
		out = append(out, *h)
	}
	return out
}

func (m *mapper) pool(p *inventory.Pool) PoolMap {
	l := layoutOf(p)
	out := PoolMap{Driver: p.ID.Driver, Pool: p.ID.Name, Columns: l.columns, Domains: [][]HostMap{}}
	groups := [][]string{l.hosts}
	if l.columns == 0 {
		groups = domains(p, l.hosts)
	}
	in := domainsOf(p)
	single := map[string][]*inventory.Device{}
	for _, d := range p.Devices {
		if len(d.Hosts) > 1 {
			single = nil
			break
		}
		for _, h := range d.Hosts {
			single[h] = append(single[h], d)
		}
	}
	for _, hosts := range groups {
		var domain []HostMap
		for _, h := range hosts {
			host := m.host(p, h, single[h])
			host.Domain = in[h]
			domain = append(domain, host)
		}
		if len(domain) > 0 {
			out.Domains = append(out.Domains, domain)
		}
	}
	return out
}

// domainsOf names the one domain that the devices on each host belong to. Devices of several hosts that have none say
// nothing of theirs.
func domainsOf(p *inventory.Pool) map[string]string {
	in, several := map[string]string{}, map[string]bool{}
	for _, d := range p.Devices {
		if !d.Domain.Known() {
			continue
		}
		name := d.Domain.String()
		for _, h := range d.Hosts {
			several[h] = several[h] || in[h] != "" && in[h] != name
			in[h] = name
		}
	}
	for h := range several {
		if several[h] {
			delete(in, h)
		}
	}
	return in
}

func (m *mapper) host(p *inventory.Pool, name string, devices []*inventory.Device) HostMap {
	at := spot{p.ID, name}
	out := HostMap{Name: name, State: HostFree, Holders: full(m.held[at]), Devices: len(devices)}
	host, known := m.inv.Host(name)
	switch {
	case m.over[at]:
		out.State = HostOverdrawn
	case len(out.Holders) > 0:
		out.State = HostHeld
	case m.ledger.Quarantined(name):
		out.State = HostQuarantined
	case !p.Usable() || !known || host.Blocked != nil:
		out.State = HostUnusable
	}
	for _, d := range devices {
		if p.Usable() && known && host.Blocked == nil && d.Unusable == nil && len(d.Taints) == 0 && m.ledger.Free(d) {
			out.Free++
		}
	}
	return out
}

// letter counts a to z, then aa, ab and so on.
func letter(i int) string {
	text := ""
	for ; i >= 0; i = i/26 - 1 {
		text = string(rune('a'+i%26)) + text
	}
	return text
}
