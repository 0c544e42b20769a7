package placement

import (
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/reason"
)

// World is everything that a placement depends on.
type World struct {
	Inventory *inventory.Inventory
	Ledger    *ledger.Ledger
}

// Placer chooses devices for a whole gang: all of its pod sets or none.
type Placer interface {
	// Place returns a Decision that either fits or carries a Refusal; it does not change the World.
	Place(g gang.Gang, w World) Decision
}

// Decision is the answer to one gang.
type Decision struct {
	// PodSets in the order of the gang; empty when Refusal is set.
	PodSets []PodSet
	// Refusal says why the gang does not fit now; nil when it fits.
	Refusal *reason.Refusal
	// Proved is false when a budget ended the search before it was complete; a refusal then does not mean that no
	// placement exists.
	Proved bool
}

// Fits reports whether the gang has a place.
func (d Decision) Fits() bool { return d.Refusal == nil }

// Shares is how many hosts of devices the decision takes, one per pod.
func (d Decision) Shares() int {
	n := 0
	for _, ps := range d.PodSets {
		n += len(ps.Hosts)
	}
	return n
}

// PodSet is where the pods of one pod set go.
type PodSet struct {
	Name string
	// Hosts are node names in rank order, one per pod.
	Hosts []string
	// Claims in the order of the gang's pod set.
	Claims []Claim
}

// Claim is the devices behind one entry of the pods' spec.resourceClaims.
type Claim struct {
	PodClaim string
	// PodsPerClaim: rank r uses Instances[r/PodsPerClaim].
	PodsPerClaim int
	Instances    []Instance
}

// Instance is the content of one ResourceClaim.
type Instance struct {
	Devices []Device
}

// Device is one chosen device.
type Device struct {
	// Request that it serves.
	Request    string
	Pool       inventory.PoolID
	Generation int64
	Name       string
	// Hosts are node names in rank order.
	Hosts []string
	// Charge is what the device consumes.
	Charge []inventory.Charge
}
