package invariants

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// judgeEvent remembers one event and applies the rules that it can touch. before is the version it replaced, nil if
// there was none. The caller holds mu.
func (w *Watcher) judgeEvent(k kind, key types.NamespacedName, before *version, v version) {
	if before != nil && before.obj.GetUID() != v.obj.GetUID() {
		// Deleted and created again inside a gap: two events in one.
		gone := version{since: before.rv + 1, rv: v.rv, seen: v.seen, gone: true, obj: before.obj}
		w.judgeEvent(k, key, before, gone)
		before = nil
	}
	switch obj := v.obj.(type) {
	case *resourcev1.ResourceSlice:
		w.memory.publish(obj, v)
	case *corev1.Node:
		w.memory.turn(obj, v)
	case *resourcev1.ResourceClaim:
		w.judgeClaim(key, before, v, obj)
	case *corev1.Pod:
		story := w.memory.tell(obj, v)
		w.judgeRank(obj, v)
		if before == nil && !v.gone && v.exact() {
			w.judgeTwice(w.servedByCurrent(story, obj, v))
		}
	case *kueue.Workload:
		w.judgeWorkload(key, before, v, obj)
	case *v1alpha1.GangReservation:
		w.judgeReservation(key, before, v, obj)
	}
}

func (w *Watcher) judgeClaim(key types.NamespacedName, before *version, v version, claim *resourcev1.ResourceClaim) {
	pinned := w.memory.pin(claim)
	w.memory.use(key, claim)
	var old *resourcev1.ResourceClaim
	if before != nil {
		old = before.obj.(*resourcev1.ResourceClaim)
	}
	had := old != nil && old.Status.Allocation != nil
	has := claim.Status.Allocation != nil && !v.gone
	if has && !had && !v.initial {
		w.judgeTwice(w.overdraws(key, before, v, pinned))
	}
	if pinned == nil {
		return
	}
	if has {
		w.proven(keepsHold(key, before, v, claim, pinned))
	}
	if has && !had && !v.initial {
		w.judgeTwice(w.quarantined(key, before, v, claim, pinned))
	}
	if had && !has {
		w.judgeTwice(w.freedEarly(key, before, v, pinned))
	}
	if old == nil || v.gone || holding(old) != holding(claim) {
		w.suspect(w.halfHeld(types.NamespacedName{Namespace: key.Namespace, Name: pinned.workload}, v.rv))
	}
}

func (w *Watcher) judgeWorkload(key types.NamespacedName, before *version, v version, workload *kueue.Workload) {
	m := &w.memory
	if v.gone {
		m.gone[workload.UID] = v.seen
		return
	}
	if before == nil && !v.initial {
		m.born[workload.UID] = true
	}
	var old []string
	if before != nil {
		old = w.readyReservations(before.obj.(*kueue.Workload), before.rv)
	}
	for _, name := range w.readyReservations(workload, v.rv) {
		names := m.naming[workload.UID]
		if len(names) == 0 || names[len(names)-1].reservation != name {
			m.naming[workload.UID] = append(names, naming{rv: v.rv, reservation: name})
		}
		if !contains(old, name) && !v.initial {
			w.judgeTwice(w.servesAgain(types.NamespacedName{Namespace: key.Namespace, Name: name}, before, v))
		}
	}
	w.suspect(w.halfHeld(key, v.rv))
}

func (w *Watcher) judgeReservation(key types.NamespacedName, before *version, v version, r *v1alpha1.GangReservation) {
	if !v.gone && r.Status.Phase == v1alpha1.PhaseReleasing && w.memory.releasing[r.UID] == 0 {
		w.memory.releasing[r.UID] = v.rv
	}
	if !v.gone && r.Status.Phase == v1alpha1.PhaseHandedOver {
		w.proven(w.handedOverTwice(key, before, v, r))
	}
	w.suspect(w.halfHeld(types.NamespacedName{Namespace: key.Namespace, Name: r.Spec.WorkloadRef.Name}, v.rv))
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}
