package invariants

import (
	"fmt"
	"maps"
	goslices "slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// tally adds up what claims take of one pool, by one view of it, as kube-scheduler's allocator would.
//
// A result with a shareID is a share: it takes its consumedCapacity from the capacities of its device, and many may stand
// in one device if that allows multiple allocations. A capacity that a share does not speak of it does not take from. A
// result without a shareID takes the device whole. A device's counters are taken once, by whoever is in it.
type tally struct {
	view *view
	in   poolKey

	whole    map[string]int     // results without a shareID, by device
	shares   map[string]int     // results with one
	consumed map[string]amounts // by them, by device
	used     map[counterKey]resource.Quantity
	holders  map[string][]*resourcev1.ResourceClaim // by device
}

func newTally(v *view, in poolKey) *tally {
	return &tally{
		view: v, in: in,
		whole: map[string]int{}, shares: map[string]int{}, consumed: map[string]amounts{},
		used: map[counterKey]resource.Quantity{}, holders: map[string][]*resourcev1.ResourceClaim{},
	}
}

// of are the results by which a claim takes something of the pool.
func (t *tally) of(claim *resourcev1.ResourceClaim) []resourcev1.DeviceRequestAllocationResult {
	return goslices.DeleteFunc(held(claim), func(r resourcev1.DeviceRequestAllocationResult) bool {
		return (poolKey{r.Driver, r.Pool}) != t.in
	})
}

// take enters what a claim holds.
func (t *tally) take(claim *resourcev1.ResourceClaim) {
	for _, result := range t.of(claim) {
		name := result.Device
		d := t.view.devices[name]
		if t.whole[name]+t.shares[name] == 0 || !d.shared {
			for counter, amount := range d.charge {
				add(t.used, counter, amount)
			}
		}
		if result.ShareID == nil {
			t.whole[name]++
		} else {
			t.shares[name]++
		}
		if t.consumed[name] == nil {
			t.consumed[name] = amounts{}
		}
		for capacity, amount := range result.ConsumedCapacity {
			add(t.consumed[name], capacity, amount)
		}
		t.holders[name] = append(t.holders[name], claim)
	}
}

// excess says of what the claims take too much, in what one of them takes from; "" if of nothing. other is another claim
// that has it.
func (t *tally) excess(claim *resourcev1.ResourceClaim) (what string, other *resourcev1.ResourceClaim) {
	pool := fmt.Sprintf("pool %s/%s", t.in.driver, t.in.pool)
	touched := map[counterKey]bool{}
	for _, result := range t.of(claim) {
		name := result.Device
		d := t.view.devices[name]
		whole, shares := t.whole[name], t.shares[name]
		switch {
		case !d.shared && whole+shares > 1:
			return fmt.Sprintf("device %s of %s is then allocated %d times", name, pool, whole+shares), t.holder(name, claim)
		case whole > 1 || whole == 1 && shares > 0:
			return fmt.Sprintf("device %s of %s, which can be shared, is then allocated whole %d times and in %d shares",
				name, pool, whole, shares), t.holder(name, claim)
		}
		for _, capacity := range goslices.Sorted(maps.Keys(t.consumed[name])) {
			total, known := d.capacity[capacity]
			if sum := t.consumed[name][capacity]; known && sum.Cmp(total) > 0 {
				return fmt.Sprintf("of capacity %s of device %s in %s, which is %s, %s is then taken",
					capacity, name, pool, total.String(), sum.String()), t.holder(name, claim)
			}
		}
		for counter := range d.charge {
			touched[counter] = true
		}
	}
	for counter := range touched {
		total, known := t.view.counters[counter]
		sum := t.used[counter]
		if !known || sum.Cmp(total) <= 0 {
			continue
		}
		for name := range t.holders {
			if _, takes := t.view.devices[name].charge[counter]; takes && other == nil {
				other = t.holder(name, claim)
			}
		}
		return fmt.Sprintf("of counter %s/%s in %s, which is %s, %s is then taken",
			counter.set, counter.counter, pool, total.String(), sum.String()), other
	}
	return "", nil
}

// holder is a claim that holds a device beside one; nil if there is none.
func (t *tally) holder(device string, beside *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	for _, claim := range t.holders[device] {
		if claim != beside {
			return claim
		}
	}
	return nil
}
