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

// labelPodSet is Kueue's label with the name of a pod's pod set.
const labelPodSet = "kueue.x-k8s.io/podset"

// seat is the room that a reserved gang needs for a pod that is not bound yet.
type seat struct {
	node, name string
	requests   map[string]int64
}

// seats lists the seats of all reservations that may still get pods. Pods that are bound already are counted by
// themselves, so per host there are as many seats as ranks without such a pod.
func seats(s *snapshot.Snapshot, without map[string]bool) []seat {
	byHostname := hostnames(s.Nodes)
	bound := map[string][]*corev1.Pod{}
	for _, p := range s.Pods {
		if r := reservationOf(p); r != "" && nodes.Occupies(p) {
			bound[r] = append(bound[r], p)
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
		out = append(out, seatsOf(r, requestsOf(w), bound[nameOf(r)], byHostname)...)
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

func seatsOf(r *berth.GangReservation, requests map[string]map[string]int64, bound []*corev1.Pod, byHostname map[string]string) []seat {
	sets := make([]*berth.ReservedPodSet, 0, len(r.Spec.PodSets))
	for i := range r.Spec.PodSets {
		sets = append(sets, &r.Spec.PodSets[i])
	}
	slices.SortFunc(sets, func(a, b *berth.ReservedPodSet) int { return inventory.Natural(a.Name, b.Name) })

	// present counts bound pods by host and pod set; "" is a pod that does not say which pod set it belongs to.
	type spot struct{ node, set string }
	present := map[spot]int{}
	for _, p := range bound {
		set := p.Labels[labelPodSet]
		if !slices.ContainsFunc(sets, func(s *berth.ReservedPodSet) bool { return s.Name == set }) {
			set = ""
		}
		present[spot{p.Spec.NodeName, set}]++
	}
	var out []seat
	for _, ps := range sets {
		for rank, hostname := range ps.Hosts {
			node, known := byHostname[hostname]
			if !known || requests[ps.Name] == nil {
				continue
			}
			if taken(present, spot{node, ps.Name}) || taken(present, spot{node, ""}) {
				continue
			}
			name := fmt.Sprintf("%s/%s[%s/%d]", r.Namespace, r.Spec.WorkloadRef.Name, ps.Name, rank)
			out = append(out, seat{node: node, name: name, requests: requests[ps.Name]})
		}
	}
	return out
}

func taken[K comparable](left map[K]int, k K) bool {
	if left[k] == 0 {
		return false
	}
	left[k]--
	return true
}

// reservationOf is namespace/name of the reservation that the pod says it belongs to, or "".
func reservationOf(p *corev1.Pod) string {
	name := p.Labels[berth.LabelReservation]
	if name == "" {
		return ""
	}
	return p.Namespace + "/" + name
}
