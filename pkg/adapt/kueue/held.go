package kueue

import (
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// HostsHeld counts the hosts that the gangs of each ClusterQueue hold. Gangs whose Workload is gone count under the empty
// name. What was given back does not count, although its reservation may stay for a host in quarantine.
func HostsHeld(s *snapshot.Snapshot, queueOf func(*kueue.Workload) string) map[string]int {
	queues := map[types.UID]string{}
	for _, wl := range s.Workloads {
		queues[wl.UID] = queueOf(wl)
	}
	claimed := map[string]bool{}
	for _, c := range s.ResourceClaims {
		claimed[dra.ReservationUID(c)] = true
	}
	held := map[string]int{}
	for _, r := range s.Reservations {
		if dra.Released(r, claimed[string(r.UID)]) {
			continue
		}
		for _, ps := range r.Spec.PodSets {
			held[queues[r.Spec.WorkloadRef.UID]] += len(ps.Hosts)
		}
	}
	return held
}
