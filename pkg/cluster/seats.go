package cluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// seat is the room that a reserved gang needs for a pod that is not bound yet.
type seat struct {
	node, name string
	requests   map[string]int64
}

// seats lists the seats of all reservations that may still get pods.
func seats(s *snapshot.Snapshot, without map[string]bool) []seat {
	byHostname := hostnames(s.Nodes)
	pods := map[string][]*corev1.Pod{}
	for _, p := range s.Pods {
		if r := reservationOf(p); r != "" {
			pods[r] = append(pods[r], p)
		}
	}
	workloads := map[workloadKey]*kueue.Workload{}
	for _, w := range s.Workloads {
		workloads[keyOf(w)] = w
	}
	var out []seat
	for _, r := range s.Reservations {
		w := workloads[workloadOf(r)]
		if w == nil || without[nameOf(r)] || !mayGetPods(r) {
			continue
		}
		out = append(out, seatsOf(r, requestsOf(w), pods[nameOf(r)], byHostname)...)
	}
	return out
}

// mayGetPods reports whether pods may still be made on the reservation: not for a target, nor once it is being released.
func mayGetPods(r *berth.GangReservation) bool {
	return r.Holds() && r.Status.Phase != berth.PhaseReleasing
}

// hostnames are the names of nodes by their hostname label. Of two nodes with one hostname the first by name counts,
// whatever the order.
func hostnames(list []*corev1.Node) map[string]string {
	out := make(map[string]string, len(list))
	for _, n := range list {
		name := n.Labels[corev1.LabelHostname]
		if other, twice := out[name]; name != "" && (!twice || inventory.Natural(n.Name, other) < 0) {
			out[name] = n.Name
		}
	}
	return out
}

// workloadKey tells a Workload from a later one of the same name.
type workloadKey struct {
	types.NamespacedName
	uid types.UID
}

func keyOf(w *kueue.Workload) workloadKey {
	return workloadKey{types.NamespacedName{Namespace: w.Namespace, Name: w.Name}, w.UID}
}

// workloadOf is the Workload that a reservation serves.
func workloadOf(r *berth.GangReservation) workloadKey {
	return workloadKey{types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.WorkloadRef.Name}, r.Spec.WorkloadRef.UID}
}

// requestsOf is what a pod of each pod set takes.
func requestsOf(w *kueue.Workload) map[string]map[string]int64 {
	sets := map[string]map[string]int64{}
	for i := range w.Spec.PodSets {
		sets[string(w.Spec.PodSets[i].Name)] = nodes.Requests(&w.Spec.PodSets[i].Template.Spec)
	}
	return sets
}

// seatsOf lists the seats of a reservation with all pods that name it, in any order. A pod that is bound is counted by
// itself, and its rank has no seat; nor has one that succeeded. One whose pod waits has room for that pod, which may take
// more than its template says.
func seatsOf(r *berth.GangReservation, requests map[string]map[string]int64, pods []*corev1.Pod, byHostname map[string]string) []seat {
	sets := make([]*berth.ReservedPodSet, 0, len(r.Spec.PodSets))
	for i := range r.Spec.PodSets {
		sets = append(sets, &r.Spec.PodSets[i])
	}
	slices.SortFunc(sets, func(a, b *berth.ReservedPodSet) int { return inventory.Natural(a.Name, b.Name) })
	come := attendanceOf(r, pods)
	var out []seat
	for _, ps := range sets {
		for i, hostname := range ps.Hosts {
			node, known := byHostname[hostname]
			if !known || requests[ps.Name] == nil {
				continue
			}
			needs, needed := come.needs(rank{ps.Name, i}, node, requests[ps.Name])
			if !needed {
				continue
			}
			name := fmt.Sprintf("%s/%s[%s/%d]", r.Namespace, r.Spec.WorkloadRef.Name, ps.Name, i)
			out = append(out, seat{node: node, name: name, requests: needs})
		}
	}
	return out
}

// reservationOf is namespace/name of the reservation that the pod says it belongs to, or "".
func reservationOf(p *corev1.Pod) string {
	name := p.Labels[berth.LabelReservation]
	if name == "" {
		return ""
	}
	return p.Namespace + "/" + name
}
