package invariants

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// rankLabels together say which rank of which pod set a pod has. At least one of the first group must be there.
var (
	indexLabels = []string{
		"batch.kubernetes.io/job-completion-index",
		"training.kubeflow.org/replica-index",
		"leaderworkerset.sigs.k8s.io/worker-index",
		"apps.kubernetes.io/pod-index",
		"kueue.x-k8s.io/pod-group-pod-index",
	}
	setLabels = []string{
		"kueue.x-k8s.io/podset",
		"jobset.sigs.k8s.io/replicatedjob-name",
		"jobset.sigs.k8s.io/job-index",
		"training.kubeflow.org/replica-type",
	}
)

// rankKey is one rank of one reservation.
type rankKey struct{ namespace, reservation, rank string }

// judgeRank is invariant 11. Pods are one kind, so the two did exist together.
func (w *Watcher) judgeRank(pod *corev1.Pod, v version) {
	key, ok := rankOf(pod)
	if !ok {
		return
	}
	running := w.memory.ranks[key]
	if v.gone || terminal(pod) || pod.Spec.NodeName == "" {
		delete(running, pod.UID)
		if len(running) == 0 {
			delete(w.memory.ranks, key)
		}
		return
	}
	if running == nil {
		running = map[types.UID]version{}
		w.memory.ranks[key] = running
	}
	before, had := running[pod.UID]
	running[pod.UID] = v
	if had {
		return
	}
	for uid, other := range running {
		if uid == pod.UID {
			continue
		}
		var was *version
		if h := w.objects[pods][types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]; len(h) > 1 {
			before = h[len(h)-2]
			was = &before
		}
		older := other.obj.(*corev1.Pod)
		w.proven(newBreach(11, pods, v, was, "Pod %s/%s got node %s at revision %d while Pod %s/%s, which has the same rank of GangReservation %s, may still run on node %s",
			pod.Namespace, pod.Name, pod.Spec.NodeName, v.rv, older.Namespace, older.Name, key.reservation, older.Spec.NodeName).show(pods, older))
		return
	}
}

// rankOf returns the rank of a pod that a controller made for a reservation.
func rankOf(pod *corev1.Pod) (rankKey, bool) {
	key := rankKey{namespace: pod.Namespace, reservation: pod.Labels[v1alpha1.LabelReservation]}
	if key.reservation == "" {
		return key, false
	}
	controlled := false
	for _, owner := range pod.OwnerReferences {
		controlled = controlled || owner.Controller != nil && *owner.Controller
	}
	indexed := false
	for _, label := range indexLabels {
		if value, ok := pod.Labels[label]; ok {
			key.rank += label + "=" + value + " "
			indexed = true
		}
	}
	for _, label := range setLabels {
		key.rank += pod.Labels[label] + "/"
	}
	return key, controlled && indexed
}
