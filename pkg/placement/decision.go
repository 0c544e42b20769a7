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
	// Demand says what a free device of each class is worth to others; only Scored looks at it.
	Demand Demand
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
	// Proved is false when a budget ended the search before it was complete, or when it was not exact to begin with. A
	// refusal then does not mean that no placement exists, and a placement by Scored not that none costs less.
	Proved bool
	// Score is what the placement costs: the loss in worth of all devices that somebody can ask for, in hosts of the class
	// in greatest demand. Zero unless the placer is Scored.
	Score float64
	// Destroys counts, by class, the free devices that are free no more once the gang has its own, which are not counted.
	// It explains; it is not what was minimised. Nil unless the placer is Scored.
	Destroys map[string]int
	// RunnersUp are up to five other devices that would have served a gang of one device, the cheapest first.
	RunnersUp []RunnerUp
}

// RunnerUp is a device that was not chosen.
type RunnerUp struct {
	Pool inventory.PoolID
	Name string
	// Score and Destroys as in Decision, had this device been chosen.
	Score    float64
	Destroys map[string]int
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
	// Domains of their pools' interconnects that the devices stand in, each once and in order; one with an empty Value when
	// a device belongs to none. Empty when no pool names an interconnect.
	Domains []inventory.Domain
	// Across is true when devices that should stand together stand in several domains, or outside any.
	Across bool
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
	// Share is true when the device may be allocated several times at once; Capacity is what this time takes of it.
	Share    bool
	Capacity []inventory.Amount
}
