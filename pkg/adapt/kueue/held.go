package kueue

import (
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// HostsHeld counts the hosts that the gangs of each ClusterQueue hold. Gangs whose Workload is gone count under the empty
// name.
func HostsHeld(reservations []*berth.GangReservation, workloads []*kueue.Workload, queueOf func(*kueue.Workload) string) map[string]int {
	queues := map[types.UID]string{}
	for _, wl := range workloads {
		queues[wl.UID] = queueOf(wl)
	}
	held := map[string]int{}
	for _, r := range reservations {
		if !r.Holds() {
			continue
		}
		for _, ps := range r.Spec.PodSets {
			held[queues[r.Spec.WorkloadRef.UID]] += len(ps.Hosts)
		}
	}
	return held
}
