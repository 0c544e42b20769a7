package invariants

import (
	"math"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// driverGrace is how old an edition must be before an allocator is expected to know it.
const driverGrace = 5 * time.Second

// overdraws is invariant 1 for a claim that was just allocated: no device, no capacity of a shared device and no counter
// that it takes from is given out more often than it exists.
//
// The claims are one kind, so what they hold together at the revision of this write is exact. The slices are another:
// they are taken as they were at that revision, or as they were a moment before if that is kinder.
func (w *Watcher) overdraws(key types.NamespacedName, before *version, v version, pinned *pinnedClaim) suspicion {
	claim := v.obj.(*resourcev1.ResourceClaim)
	return func(settled bool) *Breach {
		for _, pool := range poolsOf(claim) {
			published := w.memory.pools[pool]
			view := kinder(published.at(v.rv, farFuture), published.at(v.rv, v.seen.Add(-driverGrace)))
			what, other := w.excess(claim, key, pool, view, v.rv, settled)
			if what == "" {
				continue
			}
			if pinned == nil && !w.fenced(pool, v.rv) {
				continue // others may do as they like where no fence stands
			}
			b := newBreach(1, claims, v, before, "%s was allocated at revision %d although %s", named(claims, key), v.rv, what)
			if other != nil {
				b = b.show(claims, other)
			}
			return b
		}
		return nil
	}
}

var farFuture = time.Unix(math.MaxInt32, 0)

// excess says what claim takes too much of a pool, by one view of it; "" if nothing. other is a claim that has it.
func (w *Watcher) excess(claim *resourcev1.ResourceClaim, key types.NamespacedName, in poolKey, view *view, rv uint64, settled bool) (string, *resourcev1.ResourceClaim) {
	t := newTally(view, in)
	for _, result := range t.of(claim) {
		if _, known := view.devices[result.Device]; !known && !settled {
			return "device " + result.Device + " is not known", nil
		}
	}
	for user := range w.memory.users[in] {
		h, known := w.objects[claims][user]
		if !known {
			delete(w.memory.users[in], user) // forgotten
			continue
		}
		if other, _ := h.at(rv).(*resourcev1.ResourceClaim); user != key {
			t.take(other)
		}
	}
	t.take(claim)
	return t.excess(claim)
}

func poolsOf(claim *resourcev1.ResourceClaim) []poolKey {
	var keys []poolKey
	seen := map[poolKey]bool{}
	for _, result := range held(claim) {
		key := poolKey{result.Driver, result.Pool}
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// fenced reports whether at a revision a fence stood around a pool and was known to be in force.
func (w *Watcher) fenced(pool poolKey, rv uint64) bool {
	for _, h := range w.objects[fences] {
		fence, ok := h.at(rv).(*v1alpha1.AcceleratorPool)
		if ok && fence.Spec.Driver == pool.driver && fence.Spec.Fence != v1alpha1.FenceObserve &&
			selects(fence.Spec.PoolSelector, pool.pool) &&
			meta.IsStatusConditionTrue(fence.Status.Conditions, v1alpha1.PoolFenced) {
			return true
		}
	}
	return false
}

func selects(selector *v1alpha1.PoolSelector, pool string) bool {
	if selector == nil || contains(selector.Names, pool) {
		return true
	}
	for _, prefix := range selector.Prefixes {
		if len(pool) >= len(prefix) && pool[:len(prefix)] == prefix {
			return true
		}
	}
	return false
}
