package scenario

import (
	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/traffic"
)

// Scenario is one question.
type Scenario struct {
	// Name is short and unique in its file.
	Name string
	// Group gathers the scenarios that a report shows in one table.
	Group string
	// Family of the hardware, unless Files name it.
	Family hardware.Family
	// Files with dumped state, as kubectl-berth reads them.
	Files []string
	// Load is how many host-hours come per hour and host; for kinds, not for a trace.
	Load float64
	// ByGangs: shares are of the gangs that come; otherwise of the host-hours that they ask for.
	ByGangs bool
	Kinds   []traffic.Kind
	// Trace is a file with gangs, instead of Load and Kinds.
	Trace string
	// Line is what becomes of gangs that find no place.
	Line   simulate.Discipline
	Recall bool
	// Policies by name; the first is what the others are compared with.
	Policies []string
	// Seeds is how many runs, with seeds Seed, Seed+1, …; a trace needs one.
	Seeds int
	Seed  uint64
	// Hours that are simulated, of which the first Warmup are not measured. For a trace, zero hours are all of it.
	Hours, Warmup float64
	// Compact asks how many hosts each policy needs for the same gangs at the same wait.
	Compact bool

	source source
}

// Defaults of a scenario.
const (
	DefaultSeeds = 8
	DefaultHours = 200
	// defaultWarmup is a share of the hours.
	defaultWarmup = 0.1
)
