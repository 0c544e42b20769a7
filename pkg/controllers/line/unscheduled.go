package line

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	"github.com/berth-dev/berth/pkg/reason"
)

// unplaced says since when the scheduler has tried pods in vain, by their UID. The pods do not say it themselves: the
// transition time of their condition is that of their gate. It is not written down, so a new process counts anew.
type unplaced map[types.UID]time.Time

// among is the same of these pods now.
func (u unplaced) among(pods []*corev1.Pod, now time.Time) unplaced {
	next := unplaced{}
	for _, p := range pods {
		if p.Spec.NodeName != "" || failure(p) == "" {
			continue
		}
		since, known := u[p.UID]
		if !known {
			since = now
		}
		next[p.UID] = since
	}
	return next
}

// unscheduled asks whether the scheduler has tried a pod in vain for as long as the gang's pods may take to appear. Host
// ports, volumes and what pods want of each other are the scheduler's to judge, and the others of the gang hold their devices
// in vain meanwhile. When nobody has waited that long it returns how long that takes still, zero when nobody waits.
func (j judgement) unscheduled(waits unplaced) (*reason.Refusal, time.Duration) {
	limit := j.seatingTimeout(j.res.Spec.Check)
	var soonest time.Duration
	for _, ps := range j.res.Spec.PodSets {
		for rank, node := range jobs.NodesOf(ps) {
			pod := j.pods[seat{ps.Name, rank}]
			if pod == nil {
				continue
			}
			since, waiting := waits[pod.UID]
			if !waiting {
				continue
			}
			left := since.Add(limit).Sub(j.now)
			if left <= 0 {
				what := "finds no place for rank %d on"
				if failure(pod) == corev1.PodReasonSchedulerError {
					what = "cannot bind rank %d to"
				}
				return &reason.Refusal{Code: reason.NotSeated, Message: fmt.Sprintf(
					"the scheduler "+what+" its host %s: %s", rank, node, objection(pod))}, 0
			}
			if soonest == 0 || left < soonest {
				soonest = left
			}
		}
	}
	return nil, soonest
}

// elsewhere is what the scheduler says of hosts that are not the pod's, whose number changes.
var elsewhere = regexp.MustCompile(`^0/\d+ nodes are available: |(, )?\d+ node\(s\) didn't match Pod's node affinity/selector`)

// objection is what the scheduler says against the pod's own host.
func objection(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			all, _, _ := strings.Cut(c.Message, ". ") // What follows is about preemption.
			all = strings.TrimSuffix(all, ".")
			return cmp.Or(strings.Trim(elsewhere.ReplaceAllString(all, ""), ", "), all)
		}
	}
	return ""
}
