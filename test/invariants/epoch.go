package invariants

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// servesAgain is invariant 6 for a check that became Ready: its reservation was never given back before, and its name
// was never another's that had been handed over. Pods carry the name only.
func (w *Watcher) servesAgain(key types.NamespacedName, before *version, v version) suspicion {
	return func(settled bool) *Breach {
		workload := named(workloads, types.NamespacedName{Namespace: v.obj.GetNamespace(), Name: v.obj.GetName()})
		at := moment{reservations, key, v.rv}
		obj, sure := w.lookup(at)
		r, ok := obj.(*v1alpha1.GangReservation)
		switch {
		case !ok && sure:
			return nil // invariant 2 says so
		case !ok: // it may have come and gone while the watch was behind, and it has used up its name
			return newBreach(6, workloads, v, before, "the check of %s became Ready at revision %d for %s, which was not seen",
				workload, v.rv, named(reservations, key)).onlyIf(sure, at)
		}
		if since := w.memory.releasing[r.UID]; since != 0 && since <= v.rv {
			return newBreach(6, workloads, v, before, "the check of %s became Ready at revision %d for %s, which is Releasing since revision %d",
				workload, v.rv, named(reservations, key), since).show(reservations, r)
		}
		known := false
		for _, s := range w.memory.served[key] {
			if s.uid != r.UID && s.rv < v.rv {
				return newBreach(6, workloads, v, before, "the check of %s became Ready at revision %d for %s (uid %s), a name under which the reservation with uid %s has served before",
					workload, v.rv, named(reservations, key), r.UID, s.uid).show(reservations, r)
			}
			known = known || s.uid == r.UID
		}
		if !known {
			w.memory.served[key] = append(w.memory.served[key], serving{rv: v.rv, uid: r.UID})
		}
		return nil
	}
}

// handedOverTwice is invariant 6 for a reservation that is handed over: no other one of the same Workload is. One kind
// shows it, so it needs no confirmation.
func (w *Watcher) handedOverTwice(key types.NamespacedName, before *version, v version, r *v1alpha1.GangReservation) *Breach {
	if before != nil && before.obj.(*v1alpha1.GangReservation).Status.Phase == v1alpha1.PhaseHandedOver {
		return nil
	}
	for other, h := range w.objects[reservations] {
		last, _ := h.last()
		if other == key || last.gone || last.obj == nil {
			continue
		}
		o := last.obj.(*v1alpha1.GangReservation)
		if o.Spec.WorkloadRef.UID == r.Spec.WorkloadRef.UID && o.Status.Phase == v1alpha1.PhaseHandedOver {
			return newBreach(6, reservations, v, before, "%s was handed over at revision %d while %s is, for the same Workload %s (uid %s)",
				named(reservations, key), v.rv, named(reservations, other), r.Spec.WorkloadRef.Name, r.Spec.WorkloadRef.UID).show(reservations, o)
		}
	}
	return nil
}

// servedByCurrent is invariant 6 for a pod that was just created: it carries the reservation that the Workload's check
// named last. The check need no longer be Ready: a Job controller may create a pod while an eviction is on its way.
func (w *Watcher) servedByCurrent(story *podStory, pod *corev1.Pod, v version) suspicion {
	reservation, controlled := story.reservation, story.controlled // as the pod was created
	key := types.NamespacedName{Namespace: pod.Namespace, Name: reservation}
	return func(settled bool) *Breach {
		if reservation == "" || !controlled {
			return nil
		}
		at := moment{reservations, key, v.rv}
		obj, sure := w.lookup(at)
		r, ok := obj.(*v1alpha1.GangReservation)
		switch {
		case !ok && !sure:
			return newBreach(6, pods, v, nil, "Pod %s/%s was created at revision %d with %s, which was not seen",
				pod.Namespace, pod.Name, v.rv, named(reservations, key)).onlyIf(sure, at)
		case !ok || !uses(pod, r):
			return nil // forged: nothing of Berth's serves it
		}
		uid := r.Spec.WorkloadRef.UID
		var current naming
		for _, n := range w.memory.naming[uid] {
			if n.rv <= v.rv {
				current = n
			}
		}
		switch {
		case current.reservation == reservation:
			return nil
		case current.reservation == "" && !w.memory.born[uid]:
			return nil // it may have been named before the watcher came
		case current.reservation == "":
			current.reservation = "none"
		}
		return newBreach(6, pods, v, nil, "Pod %s/%s was created at revision %d with %s, but the reservation that the check of Workload %s named last was %s",
			pod.Namespace, pod.Name, v.rv, named(reservations, key), r.Spec.WorkloadRef.Name, current.reservation).show(reservations, r)
	}
}

// uses reports whether a pod names a claim of the reservation.
func uses(pod *corev1.Pod, r *v1alpha1.GangReservation) bool {
	for _, claim := range pod.Spec.ResourceClaims {
		for _, set := range r.Spec.PodSets {
			for _, reserved := range set.Claims {
				if claim.ResourceClaimName != nil && strings.HasPrefix(*claim.ResourceClaimName, reserved.Prefix+"-") {
					return true
				}
			}
		}
	}
	return false
}
