package invariants

import (
	"maps"
	goslices "slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// rankKey is one rank of the pods of one reservation, or of one controller. A controller outlives reservations and even
// the Workload: when Kueue admits a gang anew, its pods have the ranks that they had.
type rankKey struct{ of, rank string }

// runner is a pod that runs.
type runner struct {
	version
	bound uint64 // the earliest revision at which it may have got its node
}

// judgeRank is invariant 11. Pods are one kind, so the two did exist together.
func (w *Watcher) judgeRank(pod *corev1.Pod, v version) {
	rank, owner := rankOf(pod)
	if rank == "" {
		return
	}
	reservation := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelReservation]}
	for _, older := range w.memory.run(rankKey{reservation.String(), rank}, pod, v) {
		w.proven(w.runsTwice(pod, v, older))
		break
	}
	for _, older := range w.memory.run(rankKey{string(owner), rank}, pod, v) {
		if older.obj.GetLabels()[v1alpha1.LabelReservation] != reservation.Name {
			w.judgeTwice(w.runsBesideFormer(pod, v, older))
		}
	}
}

// runsBesideFormer is invariant 11 for pods of two admissions of one gang. A gang that is moved waits for its former pods,
// but not for one whose host it had to leave: that was not Ready, gone or out of service at some time since.
func (w *Watcher) runsBesideFormer(pod *corev1.Pod, v version, former runner) suspicion {
	b := w.runsTwice(pod, v, former)
	node := former.obj.(*corev1.Pod).Spec.NodeName
	return func(bool) *Breach {
		if !w.memory.soundThroughout(node, former.bound, v.rv) {
			return nil
		}
		return b
	}
}

func (w *Watcher) runsTwice(pod *corev1.Pod, v version, older runner) *Breach {
	var before *version
	if h := w.objects[pods][types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]; len(h) > 1 {
		before = &h[len(h)-2]
	}
	was := older.obj.(*corev1.Pod)
	return newBreach(11, pods, v, before, "Pod %s/%s got node %s at revision %d while Pod %s/%s, which has the same rank of GangReservation %s, may still run on node %s",
		pod.Namespace, pod.Name, pod.Spec.NodeName, v.rv, was.Namespace, was.Name, was.Labels[v1alpha1.LabelReservation], was.Spec.NodeName).show(pods, was)
}

// run enters whether a pod runs. If it has begun to, it returns those that ran already.
func (m *memory) run(key rankKey, pod *corev1.Pod, v version) []runner {
	running := m.ranks[key]
	if v.gone || terminal(pod) || pod.Spec.NodeName == "" {
		delete(running, pod.UID)
		if len(running) == 0 {
			delete(m.ranks, key)
		}
		return nil
	}
	if running == nil {
		running = map[types.UID]runner{}
		m.ranks[key] = running
	}
	if was, had := running[pod.UID]; had {
		running[pod.UID] = runner{v, was.bound}
		return nil
	}
	others := goslices.Collect(maps.Values(running))
	running[pod.UID] = runner{v, v.since}
	return others
}

// rankOf returns the rank of a pod that a controller made for a reservation, and the controller; "" if it is none.
func rankOf(pod *corev1.Pod) (string, types.UID) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || pod.Labels[v1alpha1.LabelReservation] == "" {
		return "", ""
	}
	rank := ""
	for _, label := range indexLabels {
		if value, ok := pod.Labels[label]; ok {
			rank += label + "=" + value + " "
		}
	}
	if rank == "" {
		return "", ""
	}
	for _, label := range setLabels {
		rank += pod.Labels[label] + "/"
	}
	return rank, owner.UID
}
