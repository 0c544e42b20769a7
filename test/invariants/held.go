package invariants

import (
	"fmt"
	goslices "slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// readyReservations returns the reservations that Ready checks of Berth's name in their podSetUpdates, as Berth said it.
func (w *Watcher) readyReservations(workload *kueue.Workload, rv uint64) []string {
	var names []string
	for _, state := range workload.Status.AdmissionChecks {
		if state.State != kueue.CheckStateReady || restored(workload, state.Name) {
			continue
		}
		check, ok := w.objects[checks][types.NamespacedName{Name: string(state.Name)}].at(rv).(*kueue.AdmissionCheck)
		if ok && check.Spec.ControllerName != v1alpha1.ControllerName {
			continue
		}
		for _, update := range state.PodSetUpdates {
			if name := update.Labels[v1alpha1.LabelReservation]; name != "" && !contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// halfHeld is invariant 2 for one Workload, from a revision on: at every later change of the Workload, of a reservation
// that it names and of their claims. The judgement at each of them is exact, because it is made on the versions at that
// revision.
//
// That quota is reserved is no condition: on a Workload that has lost it, Ready is stale, but as long as it says Ready
// Kueue may admit again in one write, so the claims must be held.
func (w *Watcher) halfHeld(key types.NamespacedName, from uint64) suspicion {
	return func(bool) *Breach {
		for _, rv := range w.revisionsOf(key, from) {
			if b := w.halfHeldAt(key, rv); b != nil {
				return b
			}
		}
		return nil
	}
}

// revisionsOf returns from and all later revisions at which the judgement of a Workload may change.
func (w *Watcher) revisionsOf(key types.NamespacedName, from uint64) []uint64 {
	revisions := w.objects[workloads][key].revisionsFrom(from, []uint64{from})
	seen := map[string]bool{}
	for _, rv := range goslices.Clone(revisions) {
		workload, ok := w.objects[workloads][key].at(rv).(*kueue.Workload)
		if !ok || settledFor(workload) {
			continue
		}
		for _, name := range w.readyReservations(workload, rv) {
			if seen[name] {
				continue
			}
			seen[name] = true
			h := w.objects[reservations][types.NamespacedName{Namespace: key.Namespace, Name: name}]
			revisions = h.revisionsFrom(from, revisions)
			if last, ok := h.last(); ok {
				for _, promised := range promises(last.obj.(*v1alpha1.GangReservation)) {
					claim := types.NamespacedName{Namespace: key.Namespace, Name: promised.name}
					revisions = w.objects[claims][claim].revisionsFrom(from, revisions)
				}
			}
		}
	}
	goslices.Sort(revisions)
	return goslices.Compact(revisions)
}

// settledFor reports whether nothing needs to be held for a Workload whatever its check says.
func settledFor(workload *kueue.Workload) bool {
	return workload.DeletionTimestamp != nil || meta.IsStatusConditionTrue(workload.Status.Conditions, kueue.WorkloadFinished)
}

func (w *Watcher) halfHeldAt(key types.NamespacedName, rv uint64) *Breach {
	workload, ok := w.objects[workloads][key].at(rv).(*kueue.Workload)
	if !ok || settledFor(workload) {
		return nil
	}
	for _, name := range w.readyReservations(workload, rv) {
		resKey := types.NamespacedName{Namespace: key.Namespace, Name: name}
		at := moment{reservations, resKey, rv}
		obj, sure := w.lookup(at)
		r, ok := obj.(*v1alpha1.GangReservation)
		if !ok {
			b := w.blame(2, rv, workloads, key, "at revision %d the check of %s is Ready for GangReservation %s, which does not exist",
				rv, named(workloads, key), resKey)
			return b.onlyIf(sure, at)
		}
		if r.Spec.WorkloadRef.UID != workload.UID {
			return w.blame(6, rv, workloads, key, "at revision %d the check of %s (uid %s) is Ready for GangReservation %s, which serves the Workload with uid %s",
				rv, named(workloads, key), workload.UID, resKey, r.Spec.WorkloadRef.UID)
		}
		for _, promised := range promises(r) {
			claimKey := types.NamespacedName{Namespace: key.Namespace, Name: promised.name}
			at := moment{claims, claimKey, rv}
			obj, sure := w.lookup(at)
			claim, _ := obj.(*resourcev1.ResourceClaim)
			invariant, lack := lacks(claim, promised, r)
			if lack == "" {
				continue
			}
			k, offender := claims, claimKey
			if _, known := w.objects[claims][claimKey].last(); !known {
				k, offender = workloads, key
			}
			b := w.blame(invariant, rv, k, offender, "at revision %d the check of %s is Ready for GangReservation %s, but its %s %s",
				rv, named(workloads, key), resKey, named(claims, claimKey), lack)
			return b.show(workloads, workload).show(reservations, r).onlyIf(sure, at)
		}
	}
	return nil
}

// blame makes a breach of the version that an object had at a revision.
func (w *Watcher) blame(invariant int, rv uint64, k kind, key types.NamespacedName, format string, args ...any) *Breach {
	h := w.objects[k][key]
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].rv <= rv || i == 0 {
			var before *version
			if i > 0 {
				before = &h[i-1]
			}
			return newBreach(invariant, k, h[i], before, format, args...)
		}
	}
	return &Breach{Invariant: invariant, What: fmt.Sprintf(format, args...)}
}

// promise is one ResourceClaim that a reservation's spec speaks of.
type promise struct {
	name    string
	devices []string // as "request driver/pool/device", sorted
}

func promises(r *v1alpha1.GangReservation) []promise {
	var all []promise
	for _, set := range r.Spec.PodSets {
		for _, claim := range set.Claims {
			byInstance := map[int32][]string{}
			for rank := range set.Hosts { // an instance without a device is half a gang too
				byInstance[int32(rank)/max(claim.PodsPerClaim, 1)] = nil
			}
			for _, d := range claim.Devices {
				byInstance[d.Instance] = append(byInstance[d.Instance], deviceText(d.Request, d.Driver, d.Pool, d.Device))
			}
			for instance, devices := range byInstance {
				goslices.Sort(devices)
				all = append(all, promise{name: fmt.Sprintf("%s-%d", claim.Prefix, instance), devices: devices})
			}
		}
	}
	goslices.SortFunc(all, func(a, b promise) int { return strings.Compare(a.name, b.name) })
	return all
}

// lacks says what a claim lacks of a promise, and which invariant that breaks.
func lacks(claim *resourcev1.ResourceClaim, promised promise, r *v1alpha1.GangReservation) (int, string) {
	switch {
	case claim == nil:
		return 2, "does not exist"
	case claim.Status.Allocation == nil:
		return 2, "is not allocated"
	case claim.Annotations[v1alpha1.AnnotationReservationUID] != string(r.UID):
		return 6, fmt.Sprintf("serves the reservation with uid %q", claim.Annotations[v1alpha1.AnnotationReservationUID])
	case claim.Annotations[v1alpha1.AnnotationEpoch] != r.Spec.Epoch:
		return 6, fmt.Sprintf("serves epoch %q, not %q", claim.Annotations[v1alpha1.AnnotationEpoch], r.Spec.Epoch)
	case !contains(claim.Finalizers, v1alpha1.FinalizerHold):
		return 2, "has not the finalizer " + v1alpha1.FinalizerHold
	case !hasHold(claim, r.Spec.WorkloadRef.Name, r.Spec.WorkloadRef.UID):
		return 2, "is not held by the Workload in reservedFor"
	}
	var has []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		has = append(has, deviceText(result.Request, result.Driver, result.Pool, result.Device))
	}
	goslices.Sort(has)
	if !goslices.Equal(has, promised.devices) {
		return 2, fmt.Sprintf("holds [%s] instead of [%s]", strings.Join(has, ", "), strings.Join(promised.devices, ", "))
	}
	return 0, ""
}

func deviceText(request, driver, pool, device string) string {
	return request + " " + driver + "/" + pool + "/" + device
}

// holding is what of a claim matters to halfHeld, so that the comings and goings of pods do not cause judgements.
func holding(claim *resourcev1.ResourceClaim) string {
	var text strings.Builder
	for _, result := range held(claim) {
		text.WriteString(deviceText(result.Request, result.Driver, result.Pool, result.Device) + ";")
	}
	for _, entry := range claim.Status.ReservedFor {
		if entry.APIGroup != "" {
			text.WriteString(entry.APIGroup + "/" + entry.Resource + "/" + string(entry.UID) + ";")
		}
	}
	fmt.Fprint(&text, claim.Finalizers, claim.Annotations[v1alpha1.AnnotationReservationUID], claim.Annotations[v1alpha1.AnnotationEpoch])
	return text.String()
}

// keepsHold is invariant 3. One version of one claim shows it.
func keepsHold(key types.NamespacedName, before *version, v version, claim *resourcev1.ResourceClaim, pinned *pinnedClaim) *Breach {
	if hasHold(claim, pinned.workload, pinned.workloadUID) {
		return nil
	}
	return newBreach(3, claims, v, before, "%s is allocated at revision %d without the reservedFor entry of Workload %s (uid %s): a pod that cannot be scheduled may undo it",
		named(claims, key), v.rv, pinned.workload, pinned.workloadUID)
}

func hasHold(claim *resourcev1.ResourceClaim, workload string, uid types.UID) bool {
	return goslices.ContainsFunc(claim.Status.ReservedFor, func(entry resourcev1.ResourceClaimConsumerReference) bool {
		return entry.APIGroup == kueue.GroupVersion.Group && entry.Resource == "workloads" && entry.Name == workload && entry.UID == uid
	})
}
