package policy

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/pkg/placement"
)

// Names of the policies.
const (
	// FirstFit is the device that kube-scheduler's allocator takes when it tries the nodes in order.
	FirstFit = "firstfit"
	// Random is any free device.
	Random = "random"
	// BestFit is a device in the smallest free device around it.
	BestFit = "bestfit"
	// Slurm is the rule of Slurm's topology/torus3d: the device that takes the fewest free placements of the next size.
	Slurm = "slurm"
	// Berth is placement.Scored as the controller runs it.
	Berth = "berth"
	// BerthDemand is placement.Scored told how much each class is asked for.
	BerthDemand = "berth-demand"
	// Exact is the best policy, by value iteration; see package exact.
	Exact = "exact"
)

// Names in the order in which tables list them.
var Names = []string{FirstFit, Random, BestFit, Slurm, Berth, BerthDemand, Exact}

// Options of a policy.
type Options struct {
	Hardware *hardware.Hardware
	// Seed of Random.
	Seed uint64
}

// New makes a policy; Exact comes from package exact.
func New(name string, o Options) (placement.Placer, error) {
	switch name {
	case FirstFit:
		return newFirstFit(o.Hardware), nil
	case Random:
		return &chooser{rule: &random{rng: rand.New(rand.NewPCG(o.Seed, 4))}}, nil
	case BestFit:
		return &chooser{rule: bestFit{}}, nil
	case Slurm:
		return &chooser{rule: &slurm{}}, nil
	case Berth, BerthDemand:
		// They differ in World.Demand, which the simulation fills.
		return placement.NewScored(0), nil
	}
	return nil, fmt.Errorf("is %q, must be one of %s", name, strings.Join(Names, ", "))
}
