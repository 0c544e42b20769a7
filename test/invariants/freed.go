package invariants

import (
	"encoding/json"
	"maps"
	goslices "slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// freedEarly is invariant 4 for a pinned claim that lost its allocation, or went away with it: no pod that ever stood in
// its reservedFor may still run.
//
// It is exact: that a pod has ended or is gone is final, and the revision since which it is so is compared with the
// revision of the clearing. A pod that ended a moment later was still running then.
func (w *Watcher) freedEarly(key types.NamespacedName, before *version, v version, pinned *pinnedClaim) suspicion {
	how := "lost its allocation"
	if v.gone {
		how = "vanished while it was allocated"
	}
	stood := maps.Clone(pinned.pods) // others may come
	return func(settled bool) *Breach {
		for uid, name := range stood {
			pod := w.memory.pods[uid]
			if pod == nil {
				if settled {
					continue // gone before we could see it
				}
				return newBreach(4, claims, v, before, "%s %s at revision %d; pod %s is not known yet", named(claims, key), how, v.rv, name)
			}
			if pod.reservation != pinned.reservation || !pod.controlled {
				continue // a stranger's: never waited for
			}
			may := w.mayRun(pod, pinned, v.rv)
			if may == "" {
				continue
			}
			b := newBreach(4, claims, v, before, "%s %s at revision %d while Pod %s/%s (uid %s), which stood in its reservedFor, %s",
				named(claims, key), how, v.rv, pod.namespace, pod.name, uid, may)
			if pod.obj != nil {
				b = b.show(pods, pod.obj)
			}
			if pod.gone != 0 && pod.gone <= v.rv {
				at := moment{reservations, types.NamespacedName{Namespace: pod.namespace, Name: pinned.reservation}, v.rv}
				_, sure := w.lookup(at)
				b = b.onlyIf(sure, at)
			}
			return b
		}
		return nil
	}
}

// mayRun says why a pod may still have run at a revision; "" if it cannot have.
func (w *Watcher) mayRun(pod *podStory, pinned *pinnedClaim, rv uint64) string {
	ended := pod.over != 0 && pod.over <= rv
	gone := pod.gone != 0 && pod.gone <= rv
	switch {
	case ended:
		return ""
	case !gone:
		where := "may still run"
		if pod.node != "" {
			where += " on node " + pod.node
		}
		return where
	case pod.node == "" || w.memory.aliveWithin(pod.node, pod.gone, rv):
		return ""
	case w.inQuarantine(pod, pinned, rv):
		return ""
	}
	return "was removed without an end while node " + pod.node + " was NotReady, and status.quarantine of GangReservation " +
		pinned.reservation + " does not list that node"
}

func (w *Watcher) inQuarantine(pod *podStory, pinned *pinnedClaim, rv uint64) bool {
	key := types.NamespacedName{Namespace: pod.namespace, Name: pinned.reservation}
	obj, _ := w.lookup(moment{reservations, key, rv})
	r, ok := obj.(*v1alpha1.GangReservation)
	return ok && goslices.ContainsFunc(r.Status.Quarantine, func(q v1alpha1.QuarantinedShare) bool { return q.Node == pod.node })
}

// quarantined is the other half of invariant 4: a share on which a pod may still run is not given to another gang.
func (w *Watcher) quarantined(key types.NamespacedName, before *version, v version, claim *resourcev1.ResourceClaim, pinned *pinnedClaim) suspicion {
	var devices []v1alpha1.ReservedDevice
	if json.Unmarshal([]byte(claim.Annotations[v1alpha1.AnnotationDevices]), &devices) != nil {
		return func(bool) *Breach { return nil } // its hosts are not known; other rules judge such a claim
	}
	return func(bool) *Breach {
		for other, h := range w.objects[reservations] {
			r, ok := h.at(v.rv).(*v1alpha1.GangReservation)
			if !ok || r.UID == pinned.reservationUID {
				continue
			}
			for _, q := range r.Status.Quarantine {
				for _, d := range devices {
					if d.Driver == q.Driver && d.Pool == q.Pool && contains(d.Hosts, q.Node) {
						return newBreach(4, claims, v, before, "%s was given device %s/%s/%s at revision %d although %s keeps its node %s in quarantine",
							named(claims, key), d.Driver, d.Pool, d.Device, v.rv, named(reservations, other), q.Node).show(reservations, r)
					}
				}
			}
		}
		return nil
	}
}
