package line

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
)

const noPorts = "0/8 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, " +
	"7 node(s) didn't match Pod's node affinity/selector. preemption: 0/8 nodes are available: " +
	"1 No preemption victims found for incoming pod, 7 Preemption is not helpful for scheduling."

// scheduled sets the condition of a pod. Its transition time is that of its gate, an hour before, as the API server keeps it.
func scheduled(p *corev1.Pod, status corev1.ConditionStatus, why, message string) {
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: status, Reason: why, Message: message, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
	}}
}

// watched is a gang that is judged again and again.
type watched struct {
	*judged
	*reconciler
}

func newWatched(t *testing.T) watched {
	return watched{newJudged(t), &reconciler{Options: Options{Board: verdict.NewBoard()}}}
}

// after judges some time after now, and checks what is found and when it is judged again.
func (w watched) after(t *testing.T, d time.Duration, want string, again time.Duration) {
	t.Helper()
	v := w.view()
	v.now = now.Add(d)
	if got := w.judge(v); got != again {
		t.Errorf("after %v it is judged again in %v, want %v", d, got, again)
	}
	got := ""
	if lost := w.Board.Lost(types.NamespacedName{Namespace: w.res.Namespace, Name: w.res.Name}); lost != nil {
		got = lost.Error()
	}
	if got != want {
		t.Errorf("after %v\n got %s\nwant %s", d, got, want)
	}
}

func TestPodsWithoutAPlace(t *testing.T) {
	const first = "NotSeated: the scheduler finds no place for rank 1 on its host pod-a-1: " +
		"1 node(s) didn't have free ports for the requested pod ports"
	w := newWatched(t)
	p, q := w.pod(1, ""), w.pod(2, "")
	scheduled(p, corev1.ConditionFalse, corev1.PodReasonSchedulingGated, "gated")
	w.after(t, 0, "", 0)
	scheduled(p, corev1.ConditionFalse, corev1.PodReasonUnschedulable, noPorts)
	w.after(t, 10*time.Minute, "", 5*time.Minute)
	scheduled(q, corev1.ConditionFalse, corev1.PodReasonUnschedulable, noPorts)
	w.after(t, 12*time.Minute, "", 3*time.Minute)
	w.after(t, 15*time.Minute-time.Second, "", time.Second)
	w.after(t, 15*time.Minute, first, 0)
	// One of them comes in after all.
	p.Spec.NodeName = "pod-a-1"
	scheduled(p, corev1.ConditionTrue, "", "")
	w.after(t, 16*time.Minute, "", time.Minute)
	q.Spec.NodeName = "pod-a-2"
	scheduled(q, corev1.ConditionTrue, "", "")
	w.after(t, 18*time.Minute, "", 0)
	// Its successor has as long.
	p.Status.Phase = corev1.PodFailed
	successor := w.pod(1, "")
	successor.UID, successor.Name, successor.CreationTimestamp = "successor", "successor", metav1.NewTime(now)
	scheduled(successor, corev1.ConditionFalse, corev1.PodReasonUnschedulable, noPorts)
	w.after(t, 20*time.Minute, "", 5*time.Minute)
	w.after(t, 25*time.Minute, first, 0)
	// It found a place, and could not bind the pod to it.
	scheduled(successor, corev1.ConditionFalse, corev1.PodReasonSchedulerError, `running PreBind plugin "VolumeBinding": timed out`)
	w.after(t, 25*time.Minute, `NotSeated: the scheduler cannot bind rank 1 to its host pod-a-1: running PreBind plugin "VolumeBinding": timed out`, 0)
	// Anything else ends the wait.
	scheduled(successor, corev1.ConditionFalse, corev1.PodReasonSchedulingGated, "gated")
	w.after(t, 26*time.Minute, "", 0)
	scheduled(successor, corev1.ConditionFalse, corev1.PodReasonUnschedulable, noPorts)
	w.after(t, 27*time.Minute, "", 5*time.Minute)
	// Nobody judges a slice that is given back.
	w.res.Status.Phase = berth.PhaseReleasing
	w.after(t, 40*time.Minute, "", 0)
}

func TestSeatingTimeoutOfTheCheck(t *testing.T) {
	for name, row := range map[string]struct {
		configs []*berth.GangReservationConfig
		want    time.Duration
	}{
		"its own":   {[]*berth.GangReservationConfig{{ObjectMeta: metav1.ObjectMeta{Name: "config"}, Spec: berth.GangReservationConfigSpec{Seating: berth.SeatingPolicy{TimeoutSeconds: ptr.To[int32](60)}}}}, time.Minute},
		"not given": {[]*berth.GangReservationConfig{{ObjectMeta: metav1.ObjectMeta{Name: "config"}}}, 5 * time.Minute},
		"missing":   {nil, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t)
			w.AdmissionChecks[0].Spec.Parameters = &kueue.AdmissionCheckParametersReference{APIGroup: "berth.dev", Kind: "GangReservationConfig", Name: "config"}
			w.Configs = row.configs
			scheduled(w.pod(1, ""), corev1.ConditionFalse, corev1.PodReasonUnschedulable, noPorts)
			w.after(t, 0, "", row.want)
		})
	}
}

// The sentence is about the pod's own host, so that it stays the same while others come and go.
func TestObjection(t *testing.T) {
	for message, want := range map[string]string{
		noPorts: "1 node(s) didn't have free ports for the requested pod ports",
		"0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) didn't satisfy existing pods anti-affinity rules.":         "1 node(s) didn't satisfy existing pods anti-affinity rules",
		`0/8 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/8 nodes are available: 8 Preemption is not helpful for scheduling.`: `persistentvolumeclaim "data" not found`,
		"0/8 nodes are available: 8 node(s) didn't match Pod's node affinity/selector.":                                                                     "0/8 nodes are available: 8 node(s) didn't match Pod's node affinity/selector",
		"another scheduler's words": "another scheduler's words",
	} {
		p := &corev1.Pod{}
		scheduled(p, corev1.ConditionFalse, corev1.PodReasonUnschedulable, message)
		if got := objection(p); got != want {
			t.Errorf("%s\n got %s\nwant %s", message, got, want)
		}
	}
}
