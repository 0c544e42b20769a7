package gang

import "github.com/berth-dev/berth/pkg/inventory"

// Key names a Workload.
type Key struct{ Namespace, Name string }

// String is namespace/name.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// MaxPodsPerClaim is how many pods one ResourceClaim serves: status.reservedFor holds 256 entries and the hold of the
// reservation is one of them.
const MaxPodsPerClaim = 255

// Gang is one admission of one Workload.
type Gang struct {
	Key Key
	// UID of the Workload.
	UID string
	// PodSets that ask for managed devices. Pod sets that ask for none are left out.
	PodSets []PodSet
}

// PodSet is a set of equal pods.
type PodSet struct {
	Name string
	// Count of pods; greater than zero.
	Count int
	// Slices is how many equal devices the pods may be divided over when a device spans several hosts; 0 means 1.
	Slices int
	// Interconnect says how much the pods need it that the devices of a request stand in one domain of their pools'
	// interconnect.
	Interconnect Interconnect
	// Claims that every pod has.
	Claims []Claim
	// Requests of one pod by resource name, in thousandths of the resource's unit, as the scheduler counts them. A pod
	// takes one of the resource "pods", so Requests["pods"] is 1000.
	Requests map[string]int64
	// Ineligible says for each host (node name) that the pods' node selector, affinity or tolerations rule out, why. A
	// host that is not in the map is allowed.
	Ineligible map[string]string
}

// Interconnect is how much pods need to stand in one domain.
type Interconnect string

const (
	// Preferred takes one domain where that is possible, else as few as possible. It is the zero value, and means nothing
	// where no pool names an interconnect.
	Preferred Interconnect = ""
	// Required refuses anything but one domain.
	Required Interconnect = "Required"
)

// Claim is one managed entry of a pod's spec.resourceClaims.
type Claim struct {
	// PodClaim is its name in the pod.
	PodClaim string
	Requests []Request
}

// Request is one device request of a claim.
type Request struct {
	Name string
	// Class is the name of the DeviceClass.
	Class string
	// Count of devices per claim; greater than 1 only for devices of one host.
	Count int
	// Capacity that each device must have, or that a share of a shared device takes.
	Capacity []inventory.Amount
	// Tolerations are the device taints that the request bears.
	Tolerations []Toleration
}

// Toleration is a DRA device toleration.
type Toleration struct {
	// Key is empty for every key.
	Key string
	// Exists ignores Value.
	Exists bool
	Value  string
	// Effect is empty for every effect, else NoSchedule or NoExecute.
	Effect string
}
