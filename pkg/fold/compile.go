package fold

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/capacity"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// Compiler checks folds against hardware. It keeps what it found out about pools that did not change and which hosts folds
// had, and is not safe for concurrent use.
type Compiler struct {
	calculate capacity.Calculator
	units     map[unitKey]unit
	former    map[unitKey]unit
	// grounds by the name of the fold.
	grounds map[string]ground
}

// Compile checks the folds, which are in order of their age: of two on the same hosts the older one stands. What one of them
// does wrong stops no other.
func (c *Compiler) Compile(inv *inventory.Inventory, folds []Fold) []Compiled {
	c.former, c.units = c.units, map[unitKey]unit{}
	c.calculate.Sweep()
	grounds := make(map[string]ground, len(folds))
	owners := owners{hosts: map[string]string{}, quotas: map[quota]string{}}
	out := make([]Compiled, 0, len(folds))
	for _, f := range folds {
		compiled := Compiled{Fold: f, Hosts: map[string]struct{}{}, Counted: f.Classes}
		now := groundOf(inv, f)
		compiled.Problem = c.compile(inv, &compiled)
		if was := c.grounds[f.Name]; was.revision == f.Revision {
			now.recall(was, inv, compiled.Problem == nil)
		}
		now.add(compiled.Hosts)
		grounds[f.Name] = now
		if compiled.Problem == nil {
			compiled.Problem = owners.claim(&compiled)
		} else if f.Stands {
			owners.keep(&compiled)
		}
		out = append(out, compiled)
	}
	c.grounds = grounds
	return out
}

func (c *Compiler) compile(inv *inventory.Inventory, f *Compiled) *reason.Refusal {
	if len(f.Classes) == 0 {
		return &reason.Refusal{Code: reason.ShapeUnknown, Message: "it names no DeviceClass"}
	}
	for _, name := range f.Classes {
		if p := classProblem(inv.Class(name)); p != nil {
			return p
		}
	}
	if p := c.unitOf(inv, &f.Fold); p != nil {
		return p
	}
	for _, p := range c.calculate.Published(inv, f.In, f.Classes...) {
		f.Published += p.Hosts
	}
	if f.NotTiling = c.tiling(inv, &f.Fold); f.NotTiling != nil {
		f.Counted = []string{smallest(inv, f.Classes)}
	}
	return nil
}

// classProblem is why a class cannot be counted at all. A class whose hardware is out of order, or gone, counts as nothing
// instead: a driver takes back the devices that a broken part is in, and the last host of a class may leave.
func classProblem(class *inventory.Class) *reason.Refusal {
	unknown := func(format string) *reason.Refusal {
		return &reason.Refusal{Code: reason.ShapeUnknown, Message: fmt.Sprintf(format, class.Name)}
	}
	switch class.State {
	case inventory.ClassUnknown:
		return unknown("there is no DeviceClass %s")
	case inventory.ClassBroken:
		return &reason.Refusal{Code: reason.ShapeUnknown, Message: fmt.Sprintf("the selectors of DeviceClass %s cannot be evaluated: %s", class.Name, class.Problem)}
	case inventory.ClassUnmanaged:
		return unknown("DeviceClass %s selects devices, but none of an AcceleratorPool")
	}
	return nil
}

// owners are the hosts and quotas that folds have.
type owners struct {
	hosts  map[string]string
	quotas map[quota]string
}

type quota struct{ object, flavor, resource string }

// claim gives the fold its hosts and quotas, or says who has them.
func (o *owners) claim(f *Compiled) *reason.Refusal {
	var taken []string
	for h := range f.Hosts {
		if o.hosts[h] != "" {
			taken = append(taken, h)
		}
	}
	if len(taken) > 0 {
		slices.SortFunc(taken, inventory.Natural)
		hosts := "host " + taken[0]
		if len(taken) > 1 {
			hosts = fmt.Sprintf("%d hosts, the first of them %s", len(taken), taken[0])
		}
		return &reason.Refusal{Code: reason.FoldOverlap, Message: fmt.Sprintf(
			"CapacityFold %s counts %s already: put the classes into one fold, or select pools or classes that share no host",
			o.hosts[taken[0]], hosts)}
	}
	for _, object := range f.Writes {
		if owner := o.quotas[quota{object, f.Flavor, f.Resource}]; owner != "" {
			return &reason.Refusal{Code: reason.FoldOverlap, Message: fmt.Sprintf(
				"CapacityFold %s writes %s of flavor %s into %s already: select the pools of both in one fold, or give this one a flavor of its own",
				owner, f.Resource, f.Flavor, object)}
		}
	}
	for h := range f.Hosts {
		o.hosts[h] = f.Name
	}
	for _, object := range f.Writes {
		o.quotas[quota{object, f.Flavor, f.Resource}] = f.Name
	}
	return nil
}

// keep gives a fold that makes no sense what is nobody's: its last numbers stand, and a younger fold that took its hosts would
// promise them again.
func (o *owners) keep(f *Compiled) {
	for h := range f.Hosts {
		o.hosts[h] = cmp.Or(o.hosts[h], f.Name)
	}
	for _, object := range f.Writes {
		q := quota{object, f.Flavor, f.Resource}
		o.quotas[q] = cmp.Or(o.quotas[q], f.Name)
	}
}

// smallest is the class whose largest device stands on the fewest hosts.
func smallest(inv *inventory.Inventory, classes []string) string {
	span := func(name string) int {
		spans := inv.Class(name).Spans()
		if len(spans) == 0 {
			return 0
		}
		return spans[len(spans)-1].Hosts
	}
	return slices.MinFunc(classes, func(a, b string) int {
		// A class without devices is no measure.
		if (span(a) == 0) != (span(b) == 0) {
			return cmp.Compare(span(b), span(a))
		}
		return cmp.Or(cmp.Compare(span(a), span(b)), inventory.Natural(a, b))
	})
}

// tiling says which classes fall short of what the classes can fill together, and in which pools: up to three of them.
func (c *Compiler) tiling(inv *inventory.Inventory, f *Fold) *reason.Refusal {
	if len(f.Classes) == 1 {
		return nil
	}
	alone := map[string]map[int]capacity.Published{}
	for _, class := range f.Classes {
		alone[class] = map[int]capacity.Published{}
		for _, p := range c.calculate.Published(inv, f.In, class) {
			alone[class][p.Pool] = p
		}
	}
	var short []string
	for _, together := range c.calculate.Published(inv, f.In, f.Classes...) {
		for _, class := range f.Classes {
			// An unproved number says nothing about one that may be as large.
			if own := alone[class][together.Pool]; own.AtMost < together.Hosts {
				short = append(short, fmt.Sprintf("%s fills %d of %d shares of pool %s",
					class, own.Hosts, together.Hosts, inv.Pools()[together.Pool].ID.Name))
			}
		}
	}
	if len(short) == 0 {
		return nil
	}
	const listed = 3
	if more := len(short) - listed; more > 0 {
		short = append(short[:listed], fmt.Sprintf("%d more", more))
	}
	return &reason.Refusal{Code: reason.NotTiling, Message: strings.Join(short, ", ")}
}
