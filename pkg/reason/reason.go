package reason

// Code is a reason as users see it in conditions, check messages, the CLI and metrics. The list is closed: a test
// holds it against docs.
type Code string

// Reasons why a gang does not have its slice.
const (
	// Waiting: the same gang can be served later without anybody changing it.

	// NoFreeSlice: devices of the shape exist and all of them are taken.
	NoFreeSlice Code = "NoFreeSlice"
	// HostsBusy: devices are free, but pods outside the gang leave no room on their hosts.
	HostsBusy Code = "HostsBusy"
	// HostMissing: a host that the device names does not exist as a Node.
	HostMissing Code = "HostMissing"
	// HostUnusable: a host is not Ready, cordoned, tainted, does not match the pods or is too small for one of them.
	HostUnusable Code = "HostUnusable"
	// HostNameUnusable: a host lacks the kubernetes.io/hostname label, or shares its value with another host.
	HostNameUnusable Code = "HostNameUnusable"
	// DeviceTainted: every device of the shape, or a part of it, carries a taint that the claim does not tolerate.
	DeviceTainted Code = "DeviceTainted"
	// PoolIncomplete: the driver has not yet published every slice of the pool's newest generation.
	PoolIncomplete Code = "PoolIncomplete"
	// PoolInvalid: the driver's pool breaks a rule of the resource API.
	PoolInvalid Code = "PoolInvalid"
	// GateOff: the API server dropped counters from the driver's slices because a feature gate is off.
	GateOff Code = "GateOff"
	// Quarantined: a host may still run a pod that nobody can see.
	Quarantined Code = "Quarantined"
	// WaitingTurn: another gang stands before this one.
	WaitingTurn Code = "WaitingTurn"
	// Contended: another reservation took the device between decision and allocation.
	Contended Code = "Contended"
	// TooManyChecks: more than one AdmissionCheck of Berth applies to the Workload.
	TooManyChecks Code = "TooManyChecks"
	// ClaimMissing: a ResourceClaimTemplate that the pods name does not exist (yet).
	ClaimMissing Code = "ClaimMissing"
	// TemplateReplaced: a ResourceClaimTemplate is not the one that Kueue charged for, or that was decided on.
	TemplateReplaced Code = "TemplateReplaced"
	// NotFenced: the admission policies are not in force, so nothing may be reserved.
	NotFenced Code = "NotFenced"
	// PoolMissing: the gang waited for managed devices, and no AcceleratorPool manages them any more.
	PoolMissing Code = "PoolMissing"
	// ReservationFailed: the API server refused a write of the reservation; the message says which and why.
	ReservationFailed Code = "ReservationFailed"
	// NotSeated: the gang's pods did not all appear before the deadline, or the scheduler finds no place for one of them.
	NotSeated Code = "NotSeated"
	// SliceLost: the reserved slice can no longer be used: device taint, lost host, claim deleted, room taken.
	SliceLost Code = "SliceLost"
	// Recalled: the slice was lent from what is kept for a gang of higher priority, which can have it now.
	Recalled Code = "Recalled"
	// NotCharged: Kueue admitted the gang without charging the shares that its claims are.
	NotCharged Code = "NotCharged"
	// TopologyAssigned: the flavor has a topology, with which Kueue chooses the hosts.
	TopologyAssigned Code = "TopologyAssigned"
	// ShapeUnknown: no device of any pool matches the device class. It is not final: a driver that restarts takes its
	// devices away for a while, and a missing class can be created.
	ShapeUnknown Code = "ShapeUnknown"
	// HostSetsDiffer: the devices of one pod do not stand on the same host, or exclude each other there. It is not final:
	// that is so of the devices that are published now, and others may be published later.
	HostSetsDiffer Code = "HostSetsDiffer"

	// The quota does not follow the hardware: these stand on a CapacityFold, not on a gang.

	// FoldUnitMismatch: shares of a CapacityFold's classes are not the same amount of hardware.
	FoldUnitMismatch Code = "FoldUnitMismatch"
	// FoldOverlap: an older CapacityFold counts the same hosts or writes the same quota.
	FoldOverlap Code = "FoldOverlap"
	// NotTiling: one class of a CapacityFold cannot fill what its classes fill together.
	NotTiling Code = "NotTiling"
	// FoldContested: somebody changes the quota that a CapacityFold writes.
	FoldContested Code = "FoldContested"

	// Refused: this gang can never be served as it is written.

	// NotDivisible: the pod count is no multiple of the hosts per device.
	NotDivisible Code = "NotDivisible"
	// CountMismatch: the pod count is not the number of hosts of one slice, and more slices were not asked for; or
	// completions differ from parallelism; or a pod set may shrink.
	CountMismatch Code = "CountMismatch"
	// TooManyPods: more than 255 pods would share one ResourceClaim.
	TooManyPods Code = "TooManyPods"
	// TooManyClaims: a pod has more claims than the pod policy can swap (8).
	TooManyClaims Code = "TooManyClaims"
	// Unsupported: the request uses something that Berth does not reserve; the message names it.
	Unsupported Code = "Unsupported"
	// ReservedKeys: the pod template carries keys that only Berth may set.
	ReservedKeys Code = "ReservedKeys"
)

// Final reports whether waiting cannot help: the Workload, the class or the hardware description must change.
func (c Code) Final() bool {
	switch c {
	case NotDivisible, CountMismatch, TooManyPods, TooManyClaims, Unsupported, ReservedKeys:
		return true
	default:
		return false
	}
}

// Refusal is why something does not happen: a code for machines, a sentence for people and what the sentence rests on.
type Refusal struct {
	Code Code
	// Message is one sentence that stays the same while the facts stay the same. It names objects, never times.
	Message string
	// Evidence lists what blocks, most important first.
	Evidence []Evidence
}

// Error makes a Refusal usable where an error is expected.
func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Message }

// Kind says what a piece of evidence is about. The list is closed: a test holds it against docs.
type Kind string

// Kinds of evidence, and how each is named.
const (
	// KindHost is a node, by its name.
	KindHost Kind = "host"
	// KindDevice is a device, by <pool>/<device>.
	KindDevice Kind = "device"
	// KindPool is a DRA pool, by <driver>/<pool>.
	KindPool Kind = "pool"
	// KindDomain is a domain of an interconnect, by its value.
	KindDomain Kind = "domain"
	// KindHolder is whoever holds a device: a reservation, a claim or a gang, by <namespace>/<name>.
	KindHolder Kind = "holder"
	// KindPod is a pod, by <namespace>/<name>.
	KindPod Kind = "pod"
	// KindClass is a DeviceClass, by its name.
	KindClass Kind = "class"
)

// Evidence is one thing that blocks.
type Evidence struct {
	// Kind is what the other fields describe.
	Kind Kind `json:"kind"`
	// Name as Kind says.
	Name string `json:"name"`
	// Code is the reason that applies to it.
	Code Code `json:"code"`
	// Detail is a short clause, for example "needs 4 cpu, has 1".
	Detail string `json:"detail,omitempty"`
}
