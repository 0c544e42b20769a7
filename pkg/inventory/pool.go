package inventory

import "github.com/berth-dev/berth/pkg/reason"

// Pool is one DRA pool at its newest generation. It never changes after NewPool.
type Pool struct {
	ID         PoolID
	Generation int64
	// Slices are the names of the ResourceSlices of that generation.
	Slices []string
	// Problem says why nothing of the pool may be given out: PoolIncomplete, PoolInvalid or GateOff. Nil when the pool
	// is complete and valid.
	Problem *reason.Refusal
	// Counters in order of counter set and name. A ledger keeps what is left of them under the same index.
	Counters []Counter
	// Devices in natural order of their names. A pool with a Problem lists what could be read; nobody may offer it.
	Devices []*Device

	device  map[string]*Device
	counter map[counterName]int
	plan    *Plan
}

// Counter is one counter of a pool.
type Counter struct {
	Set, Name string
	// Milli is its total in thousandths of its unit.
	Milli int64
}

type counterName struct{ set, name string }

// Device is one entry that a driver publishes. It may span several hosts.
type Device struct {
	Pool       PoolID
	Generation int64
	Name       string
	// Charge is what the device consumes, in order of counter set and counter, one entry per counter and none of zero.
	Charge []Charge
	// Hosts are the names of the nodes that the device should stand on, in rank order, whether or not they exist.
	Hosts []string
	// ByLabel is true when Hosts are the nodes that match a selector today. Their number then says nothing about how
	// many there should be.
	ByLabel bool
	// Taints are the device's own and those of devices that it wholly contains. Only effects that keep gangs away are
	// listed: NoSchedule and NoExecute.
	Taints []Taint
	// Unusable says why Berth never reserves this device; nil for most.
	Unusable *reason.Evidence
	// Shared is true when the device may be allocated several times at once. Each time takes a share of its capacities, and
	// all together consume its Charge once.
	Shared bool
	// Capacity in order of names.
	Capacity []Capacity
	// Domain of the pool's interconnect that the device belongs to.
	Domain Domain
	// Attributes are for messages and maps: values as text by qualified name.
	Attributes map[string]string
}

// ID is driver/pool/device.
func (d *Device) ID() string { return d.Pool.String() + "/" + d.Name }

// Short is pool/device, as people call it.
func (d *Device) Short() string { return d.Pool.Name + "/" + d.Name }

// Device returns the device of that name, or nil.
func (p *Pool) Device(name string) *Device {
	if p == nil {
		return nil
	}
	return p.device[name]
}

// CounterIndex returns the position of a counter in Counters, or false when the pool has none of that name.
func (p *Pool) CounterIndex(set, name string) (int, bool) {
	if p == nil {
		return 0, false
	}
	i, ok := p.counter[counterName{set, name}]
	return i, ok
}

// Usable reports whether devices of the pool may be given out.
func (p *Pool) Usable() bool { return p != nil && p.Problem == nil }
