package line

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// formerFirst is why a gang waits that was admitted anew while its last admission has not come to its end: two pods of
// one rank would run at once, and the new ones would not find what the old ones are about to save.
func formerFirst() *reason.Refusal {
	return &reason.Refusal{Code: reason.WaitingTurn, Message: "the gang's former slice is being released first"}
}

// ending finds the owners whose pinned pods may still run. It is asked for a gang that has no reservation, so these are of
// a former admission. A host that is not Ready ends its pods nobody knows when, so there they are not waited for: the gang
// has to get off it.
func ending(s *snapshot.Snapshot, pinned []*corev1.Pod) map[types.UID]bool {
	ready := map[string]bool{}
	for _, n := range s.Nodes {
		ready[n.Name] = nodes.Ready(n)
	}
	owners := map[types.UID]bool{}
	for _, p := range pinned {
		if jobs.Ended(p) || !ready[p.Spec.NodeName] {
			continue
		}
		if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
			owners[owner.UID] = true
		}
	}
	return owners
}
