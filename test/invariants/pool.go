package invariants

import (
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// poolKey names a DRA pool. Names are compared exactly.
type poolKey struct{ driver, pool string }

// counterKey names a counter within a pool.
type counterKey struct{ set, counter string }

// edition is one version of one ResourceSlice, reduced to its arithmetic.
type edition struct {
	rv         uint64
	seen       time.Time
	generation int64
	counters   map[counterKey]resource.Quantity
	devices    map[string]device
}

// device is what one allocation of it takes.
type device struct {
	charge map[counterKey]resource.Quantity
	shared bool // it may be given out in shares; all of them together take its charge once
	// capacity is what its shares take from.
	capacity amounts
}

// amounts are quantities of a device's capacities.
type amounts = map[resourcev1.QualifiedName]resource.Quantity

// pool is everything a driver ever published under one name, in order. Nothing is forgotten: a device that a newer
// generation dropped stays charged with what it was last known to take.
type pool struct {
	editions []edition
	newest   *view // of all editions; nil if it must be built
}

// view is the sum of editions.
type view struct {
	counters map[counterKey]resource.Quantity
	devices  map[string]device
}

// publish enters a version of a slice. That a slice is gone changes nothing.
func (m *memory) publish(slice *resourcev1.ResourceSlice, v version) {
	if v.gone {
		return
	}
	e := edition{
		rv: v.rv, seen: v.seen, generation: slice.Spec.Pool.Generation,
		counters: map[counterKey]resource.Quantity{}, devices: map[string]device{},
	}
	if v.initial {
		e.seen = time.Time{} // it has been there for longer than we
	}
	for _, set := range slice.Spec.SharedCounters {
		for name, counter := range set.Counters {
			e.counters[counterKey{set.Name, name}] = counter.Value
		}
	}
	for _, d := range slice.Spec.Devices {
		charge := map[counterKey]resource.Quantity{}
		for _, consumption := range d.ConsumesCounters {
			for name, counter := range consumption.Counters {
				add(charge, counterKey{consumption.CounterSet, name}, counter.Value)
			}
		}
		capacity := amounts{}
		for name, has := range d.Capacity {
			capacity[name] = has.Value
		}
		e.devices[d.Name] = device{charge: charge, shared: ptr.Deref(d.AllowMultipleAllocations, false), capacity: capacity}
	}
	key := poolKey{slice.Spec.Driver, slice.Spec.Pool.Name}
	p := m.pools[key]
	if p == nil {
		p = &pool{}
		m.pools[key] = p
	}
	p.editions, p.newest = append(p.editions, e), nil
}

// at returns the view at a revision, of editions that were known before a time. A later edition wins unless its
// generation is older.
func (p *pool) at(rv uint64, before time.Time) *view {
	if p == nil {
		return &view{}
	}
	var chosen []edition
	for _, e := range p.editions {
		if e.rv <= rv && e.seen.Before(before) {
			chosen = append(chosen, e)
		}
	}
	if len(chosen) == len(p.editions) && p.newest != nil {
		return p.newest
	}
	v := &view{counters: map[counterKey]resource.Quantity{}, devices: map[string]device{}}
	counterFrom, deviceFrom := map[counterKey]int64{}, map[string]int64{}
	for _, e := range chosen {
		for key, value := range e.counters {
			if e.generation >= counterFrom[key] {
				v.counters[key], counterFrom[key] = value, e.generation
			}
		}
		for name, d := range e.devices {
			if e.generation >= deviceFrom[name] {
				v.devices[name], deviceFrom[name] = d, e.generation
			}
		}
	}
	if len(chosen) == len(p.editions) {
		p.newest = v
	}
	return v
}

// kinder returns a view in which every counter and capacity is as large and every charge as small as in either of two views. What
// the earlier one does not know is as in the later.
func kinder(now, earlier *view) *view {
	if now == earlier {
		return now
	}
	v := &view{counters: greater(now.counters, earlier.counters), devices: map[string]device{}}
	for name, d := range now.devices {
		if before, known := earlier.devices[name]; known {
			d = device{
				charge: lesser(d.charge, before.charge), shared: d.shared || before.shared,
				capacity: greater(d.capacity, before.capacity),
			}
		}
		v.devices[name] = d
	}
	return v
}

// greater is a with the quantities that are larger in b.
func greater[K comparable](a, b map[K]resource.Quantity) map[K]resource.Quantity {
	most := map[K]resource.Quantity{}
	for key, amount := range a {
		if other, ok := b[key]; ok && other.Cmp(amount) > 0 {
			amount = other
		}
		most[key] = amount
	}
	return most
}

// lesser are the quantities that are in both, as in the one where they are smaller.
func lesser(a, b map[counterKey]resource.Quantity) map[counterKey]resource.Quantity {
	least := map[counterKey]resource.Quantity{}
	for key, amount := range a {
		if other, ok := b[key]; ok {
			if other.Cmp(amount) < 0 {
				amount = other
			}
			least[key] = amount
		}
	}
	return least
}

// use remembers which pools a claim has devices of.
func (m *memory) use(key types.NamespacedName, claim *resourcev1.ResourceClaim) {
	for _, result := range held(claim) {
		pool := poolKey{result.Driver, result.Pool}
		if m.users[pool] == nil {
			m.users[pool] = map[types.NamespacedName]bool{}
		}
		m.users[pool][key] = true
	}
}

// held returns the results that take devices away from others: all but those with adminAccess.
func held(claim *resourcev1.ResourceClaim) []resourcev1.DeviceRequestAllocationResult {
	if claim == nil || claim.Status.Allocation == nil {
		return nil
	}
	var results []resourcev1.DeviceRequestAllocationResult
	for _, result := range claim.Status.Allocation.Devices.Results {
		if !ptr.Deref(result.AdminAccess, false) {
			results = append(results, result)
		}
	}
	return results
}

func add[K comparable](to map[K]resource.Quantity, key K, amount resource.Quantity) {
	sum := to[key].DeepCopy()
	sum.Add(amount)
	to[key] = sum
}
