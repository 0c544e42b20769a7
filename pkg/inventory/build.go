package inventory

import (
	"cmp"
	"slices"
)

// Input is what an Inventory is built from, in no particular order.
type Input struct {
	Hosts   []Host
	Pools   []*Pool
	Classes []ClassMatch
}

// ClassMatch is what a DeviceClass selects.
type ClassMatch struct {
	Name string
	// Problem is an error of its selectors on managed devices, for people.
	Problem string
	// Unmanaged is true when it also, or only, selects devices outside every AcceleratorPool.
	Unmanaged bool
	// Devices selected in managed pools.
	Devices []DeviceName
}

// DeviceName names a device.
type DeviceName struct {
	Pool PoolID
	Name string
}

// Inventory is everything that exists. It never changes after Build.
type Inventory struct {
	hosts   map[string]*Host
	hostAt  map[string]int32
	names   []string
	pools   []*Pool
	pool    map[PoolID]*Pool
	classes map[string]*Class
	at      map[PoolID]int
	states  []State
	domains []DomainMembers
}

// Build puts an Inventory together. Of two hosts or pools with the same name the first one counts.
func Build(in Input) *Inventory {
	inv := &Inventory{hosts: make(map[string]*Host, len(in.Hosts)), hostAt: make(map[string]int32, len(in.Hosts)), pool: make(map[PoolID]*Pool, len(in.Pools)), classes: map[string]*Class{}, at: make(map[PoolID]int, len(in.Pools))}
	for i := range in.Hosts {
		h := in.Hosts[i]
		if _, twice := inv.hosts[h.Name]; !twice {
			inv.hosts[h.Name] = &h
			inv.names = append(inv.names, h.Name)
		}
	}
	slices.SortFunc(inv.names, Natural)
	for i, name := range inv.names {
		inv.hostAt[name] = int32(i)
	}
	for _, p := range in.Pools {
		if _, twice := inv.pool[p.ID]; !twice {
			inv.pool[p.ID] = p
			inv.pools = append(inv.pools, p)
		}
	}
	slices.SortFunc(inv.pools, func(a, b *Pool) int { return ComparePools(a.ID, b.ID) })
	for i, p := range inv.pools {
		inv.at[p.ID] = i
		inv.states = append(inv.states, inv.state(p))
	}
	inv.joinDomains()
	for _, m := range in.Classes {
		if _, twice := inv.classes[m.Name]; !twice {
			inv.classes[m.Name] = inv.class(m)
		}
	}
	return inv
}

// ComparePools orders pools by driver, then by name in natural order.
func ComparePools(a, b PoolID) int {
	return cmp.Or(cmp.Compare(a.Driver, b.Driver), Natural(a.Name, b.Name))
}

// Pools returns every managed pool, in order. The caller must not change the result.
func (inv *Inventory) Pools() []*Pool { return inv.pools }

// Pool returns the managed pool of that name, or nil.
func (inv *Inventory) Pool(id PoolID) *Pool { return inv.pool[id] }

// Device returns the managed device of that name, or nil. It may belong to a pool with a Problem.
func (inv *Inventory) Device(id PoolID, name string) *Device { return inv.pool[id].Device(name) }

// Host returns the host of that name: a Node, or a name that some device gives and no Node has.
func (inv *Inventory) Host(name string) (Host, bool) {
	h, ok := inv.hosts[name]
	if !ok {
		return Host{}, false
	}
	return *h, true
}

// Hosts returns the names of all hosts in natural order. The caller must not change the result.
func (inv *Inventory) Hosts() []string { return inv.names }

// HostPosition is where a host stands in Hosts, or false when nobody knows it.
func (inv *Inventory) HostPosition(name string) (int, bool) {
	at, ok := inv.hostAt[name]
	return int(at), ok
}

// Allocatable of a host by resource name, in thousandths; nil for a host that nobody knows. The caller must not change it.
func (inv *Inventory) Allocatable(host string) map[string]int64 {
	if h, ok := inv.hosts[host]; ok {
		return h.Allocatable
	}
	return nil
}
