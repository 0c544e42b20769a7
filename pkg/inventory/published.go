package inventory

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/reason"
)

// maxCounterSets is how many counter sets one device may consume from.
const maxCounterSets = 2

// Published is one ResourceSlice in plain terms.
type Published struct {
	// Name of the ResourceSlice.
	Name       string
	Pool       PoolID
	Generation int64
	// SliceCount is how many ResourceSlices the pool has at this generation, as the driver says.
	SliceCount  int64
	CounterSets []CounterSet
	Devices     []PublishedDevice
	// NoNodes is true when the slice says nowhere which nodes it is for.
	NoNodes bool
	// Breach is a rule of the resource API that the slice breaks by itself, as a clause; empty when it breaks none.
	Breach string
}

// CounterSet is a group of counters.
type CounterSet struct {
	Name     string
	Counters []Counter
}

// PublishedDevice is a device together with what only validation needs.
type PublishedDevice struct {
	Device
	// Consumes is the consumption as published; NewPool makes Device.Charge from it.
	Consumes []Charge
	// Grouped is true when the device may be allocated only beside devices of its compatibility groups.
	Grouped bool
}

// NewPool makes a pool of everything that is published under its name. Slices of older generations are ignored, and
// never used instead of an incomplete newer one. The order of the slices does not matter. The Pool field of every slice
// must be id.
func NewPool(id PoolID, published []Published) *Pool {
	p := &Pool{ID: id, device: map[string]*Device{}, counter: map[counterName]int{}}
	for i, s := range published {
		if i == 0 || s.Generation > p.Generation {
			p.Generation = s.Generation
		}
	}
	var current []Published
	for _, s := range published {
		if s.Generation == p.Generation {
			current = append(current, s)
		}
	}
	slices.SortFunc(current, func(a, b Published) int { return cmp.Compare(a.Name, b.Name) })
	for _, s := range current {
		p.Slices = append(p.Slices, s.Name)
	}

	p.read(current)
	p.Problem = p.check(current)
	if p.Problem == nil {
		p.Problem = p.checkGate()
	}
	p.plan = newPlan(p)
	p.spreadTaints()
	return p
}

// read takes over counters and devices, the first of every name.
func (p *Pool) read(current []Published) {
	for _, s := range current {
		for _, set := range s.CounterSets {
			for _, c := range set.Counters {
				key := counterName{set.Name, c.Name}
				if _, twice := p.counter[key]; !twice {
					p.counter[key] = 0
					p.Counters = append(p.Counters, Counter{Set: set.Name, Name: c.Name, Milli: c.Milli})
				}
			}
		}
		for i := range s.Devices {
			d := s.Devices[i].Device
			if _, twice := p.device[d.Name]; twice {
				continue
			}
			d.Pool, d.Generation = p.ID, p.Generation
			d.Charge = sum(s.Devices[i].Consumes)
			d.Taints = keepingAway(d.Taints)
			p.device[d.Name] = &d
			p.Devices = append(p.Devices, &d)
		}
	}
	slices.SortFunc(p.Counters, func(a, b Counter) int {
		return cmp.Or(cmp.Compare(a.Set, b.Set), cmp.Compare(a.Name, b.Name))
	})
	for i, c := range p.Counters {
		p.counter[counterName{c.Set, c.Name}] = i
	}
	slices.SortFunc(p.Devices, func(a, b *Device) int { return Natural(a.Name, b.Name) })
}

