package line

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// TestEnding: which pods keep the next admission of their owner waiting.
func TestEnding(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"runs":                     {func(*corev1.Pod) {}, true},
		"terminates":               {func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"has failed":               {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"is on a lost host":        {func(p *corev1.Pod) { p.Spec.NodeName = "lost" }, false},
		"is on a host that left":   {func(p *corev1.Pod) { p.Spec.NodeName = "left" }, false},
		"is bound to no host":      {func(p *corev1.Pod) { p.Spec.NodeName = "" }, false},
		"is nobody's":              {func(p *corev1.Pod) { p.OwnerReferences = nil }, false},
		"was not pinned by Berth":  {func(p *corev1.Pod) { p.Labels = nil }, false},
		"belongs to another owner": {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Labels:          map[string]string{berth.LabelReservation: "former"},
					OwnerReferences: []metav1.OwnerReference{{UID: "job", Controller: ptr.To(true)}},
				},
				Spec:   corev1.PodSpec{NodeName: "host"},
				Status: corev1.PodStatus{Phase: corev1.PodRunning},
			}
			c.change(pod)
			s := &snapshot.Snapshot{
				Nodes: []*corev1.Node{node("host", corev1.ConditionTrue), node("lost", corev1.ConditionUnknown)},
				Pods:  []*corev1.Pod{pod},
			}
			if got := ending(s, pinned(s))[types.UID("job")]; got != c.want {
				t.Errorf("a pod that %s keeps its owner waiting: %t, want %t", name, got, c.want)
			}
		})
	}
}
