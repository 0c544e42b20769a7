package line

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

func TestRelevant(t *testing.T) {
	node := func(change func(*corev1.Node)) client.Object {
		n := dratest.Node("n")
		n.ResourceVersion = "1"
		change(n)
		return n
	}
	pod := func(change func(*corev1.Pod)) client.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "1"}}
		change(p)
		return p
	}
	cpu := func(amount string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(amount)} }
	asks := func(amount string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: cpu(amount)}}}
		}
	}
	ofGang := func(p *corev1.Pod) { p.Labels = map[string]string{berth.LabelReservation: "r"} }
	fails := func(p *corev1.Pod, why string) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: "False", Reason: why}}
	}
	for name, row := range map[string]struct {
		was, now client.Object
		want     bool
	}{
		"a heartbeat": {node(func(*corev1.Node) {}), node(func(n *corev1.Node) {
			n.ResourceVersion = "2"
			n.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
			n.Annotations = map[string]string{"volumes": "attached"}
			n.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
		}), false},
		"Ready":                        {node(func(*corev1.Node) {}), node(func(n *corev1.Node) { n.Status.Conditions[0].Status = "Unknown" }), true},
		"cordoned":                     {node(func(*corev1.Node) {}), node(func(n *corev1.Node) { n.Spec.Unschedulable = true }), true},
		"labels":                       {node(func(*corev1.Node) {}), node(func(n *corev1.Node) { n.Labels["a"] = "b" }), true},
		"taints":                       {node(func(*corev1.Node) {}), node(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a"}} }), true},
		"room":                         {node(func(*corev1.Node) {}), node(func(n *corev1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("1") }), true},
		"the same room":                {node(func(n *corev1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("1") }), node(func(n *corev1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("1000m") }), false},
		"pod progress":                 {pod(func(*corev1.Pod) {}), pod(func(p *corev1.Pod) { p.ResourceVersion, p.Status.PodIP = "2", "10.0.0.1" }), false},
		"pod bound":                    {pod(func(*corev1.Pod) {}), pod(func(p *corev1.Pod) { p.Spec.NodeName = "n" }), true},
		"pod ended":                    {pod(func(*corev1.Pod) {}), pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), true},
		"pod terminates":               {pod(func(*corev1.Pod) {}), pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), true},
		"pod of a gang found no place": {pod(ofGang), pod(func(p *corev1.Pod) { ofGang(p); fails(p, corev1.PodReasonUnschedulable) }), true},
		"pod of a gang is not bound":   {pod(ofGang), pod(func(p *corev1.Pod) { ofGang(p); fails(p, corev1.PodReasonSchedulerError) }), true},
		"pod of a gang fails again": {
			pod(func(p *corev1.Pod) { ofGang(p); fails(p, corev1.PodReasonUnschedulable) }),
			pod(func(p *corev1.Pod) { ofGang(p); fails(p, corev1.PodReasonUnschedulable) }), false,
		},
		"another pod found no place": {pod(func(*corev1.Pod) {}), pod(func(p *corev1.Pod) { fails(p, corev1.PodReasonUnschedulable) }), false},
		"pod gated":                  {pod(ofGang), pod(func(p *corev1.Pod) { ofGang(p); fails(p, corev1.PodReasonSchedulingGated) }), false},
		"pod resized":                {pod(asks("1")), pod(asks("2")), true},
		"pod asks for as much":       {pod(asks("1")), pod(asks("1000m")), false},
		"pod's resize is done": {pod(func(p *corev1.Pod) {
			asks("1")(p)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: cpu("2")}}
		}), pod(func(p *corev1.Pod) {
			asks("1")(p)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: cpu("1")}}
		}), true},
		"a resync": {kueuetest.NewCheck("a"), kueuetest.NewCheck("a"), false},
	} {
		if got := (relevant{}).Update(event.UpdateEvent{ObjectOld: row.was, ObjectNew: row.now}); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	changed := kueuetest.NewCheck("a")
	changed.ResourceVersion = "2"
	if !(relevant{}).Update(event.UpdateEvent{ObjectOld: kueuetest.NewCheck("a"), ObjectNew: changed}) {
		t.Error("a change of another kind does not pass")
	}
}
