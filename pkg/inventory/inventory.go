package inventory

import "github.com/berth-dev/berth/pkg/reason"

// PoolID names a DRA pool. Both parts are compared exactly: names that differ in case or by a suffix are different.
type PoolID struct{ Driver, Name string }

// String is driver/pool.
func (p PoolID) String() string { return p.Driver + "/" + p.Name }

// Charge is the consumption of one counter of the device's pool.
type Charge struct {
	CounterSet, Counter string
	// Milli is the amount in thousandths of the counter's unit.
	Milli int64
}

// Host is a Node, or the name of one that does not exist.
type Host struct {
	// Name of the Node object.
	Name string
	// Hostname is the value of its kubernetes.io/hostname label.
	Hostname string
	// Rank orders the hosts of one device: by the AcceleratorPool's rankLabel, else by Name, in natural order.
	Rank string
	// Blocked says why no pod of any gang may be placed here now: HostMissing, HostUnusable (not Ready, cordoned),
	// HostNameUnusable. Nil when nothing blocks. Taints that pods may tolerate are not here but in gang.PodSet.Ineligible.
	Blocked *reason.Evidence
	// Allocatable by resource name, in thousandths, including "pods".
	Allocatable map[string]int64
}

// Taint is a device taint.
type Taint struct{ Key, Value, Effect string }
