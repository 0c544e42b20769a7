package scenario

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/traffic"
	"github.com/berth-dev/berth/pkg/gang"
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

// source is where a scenario was read.
type source struct {
	file, at string
	// lines by path of the field.
	lines map[string]int
}

// locate completes faults below the scenario by where they stand. A field that was left out has the line of what it should
// stand in.
func (s source) locate(faults Faults) Faults {
	for i := range faults {
		f := &faults[i]
		if s.file == "" || f.File != "" {
			continue
		}
		f.File, f.Field = s.file, s.at+"."+f.Field
	}
	return s.place(faults)
}

func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// Defaults of a scenario.
const (
	DefaultSeeds = 8
	DefaultHours = 200
	// defaultWarmup is a share of the hours.
	defaultWarmup = 0.1
)

// Limits of a scenario.
const (
	maxSeeds = 1000
	maxHours = 1e6
	maxLoad  = 10
	// maxGangs of one run.
	maxGangs = 5_000_000
)

// Fault is one thing that is wrong with a scenario.
type Fault struct {
	File string
	// Line of the file; 0 when it is not known.
	Line int
	// Field is a path such as scenarios[0].kinds[2].share, or a flag.
	Field   string
	Message string
}

// Error is file:line: field: message, without the parts that are not known.
func (f Fault) Error() string {
	var parts []string
	switch {
	case f.File != "" && f.Line > 0:
		parts = append(parts, fmt.Sprintf("%s:%d", f.File, f.Line))
	case f.File != "":
		parts = append(parts, f.File)
	}
	if f.Field != "" {
		parts = append(parts, f.Field)
	}
	return strings.Join(append(parts, f.Message), ": ")
}

// Faults are all faults of the input.
type Faults []Fault

// Error is one fault a line.
func (f Faults) Error() string {
	lines := make([]string, 0, len(f))
	for _, fault := range f {
		lines = append(lines, fault.Error())
	}
	return strings.Join(lines, "\n")
}

// Prepared is a scenario whose hardware and gangs are known to fit together.
type Prepared struct {
	Scenario
	Hardware *hardware.Hardware
	// Offers that some gang asks for, the smallest first.
	Offers []hardware.Offer
	// Mix at the scenario's load; without kinds for a trace.
	Mix   traffic.Mix
	trace []traffic.Gang
}

// Gangs that come with one seed.
func (p *Prepared) Gangs(seed uint64) []traffic.Gang {
	if p.trace != nil {
		return p.trace
	}
	return p.Mix.Draw(seed, p.Hours)
}

// Demand of the gangs by class, as Mix.Demand.
func (p *Prepared) Demand() map[string]float64 {
	if p.trace == nil {
		return p.Mix.Demand()
	}
	out := map[string]float64{}
	for _, g := range p.trace {
		out[g.Class] += g.Duration
	}
	return out
}

// Prepare fills in what was left out, builds the hardware and reads the trace. An error is Faults whose fields are below
// the scenario, or what the files with hardware or the trace say of themselves.
func (s Scenario) Prepare(stdin io.Reader) (*Prepared, error) {
	p, err := s.prepare(stdin)
	var faults Faults
	if errors.As(err, &faults) {
		return nil, s.source.locate(faults)
	}
	return p, err
}

func (s Scenario) prepare(stdin io.Reader) (*Prepared, error) {
	s.fill()
	p := &Prepared{Scenario: s}
	if faults := s.check(); len(faults) > 0 {
		return nil, faults
	}
	var err error
	if len(s.Files) > 0 {
		p.Hardware, err = hardware.Read(s.Files, stdin)
	} else {
		p.Hardware, err = s.Family.Build()
	}
	if err != nil {
		return nil, below("hardware", err)
	}
	if len(p.Hardware.Offers()) == 0 {
		return nil, Faults{{Field: "hardware", Message: "no class selects a device that can be reserved"}}
	}
	if s.Trace != "" {
		err = p.read()
	} else {
		err = p.mix()
	}
	if err != nil {
		return nil, err
	}
	p.offers()
	return p, nil
}

// below puts a field in front of the fault of a part.
func below(field string, err error) error {
	if f, ok := err.(*hardware.FieldError); ok { //nolint:errorlint // Build returns it as it is.
		return Faults{{Field: field + "." + f.Field, Message: f.Message}}
	}
	return err
}

