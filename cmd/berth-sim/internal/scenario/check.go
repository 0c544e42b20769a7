package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/traffic"
)

// Limits of a scenario.
const (
	maxSeeds = 1000
	maxHours = 1e6
	maxLoad  = 10
	// maxGangs of one run.
	maxGangs = 5_000_000
)

// check looks at what can be judged without the hardware.
func (s *Scenario) check() Faults {
	var faults Faults
	fault := func(field, format string, args ...any) {
		faults = append(faults, Fault{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if len(s.Files) > 0 && s.Family.Name != "" {
		fault("hardware", "names both files and a family")
	}
	if len(s.Policies) == 0 {
		fault("policies", "name at least one of %s", strings.Join(policy.Names, ", "))
	}
	for i, name := range s.Policies {
		if !slices.Contains(policy.Names, name) {
			fault(fmt.Sprintf("policies[%d]", i), "is %q, must be one of %s", name, strings.Join(policy.Names, ", "))
		} else if slices.Contains(s.Policies[:i], name) {
			fault(fmt.Sprintf("policies[%d]", i), "%s stands there twice", name)
		}
	}
	if !slices.Contains(simulate.Disciplines, s.Line) {
		fault("line", "is %q, must be loss, free or targets", s.Line)
	}
	if s.Recall && s.Line != simulate.Targets {
		fault("recall", "gangs are recalled for targets only: set line to targets")
	}
	if s.Seeds < 1 || s.Seeds > maxSeeds {
		fault("seeds", "is %d, must be between 1 and %d", s.Seeds, maxSeeds)
	}
	if !(s.Hours >= 0 && s.Hours <= maxHours) {
		fault("hours", "is %v, must be between 0 and %v", s.Hours, maxHours)
	}
	if !(s.Warmup >= 0) || s.Warmup >= s.Hours && s.Hours > 0 {
		fault("warmup", "is %v hours, must be less than the %v that are simulated", s.Warmup, s.Hours)
	}
	if s.Compact && (s.Line == simulate.Loss || len(s.Files) > 0 || !s.Family.Grows()) {
		fault("compact", "needs gangs that wait, and a family with pools or cubes that can be more or fewer")
	}
	if s.Trace != "" {
		if len(s.Kinds) > 0 {
			fault("kinds", "come from the trace")
		}
		if s.Load != 0 {
			fault("load", "comes from the trace")
		}
		if s.Compact {
			fault("compact", "is not computed for a trace")
		}
		return append(faults, s.checkExact()...)
	}
	if !(s.Load > 0 && s.Load <= maxLoad) {
		fault("load", "is %v, must be above 0 and at most %v", s.Load, maxLoad)
	}
	if len(s.Kinds) == 0 {
		fault("kinds", "name at least one kind of gang, or a trace")
	}
	for i, k := range s.Kinds {
		at := fmt.Sprintf("kinds[%d].", i)
		if k.Class == "" && k.Hosts == 0 {
			fault(at+"class", "is missing: a kind needs a class or hosts")
		}
		if !(k.Share > 0 && k.Share <= 1e9) {
			fault(at+"share", "is %v, must be more than nothing", k.Share)
		}
		if k.Limit != 0 && !(k.Limit >= 1 && k.Limit <= 1e6) {
			fault(at+"limit", "is %v, must be at least 1: a gang ends before its limit", k.Limit)
		}
		if field, message := k.Durations.Check(); field != "" {
			fault(at+"duration."+field, "%s", message)
		}
	}
	return append(faults, s.checkExact()...)
}

// checkExact holds the scenario against the model that the best policy is computed in.
func (s *Scenario) checkExact() Faults {
	if !slices.Contains(s.Policies, policy.Exact) {
		return nil
	}
	at := fmt.Sprintf("policies[%d]", slices.Index(s.Policies, policy.Exact))
	switch {
	case s.Line != simulate.Loss:
		return Faults{{Field: at, Message: "the best policy is computed where gangs that find no place are lost"}}
	case s.Trace != "" || len(s.Files) > 0:
		return Faults{{Field: at, Message: "the best policy is computed for kinds of gangs on a family of hardware"}}
	}
	for _, k := range s.Kinds {
		if k.Durations.Kind != traffic.Exponential {
			return Faults{{Field: at, Message: "the best policy is computed for exponential durations"}}
		}
	}
	return nil
}
