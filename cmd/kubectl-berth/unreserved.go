package main

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// unreserved warns of gangs that have a slice while the reservation that says which is not in the input, as in a dump
// that left GangReservations out. Nothing else says what they have but their ResourceClaims.
func (w *world) unreserved() {
	known, claimed := map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
	for _, r := range w.objects.Reservations {
		known[client.ObjectKeyFromObject(r)] = true
	}
	for _, c := range w.objects.ResourceClaims {
		if dra.ReservationUID(c) != "" && c.Status.Allocation != nil {
			claimed[types.NamespacedName{Namespace: c.Namespace, Name: c.Labels[berth.LabelReservation]}] = true
		}
	}
	for _, wl := range w.objects.Workloads {
		res := types.NamespacedName{Namespace: wl.Namespace, Name: handedTo(wl)}
		if res.Name == "" || known[res] {
			continue
		}
		w.unrecorded[client.ObjectKeyFromObject(wl)] = true
		has := "what it has counts as free"
		if claimed[res] {
			has = "what it has is known from its ResourceClaims only"
		}
		w.warn("Workload %s/%s has its slice, and GangReservation %s, which says which, is not in the input: %s, and the gang counts as one that waits",
			wl.Namespace, wl.Name, res.Name, has)
	}
}

// handedTo is the reservation that a Ready check hands the Workload's pods over to; none on one that has ended. Only
// Berth's checks name one.
func handedTo(wl *kueue.Workload) string {
	if workload.IsFinished(wl) {
		return ""
	}
	for _, state := range wl.Status.AdmissionChecks {
		for _, update := range state.PodSetUpdates {
			if name := update.Labels[berth.LabelReservation]; name != "" && state.State == kueue.CheckStateReady {
				return name
			}
		}
	}
	return ""
}
