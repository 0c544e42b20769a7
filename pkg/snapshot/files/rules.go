package files

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// acceleratorPool repeats the rules of the CRD that decide which hardware counts.
func (r *reader) acceleratorPool(p *berth.AcceleratorPool, at string) {
	r.objectName(p.Spec.Driver, join(at, "spec.driver"))
	r.poolSelector(p.Spec.PoolSelector, at)
	r.oneOf(string(p.Spec.Fence), join(at, "spec.fence"), "", string(berth.FenceEnforce), string(berth.FenceObserve))
	r.oneOf(string(p.Spec.HostHold), join(at, "spec.hostHold"), "", string(berth.HostHoldNone))
	r.nodeLabel(p.Spec.RankLabel, join(at, "spec.rankLabel"))
	if i := p.Spec.Interconnect; i != nil {
		field := join(at, "spec.interconnect")
		r.nodeLabel(i.NodeLabel, join(field, "nodeLabel"))
		if (i.NodeLabel == "") == (i.DeviceAttribute == "") {
			r.fault(field, "needs one of nodeLabel and deviceAttribute")
		}
		if domain, name, _ := strings.Cut(i.DeviceAttribute, "/"); i.DeviceAttribute != "" && (domain == "" || name == "" || strings.Contains(name, "/")) {
			r.fault(join(field, "deviceAttribute"), fmt.Sprintf("is %s, must be qualified: domain/name, for example tpu.example.com/cube", show(i.DeviceAttribute)))
		}
	}
}

// nodeLabel faults what cannot be the key of a label; empty is none.
func (r *reader) nodeLabel(key, at string) {
	if key != "" && len(validation.IsQualifiedName(key)) > 0 {
		r.fault(at, fmt.Sprintf("is %s, must be the key of a node label, for example example.com/rack or rack", show(key)))
	}
}

// maxWeight of a target of a CapacityFold.
const maxWeight = 1_000_000

// capacityFold repeats the rules of the CRD that decide what a fold counts and what it writes. A fold that breaks them never
// reaches the controller, so there is no number to tell.
func (r *reader) capacityFold(f *berth.CapacityFold, at string) {
	r.poolSelector(f.Spec.PoolSelector, at)
	field := join(at, "spec.deviceClasses")
	if len(f.Spec.DeviceClasses) == 0 {
		r.fault(field, "is missing")
	}
	seen := map[string]bool{}
	for i, class := range f.Spec.DeviceClasses {
		r.once(seen, class, class, fmt.Sprintf("%s[%d]", field, i))
	}
	r.objectName(f.Spec.Flavor, join(at, "spec.flavor"))
	r.oneOf(string(f.Spec.Mode), join(at, "spec.mode"), "", string(berth.FoldPhysical), string(berth.FoldLive))
	if s := f.Spec.HysteresisSeconds; s != nil {
		r.upTo(*s, 3600, join(at, "spec.hysteresisSeconds"))
	}
	field = join(at, "spec.targets")
	if len(f.Spec.Targets) == 0 {
		r.fault(field, "is missing")
	}
	for i, t := range f.Spec.Targets {
		field := fmt.Sprintf("%s[%d]", field, i)
		r.oneOf(string(t.Kind), join(field, "kind"), string(berth.FoldCohort), string(berth.FoldClusterQueue))
		r.objectName(t.Name, join(field, "name"))
		r.once(seen, string(t.Kind)+" "+t.Name, string(t.Kind)+" "+t.Name, field)
		if t.Weight != nil {
			r.upTo(*t.Weight, maxWeight, join(field, "weight"))
		}
		r.upTo(t.Min, -1, join(field, "min"))
		if t.Max != nil {
			r.upTo(*t.Max, -1, join(field, "max"))
		}
	}
}

func (r *reader) poolSelector(s *berth.PoolSelector, at string) {
	if s != nil && len(s.Names) == 0 && len(s.Prefixes) == 0 {
		r.fault(join(at, "spec.poolSelector"), "needs names or prefixes; leave it out to select every pool of the driver")
	}
}

// once faults what a list has had already, or does not say.
func (r *reader) once(seen map[string]bool, key, shown, at string) {
	switch {
	case key == "":
		r.fault(at, "is empty")
	case seen[key]:
		r.fault(at, shown+" was given before")
	}
	seen[key] = true
}

// objectName faults what cannot be the name of an object.
func (r *reader) objectName(name, at string) {
	switch {
	case name == "":
		r.fault(at, "is missing")
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		r.fault(at, fmt.Sprintf("is %s, %s", show(name), subdomain))
	}
}

func (r *reader) oneOf(value, at string, allowed ...string) {
	var named []string
	for _, a := range allowed {
		if a == value {
			return
		}
		if a != "" {
			named = append(named, a)
		}
	}
	if value == "" {
		r.fault(at, "is missing: it must be "+strings.Join(named, " or "))
		return
	}
	r.fault(at, fmt.Sprintf("is %s, must be %s", show(value), strings.Join(named, " or ")))
}

// upTo holds a number against its bounds, zero and most; a negative most is none.
func (r *reader) upTo(n, most int32, at string) {
	switch {
	case most < 0 && n < 0:
		r.fault(at, fmt.Sprintf("is %d, must be 0 or more", n))
	case most >= 0 && (n < 0 || n > most):
		r.fault(at, fmt.Sprintf("is %d, must be from 0 to %d", n, most))
	}
}
