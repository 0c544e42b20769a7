package jobs

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// Seat is the place of one pod in its gang.
type Seat struct {
	PodSet string
	Rank   int
	// Claims are the names of the ResourceClaims that the pod shares.
	Claims []string
}

// SeatOf returns the place that a pod with the reservation's label has. The error says why it has none: it is a stranger,
// or the pod policy did not pin it as the reservation says.
func SeatOf(res *berth.GangReservation, pod *corev1.Pod) (Seat, error) {
	if !Controls(res.Spec.Owner, pod) {
		return Seat{}, fmt.Errorf("pod %s is not controlled by %s %s", pod.Name, res.Spec.Owner.Kind, res.Spec.Owner.Name)
	}
	rank, ranked := Rank(pod)
	if !ranked {
		return Seat{}, fmt.Errorf("pod %s carries no rank", pod.Name)
	}
	named := map[string]string{}
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			named[c.Name] = *c.ResourceClaimName
		}
	}
	for _, ps := range res.Spec.PodSets {
		if rank >= len(ps.Hosts) || pod.Spec.NodeSelector[corev1.LabelHostname] != ps.Hosts[rank] {
			continue
		}
		if claims, pinned := claimsOf(ps, rank, named); pinned {
			return Seat{PodSet: ps.Name, Rank: rank, Claims: claims}, nil
		}
	}
	return Seat{}, fmt.Errorf("pod %s of rank %d is not pinned as the reservation says", pod.Name, rank)
}

// claimsOf are the names that the pod of a rank must use; false when named says otherwise.
func claimsOf(ps berth.ReservedPodSet, rank int, named map[string]string) ([]string, bool) {
	claims := make([]string, 0, len(ps.Claims))
	for _, c := range ps.Claims {
		want := ClaimName(c.Prefix, rank/max(1, int(c.PodsPerClaim)))
		if named[c.PodClaim] != want {
			return nil, false
		}
		claims = append(claims, want)
	}
	return claims, true
}

// ClaimName is the name of one instance's ResourceClaim.
func ClaimName(prefix string, instance int) string { return fmt.Sprintf("%s-%d", prefix, instance) }

// NodesOf are the names of the nodes under the ranks of a pod set, in rank order; a reservation's hosts are label values
// and need not be node names. A name is empty where the devices name no host for the rank.
func NodesOf(ps berth.ReservedPodSet) []string {
	nodes := make([]string, len(ps.Hosts))
	for _, c := range slices.Backward(ps.Claims) {
		per := int(c.PodsPerClaim)
		for _, d := range slices.Backward(c.Devices) {
			// The first device that reaches a rank counts; all of them name the same host.
			for i, host := range d.Hosts {
				if rank := int(d.Instance)*per + i; i < per && rank >= 0 && rank < len(nodes) {
					nodes[rank] = host
				}
			}
		}
	}
	return nodes
}

// Ended reports whether the pod's containers have all ended.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Gated reports whether the seating gate is still on the pod.
func Gated(pod *corev1.Pod) bool {
	for _, g := range pod.Spec.SchedulingGates {
		if g.Name == berth.GateSeating {
			return true
		}
	}
	return false
}
