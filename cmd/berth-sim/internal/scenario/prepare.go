package scenario

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/traffic"
	"github.com/berth-dev/berth/pkg/gang"
)

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