// check holds the pool against the rules of the resource API that span several slices, or that an older API server did
// not enforce. It names the first breach.
func (p *Pool) check(current []Published) *reason.Refusal {
	for _, s := range current[min(1, len(current)):] {
		if first := current[0]; s.SliceCount != first.SliceCount {
			return p.invalid("slices disagree on resourceSliceCount: %s says %d, %s says %d", first.Name, first.SliceCount, s.Name, s.SliceCount)
		}
	}
	if len(current) > 0 && int64(len(current)) > current[0].SliceCount {
		return p.invalid("%d slices of generation %d are published, more than the %d that they say there are", len(current), p.Generation, current[0].SliceCount)
	}
	if len(current) > 0 && int64(len(current)) < current[0].SliceCount {
		return p.problem(reason.PoolIncomplete, "%d of %d slices of generation %d are published", len(current), current[0].SliceCount, p.Generation)
	}
	sets, setsIn, devicesIn := map[string]bool{}, map[string]string{}, map[string]string{}
	for _, s := range current {
		if s.NoNodes {
			return p.problem(reason.GateOff, "slice %s does not say which nodes it is for; "+
				"the API server drops that when its feature gate DRAPartitionableDevices is off", s.Name)
		}
		if len(s.CounterSets) > 0 && len(s.Devices) > 0 {
			return p.invalid("slice %s holds both counters and devices; they belong in slices of their own", s.Name)
		}
		if s.Breach != "" {
			return p.invalid("slice %s: %s", s.Name, s.Breach)
		}
		for _, set := range s.CounterSets {
			if other, twice := setsIn[set.Name]; twice {
				return p.invalid("counter set %s is in slice %s and in slice %s", set.Name, other, s.Name)
			}
			setsIn[set.Name], sets[set.Name] = s.Name, true
		}
	}
	for _, s := range current {
		for i := range s.Devices {
			d := &s.Devices[i]
			if other, twice := devicesIn[d.Name]; twice {
				return p.invalid("device %s is in slice %s and in slice %s", d.Name, other, s.Name)
			}
			devicesIn[d.Name] = s.Name
			if d.Grouped {
				// Who cannot judge which devices may stand together must not give out any of them, nor those beside them.
				return p.invalid("slice %s, device %s: it has compatibility groups, which Berth cannot keep", s.Name, d.Name)
			}
			if breach := p.checkConsumption(d, sets); breach != "" {
				return p.invalid("slice %s, device %s: %s", s.Name, d.Name, breach)
			}
		}
	}
	return nil
}

func (p *Pool) checkConsumption(d *PublishedDevice, sets map[string]bool) string {
	from := map[string]bool{}
	for _, c := range d.Consumes {
		from[c.CounterSet] = true
		if !sets[c.CounterSet] {
			return fmt.Sprintf("counter set %s does not exist in the pool", c.CounterSet)
		}
		if _, known := p.CounterIndex(c.CounterSet, c.Counter); !known {
			return fmt.Sprintf("counter %s does not exist in counter set %s", c.Counter, c.CounterSet)
		}
		if c.Milli < 0 {
			return fmt.Sprintf("consumption of counter %s/%s is negative", c.CounterSet, c.Counter)
		}
	}
	if len(from) > maxCounterSets {
		return fmt.Sprintf("consumes from %d counter sets, at most %d are allowed", len(from), maxCounterSets)
	}
	for _, c := range sum(d.Consumes) {
		if i, _ := p.CounterIndex(c.CounterSet, c.Counter); c.Milli > p.Counters[i].Milli {
			return fmt.Sprintf("consumes more of counter %s/%s than there is", c.CounterSet, c.Counter)
		}
	}
	return ""
}

// checkGate recognises devices whose counters the API server dropped: of different sizes, on the same host, and nothing
// that keeps them apart. Equal sets of hosts alone are no sign, because a driver may publish independent devices there.
func (p *Pool) checkGate() *reason.Refusal {
	if len(p.Counters) > 0 {
		return nil
	}
	on := map[string]*Device{}
	for _, d := range p.Devices {
		for _, h := range d.Hosts {
			other, seen := on[h]
			if !seen {
				on[h] = d
				continue
			}
			if len(other.Hosts) != len(d.Hosts) {
				return p.problem(reason.GateOff, "devices %s and %s share host %s but no counter; "+
					"the API server drops counters when its feature gate DRAPartitionableDevices is off", other.Name, d.Name, h)
			}
		}
	}
	return nil
}

func (p *Pool) invalid(format string, args ...any) *reason.Refusal {
	return p.problem(reason.PoolInvalid, format, args...)
}

func (p *Pool) problem(code reason.Code, format string, args ...any) *reason.Refusal {
	detail := fmt.Sprintf(format, args...)
	return &reason.Refusal{
		Code:     code,
		Message:  "pool " + p.ID.String() + ": " + detail,
		Evidence: []reason.Evidence{{Kind: reason.KindPool, Name: p.ID.String(), Code: code, Detail: detail}},
	}
}

// sum adds up consumption of the same counter, drops zeros and sorts.
func sum(consumes []Charge) []Charge {
	total := map[counterName]int64{}
	for _, c := range consumes {
		total[counterName{c.CounterSet, c.Counter}] = Add(total[counterName{c.CounterSet, c.Counter}], c.Milli)
	}
	charge := make([]Charge, 0, len(total))
	for name, milli := range total {
		if milli != 0 {
			charge = append(charge, Charge{CounterSet: name.set, Counter: name.name, Milli: milli})
		}
	}
	slices.SortFunc(charge, byCounter)
	return charge
}

func byCounter(a, b Charge) int {
	return cmp.Or(cmp.Compare(a.CounterSet, b.CounterSet), cmp.Compare(a.Counter, b.Counter))
}
