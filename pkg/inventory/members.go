package inventory

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/berth-dev/berth/pkg/reason"
)

// Members are devices of one class in one pool that stand on the same number of hosts.
type Members struct {
	// Pool is the position in Inventory.Pools.
	Pool int
	// Span is the number of hosts of each device.
	Span int
	// Devices are positions in the pool, in ascending order.
	Devices []int32
}

// Span is how many hosts devices of a class stand on, and which do.
type Span struct {
	Hosts   int
	Devices []*Device
	// Shared is true when some of them may be allocated several times at once.
	Shared bool
	// Tied is true when an AcceleratorPool of some of them names an interconnect.
	Tied bool
}

// Spans lists the devices of the class that can be reserved by their number of hosts, the smallest first.
func (c *Class) Spans() []Span { return c.spans }

// OfSpan are the devices of the class that can be reserved and stand on that many hosts.
func (c *Class) OfSpan(hosts int) []*Device {
	i, found := slices.BinarySearchFunc(c.spans, hosts, func(s Span, hosts int) int { return cmp.Compare(s.Hosts, hosts) })
	if !found {
		return nil
	}
	return c.spans[i].Devices
}

// Shared reports whether some device of the class with that many hosts may be allocated several times at once.
func (c *Class) Shared(hosts int) bool {
	i, found := slices.BinarySearchFunc(c.spans, hosts, func(s Span, hosts int) int { return cmp.Compare(s.Hosts, hosts) })
	return found && c.spans[i].Shared
}

// Tied reports whether an AcceleratorPool of some device of the class with that many hosts names an interconnect.
func (c *Class) Tied(hosts int) bool {
	i, found := slices.BinarySearchFunc(c.spans, hosts, func(s Span, hosts int) int { return cmp.Compare(s.Hosts, hosts) })
	return found && c.spans[i].Tied
}

// ByLabel reports whether some device of the class that can be reserved matches its hosts by label.
func (c *Class) ByLabel() bool { return c.byLabel }

func (c *Class) count(inv *Inventory) {
	from := 0
	for _, d := range c.Devices {
		if d.Unusable != nil || len(d.Hosts) == 0 {
			continue
		}
		c.byLabel = c.byLabel || d.ByLabel
		i, found := slices.BinarySearchFunc(c.spans, len(d.Hosts), func(s Span, hosts int) int { return cmp.Compare(s.Hosts, hosts) })
		if !found {
			c.spans = slices.Insert(c.spans, i, Span{Hosts: len(d.Hosts)})
		}
		c.spans[i].Devices = append(c.spans[i].Devices, d)
		c.spans[i].Shared = c.spans[i].Shared || d.Shared
		c.spans[i].Tied = c.spans[i].Tied || d.Domain.Named()

		at := inv.at[d.Pool]
		position, ok := inv.pools[at].Plan().Position(d)
		if !ok {
			continue
		}
		if from == len(c.Members) || c.Members[from].Pool != at {
			from = len(c.Members)
		}
		m := from
		for m < len(c.Members) && c.Members[m].Span != len(d.Hosts) {
			m++
		}
		if m == len(c.Members) {
			c.Members = append(c.Members, Members{Pool: at, Span: len(d.Hosts)})
		}
		c.Members[m].Devices = append(c.Members[m].Devices, int32(position))
	}
	for i := range c.Members {
		m := &c.Members[i]
		h := maphash.Comparable(seed, membersKey{c.Name, m.Span, len(m.Devices)})
		for _, d := range m.Devices {
			h = h*31 + uint64(d)
		}
		inv.states[m.Pool].classes += mix(h)
	}
}

type membersKey struct {
	class         string
	span, devices int
}

type faultKey struct {
	host   int
	code   reason.Code
	detail string
}

// seed makes fingerprints comparable within one process; they are never stored.
var seed = maphash.MakeSeed()

func mix(h uint64) uint64 { return maphash.Comparable(seed, h) }

// State is what keeps devices of one pool out of use for every gang, whatever is taken.
type State struct {
	// Off by position: the device cannot be reserved, matches no node, is tainted, or one of its hosts is blocked.
	Off []bool
	// Fingerprint of Off: equal for equal contents within one process.
	Fingerprint uint64
	// Faults is a fingerprint of why hosts are blocked, which changes what is said of their devices and nothing else.
	Faults uint64
	// Hosts are the positions in Inventory.Hosts of the plan's hosts, -1 for one that nobody knows.
	Hosts   []int32
	classes uint64
	// domains by position, nil when no device of the pool belongs to one; common is one of them, noDomain or scattered.
	domains []int32
	common  int32
}

// Classes is a fingerprint of which classes select which devices of the pool.
func (s *State) Classes() uint64 { return s.classes }

// State of the pool at a position in Pools. The caller must not change it.
func (inv *Inventory) State(pool int) *State { return &inv.states[pool] }

// Position of a pool in Pools, or false when it is not managed.
func (inv *Inventory) Position(id PoolID) (int, bool) {
	at, ok := inv.at[id]
	return at, ok
}

func (inv *Inventory) state(p *Pool) State {
	pl := p.Plan()
	s := State{Off: make([]bool, len(p.Devices)), Hosts: make([]int32, len(pl.Hosts()))}
	for i, d := range p.Devices {
		s.Off[i] = !p.Usable() || d.Unusable != nil || len(d.Hosts) == 0 || len(d.Taints) > 0
	}
	for h, name := range pl.Hosts() {
		at, known := inv.hostAt[name]
		if s.Hosts[h] = at; !known {
			s.Hosts[h] = -1
		}
		if host := inv.hosts[name]; host == nil || host.Blocked != nil {
			if host != nil {
				s.Faults += maphash.Comparable(seed, faultKey{h, host.Blocked.Code, host.Blocked.Detail})
			}
			for _, d := range pl.On(h) {
				s.Off[d] = true
			}
		}
	}
	for i, off := range s.Off {
		if off {
			s.Fingerprint += mix(uint64(i) + 1)
		}
	}
	return s
}
