package cluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// labelPodSet is Kueue's label with the name of a pod's pod set.
const labelPodSet = "kueue.x-k8s.io/podset"

// attendance is what the pods of a reservation say of its ranks.
type attendance struct {
	bound, succeeded map[rank]bool
	// waiting is what the pods of a rank that are not bound yet take, the most that one of them does.
	waiting map[rank]map[string]int64
	// unranked counts bound pods of which nobody knows the rank, by host and pod set; "" is a pod that does not say which
	// pod set it belongs to.
	unranked map[spot]int
}

type rank struct {
	podSet string
	index  int
}

type spot struct{ node, podSet string }

func attendanceOf(r *berth.GangReservation, pods []*corev1.Pod) attendance {
	a := attendance{bound: map[rank]bool{}, succeeded: map[rank]bool{}, waiting: map[rank]map[string]int64{}, unranked: map[spot]int{}}
	for _, p := range pods {
		seat, err := jobs.SeatOf(r, p)
		at := rank{seat.PodSet, seat.Rank}
		switch {
		case err != nil:
			if nodes.Occupies(p) {
				a.unranked[spot{p.Spec.NodeName, podSetOf(r, p)}]++
			}
		case nodes.Occupies(p):
			a.bound[at] = true
		case p.Status.Phase == corev1.PodSucceeded:
			a.succeeded[at] = true
		case !jobs.Ended(p):
			a.waiting[at] = most(a.waiting[at], nodes.Used(p))
		}
	}
	return a
}

// needs is the room that a rank needs on its host beside its pods there, where a pod of its template takes so much; false
// when it needs none. It is asked once for each rank.
func (a attendance) needs(at rank, node string, template map[string]int64) (map[string]int64, bool) {
	waiting, waits := a.waiting[at]
	switch {
	case a.bound[at]:
		return nil, false
	case waits: // Also where one succeeded: it belongs to a former run of the Job.
		return waiting, true
	case a.succeeded[at] || taken(a.unranked, spot{node, at.podSet}) || taken(a.unranked, spot{node, ""}):
		return nil, false
	default:
		return template, true
	}
}

func podSetOf(r *berth.GangReservation, p *corev1.Pod) string {
	name := p.Labels[labelPodSet]
	if slices.ContainsFunc(r.Spec.PodSets, func(ps berth.ReservedPodSet) bool { return ps.Name == name }) {
		return name
	}
	return ""
}

// most is the larger amount of each resource.
func most(a, b map[string]int64) map[string]int64 {
	out := maps.Clone(b)
	for name, milli := range a {
		out[name] = max(out[name], milli)
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