func (s *Scenario) fill() {
	if s.Seeds == 0 {
		s.Seeds = DefaultSeeds
	}
	if s.Line == "" {
		s.Line = simulate.Loss
	}
	if s.Trace != "" {
		s.Seeds = 1
		return
	}
	if s.Hours == 0 {
		s.Hours = DefaultHours
	}
	if s.Warmup == 0 {
		s.Warmup = defaultWarmup * s.Hours
	}
}

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

// mix completes the kinds by what the hardware offers.
func (p *Prepared) mix() error {
	var faults Faults
	p.Kinds = slices.Clone(p.Kinds)
	for i := range p.Kinds {
		k := &p.Kinds[i]
		class, hosts, err := p.classFor(k.Class, k.Hosts)
		if err != nil {
			faults = append(faults, Fault{Field: fmt.Sprintf("kinds[%d]", i), Message: err.Error()})
			continue
		}
		k.Class, k.Hosts = class, hosts
		if !p.ByGangs {
			k.Share /= float64(hosts) * k.Durations.Mean
		}
	}
	if len(faults) > 0 {
		return faults
	}
	p.Mix = traffic.Mix{Kinds: p.Kinds}.ForLoad(p.Load, p.Hardware.Hosts())
	if p.Mix.Rate*p.Hours > maxGangs {
		return Faults{{Field: "hours", Message: fmt.Sprintf("about %.0f gangs would come, at most %d are possible", p.Mix.Rate*p.Hours, maxGangs)}}
	}
	return nil
}

func (p *Prepared) read() error {
	content, err := os.ReadFile(p.Trace)
	if err != nil {
		return Faults{{Field: "trace", Message: err.Error()}}
	}
	p.trace, err = traffic.ReadTrace(p.Trace, content, p.classFor)
	if err != nil {
		return err
	}
	if p.Hours == 0 {
		for _, g := range p.trace {
			p.Hours = max(p.Hours, g.Arrival+g.Duration)
		}
	}
	if p.Warmup >= p.Hours {
		return Faults{{Field: "warmup", Message: fmt.Sprintf("is %v hours, and the trace has %.2f", p.Warmup, p.Hours)}}
	}
	return nil
}

// classFor finds what a gang means by a class, a number of hosts, or both.
func (p *Prepared) classFor(class string, hosts int) (string, int, error) {
	var found, ofClass []hardware.Offer
	var offered []string
	for _, o := range p.Hardware.Offers() {
		offered = append(offered, fmt.Sprintf("%s (%d)", o.Class, o.Hosts))
		if class == "" || o.Class == class {
			ofClass = append(ofClass, o)
			if hosts == 0 || o.Hosts == hosts {
				found = append(found, o)
			}
		}
	}
	switch {
	case hosts > gang.MaxPodsPerClaim:
		return "", 0, fmt.Errorf("a gang of %d hosts cannot be reserved: its pods share one ResourceClaim, which serves at most %d", hosts, gang.MaxPodsPerClaim)
	case len(found) == 1:
		return found[0].Class, found[0].Hosts, nil
	case len(ofClass) == 0:
		return "", 0, fmt.Errorf("no device of class %s can be reserved; there are %s", class, strings.Join(offered, ", "))
	case len(found) == 0 && class != "":
		return "", 0, fmt.Errorf("no device of class %s spans %d hosts; there are %s", class, hosts, strings.Join(offered, ", "))
	case len(found) == 0:
		return "", 0, fmt.Errorf("no device spans %d hosts; there are %s", hosts, strings.Join(offered, ", "))
	case class == "":
		return "", 0, fmt.Errorf("%s and %s have %d hosts: name the class", found[0].Class, found[1].Class, hosts)
	}
	return "", 0, fmt.Errorf("devices of class %s span %d or %d hosts: name the hosts", class, found[0].Hosts, found[1].Hosts)
}

// offers are what some gang asks for.
func (p *Prepared) offers() {
	asked := map[hardware.Offer]bool{}
	for _, k := range p.Mix.Kinds {
		asked[hardware.Offer{Class: k.Class, Hosts: k.Hosts}] = true
	}
	for _, g := range p.trace {
		asked[hardware.Offer{Class: g.Class, Hosts: g.Hosts}] = true
	}
	for _, o := range p.Hardware.Offers() {
		if asked[o] {
			p.Offers = append(p.Offers, o)
		}
	}
}
