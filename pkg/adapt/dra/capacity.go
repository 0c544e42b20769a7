package dra

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/inventory"
)

// capacities are what a device has, in order of names. problem names one that cannot be counted in thousandths, or whose
// policy Kubernetes releases judge differently.
func capacities(d *resourcev1.Device) (out []inventory.Capacity, problem string) {
	// From the last name on, so that of several problems the first one by name is told.
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(d.Capacity))) {
		c := d.Capacity[name]
		milli, ok := exact(c.Value)
		if !ok {
			problem = fmt.Sprintf("its capacity %s is %s, which cannot be counted", name, c.Value.String())
		}
		capacity := inventory.Capacity{Name: string(name), Milli: milli}
		if c.RequestPolicy != nil {
			if capacity.Policy, ok = policyOf(c.RequestPolicy); !ok {
				problem = fmt.Sprintf("the request policy of its capacity %s cannot be kept", name)
			}
		}
		out = append(out, capacity)
	}
	slices.Reverse(out)
	return out, problem
}

// policyOf reads a request policy; false when it cannot be kept. The bounds of a range must be whole: with the feature gate
// DRAFractionalCapacityRange off kube-scheduler rounds fractions of them up.
func policyOf(p *resourcev1.CapacityRequestPolicy) (*inventory.CapacityPolicy, bool) {
	out, fine := &inventory.CapacityPolicy{}, true
	read := func(q *resource.Quantity, whole bool, otherwise int64) int64 {
		if q == nil {
			return otherwise
		}
		milli, ok := exact(*q)
		fine = fine && ok && (!whole || milli%1000 == 0)
		return milli
	}
	if p.Default != nil {
		out.Default = ptr.To(read(p.Default, false, 0))
	}
	if r := p.ValidRange; r != nil {
		fine = fine && r.Min != nil && (r.Step == nil || r.Step.Sign() > 0)
		out.Range = &inventory.CapacityRange{Min: read(r.Min, true, 0), Max: read(r.Max, true, math.MaxInt64), Step: read(r.Step, true, 0)}
	}
	for i := range p.ValidValues {
		out.Values = append(out.Values, read(&p.ValidValues[i], false, 0))
	}
	return out, fine && slices.IsSorted(out.Values)
}

// exact is a quantity in thousandths; false when it is negative, too large, or not a whole number of them.
func exact(q resource.Quantity) (int64, bool) {
	if q.Sign() < 0 || q.CmpInt64(math.MaxInt64/1000) > 0 {
		return 0, false
	}
	milli := q.MilliValue()
	return milli, q.Cmp(*resource.NewMilliQuantity(milli, resource.DecimalSI)) == 0
}

// asked are the capacities that a request asks for, in order of names; false when one cannot be counted.
func asked(c *resourcev1.CapacityRequirements) ([]inventory.Amount, string) {
	if c == nil {
		return nil, ""
	}
	var out []inventory.Amount
	for _, name := range slices.Sorted(maps.Keys(c.Requests)) {
		q := c.Requests[name]
		milli, ok := exact(q)
		if !ok {
			return nil, fmt.Sprintf("%s of capacity %s", q.String(), name)
		}
		out = append(out, inventory.Amount{Name: string(name), Milli: milli})
	}
	return out, ""
}

// consumed is what an allocation of a shared device records, as quantities of the kind that kube-scheduler writes: those of
// the request, of the policy, or of the device. It fails when the device has changed, so that the share is another one than was
// decided on.
func consumed(request *resourcev1.CapacityRequirements, d *resourcev1.Device, decided []inventory.Amount) (map[resourcev1.QualifiedName]resource.Quantity, error) {
	amounts, problem := asked(request)
	device, what := capacities(d)
	share, ok := (&inventory.Device{Shared: true, Capacity: device}).Share(amounts)
	if problem != "" || what != "" || !ok || !slices.Equal(share, decided) {
		return nil, fmt.Errorf("a share of device %s takes something else than was decided on", d.Name)
	}
	var out map[resourcev1.QualifiedName]resource.Quantity
	for _, a := range share {
		if out == nil {
			out = make(map[resourcev1.QualifiedName]resource.Quantity, len(share))
		}
		name := resourcev1.QualifiedName(a.Name)
		out[name] = written(a.Milli, d.Capacity[name], request, name)
	}
	return out, nil
}

// written finds the quantity of an amount among those that the objects name, and makes one where it was rounded to a step.
func written(milli int64, c resourcev1.DeviceCapacity, request *resourcev1.CapacityRequirements, name resourcev1.QualifiedName) resource.Quantity {
	format := c.Value.Format
	var named []resource.Quantity
	if p := c.RequestPolicy; p != nil {
		named = append(named, p.ValidValues...)
		if p.Default != nil {
			named = append(named, *p.Default)
		}
		if p.ValidRange != nil && p.ValidRange.Min != nil {
			named = append(named, *p.ValidRange.Min)
			if p.ValidRange.Step != nil {
				format = p.ValidRange.Step.Format
			}
		}
	}
	if request != nil {
		if q, has := request.Requests[name]; has {
			named = append(named, q)
		}
	}
	for _, q := range append(named, c.Value) {
		if m, ok := exact(q); ok && m == milli {
			return q.DeepCopy()
		}
	}
	return *resource.NewMilliQuantity(milli, format)
}

// taken reads what an allocation says that it takes. An amount that cannot be counted counts for more than it is.
func taken(consumed map[resourcev1.QualifiedName]resource.Quantity) []inventory.Amount {
	var out []inventory.Amount
	for name, q := range consumed {
		out = append(out, inventory.Amount{Name: string(name), Milli: max(0, ceil(q))})
	}
	slices.SortFunc(out, func(a, b inventory.Amount) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// shareID names one share of a device for ever: the same claim, request and device have the same one, however often the
// allocation is written, and no two others have.
func shareID(claim types.UID, request, driver, pool, device string) *types.UID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", claim, request, driver, pool, device))
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // Version 8 of RFC 9562: made by the application's own rule.
	return ptr.To(types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])))
}
