package nodes_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
)

func randomPod(rng *rand.Rand) *corev1.Pod {
	requests := func() corev1.ResourceList {
		list := corev1.ResourceList{}
		for _, name := range []corev1.ResourceName{"cpu", "memory", "example.com/nic"} {
			if rng.IntN(2) == 0 {
				list[name] = resource.MustParse(fmt.Sprintf("%dm", rng.IntN(4)*500))
			}
		}
		return list
	}
	always := corev1.ContainerRestartPolicyAlways
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprint("p", rng.IntN(9)), UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}},
		Status:     corev1.PodStatus{Phase: []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodFailed}[rng.IntN(3)]},
	}
	p.Spec.NodeName = []string{"", "n1", "n2"}[rng.IntN(3)]
	for i := range rng.IntN(4) {
		c := corev1.Container{Name: fmt.Sprint("c", i), Image: "x", Resources: corev1.ResourceRequirements{Requests: requests()}}
		p.Spec.Containers = append(p.Spec.Containers, c)
		if rng.IntN(2) == 0 {
			r := corev1.ResourceRequirements{Requests: requests()}
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Resources: &r, AllocatedResources: requests()})
		}
	}
	for i := range rng.IntN(3) {
		c := corev1.Container{Name: fmt.Sprint("i", i), Resources: corev1.ResourceRequirements{Requests: requests()}}
		if rng.IntN(2) == 0 {
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if rng.IntN(3) == 0 {
		p.Spec.Overhead = requests()
	}
	if rng.IntN(4) == 0 {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("9")}}
		if rng.IntN(2) == 0 {
			p.Status.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("12")}}
			p.Status.AllocatedResources = corev1.ResourceList{"cpu": resource.MustParse("10")}
		}
	}
	if rng.IntN(3) == 0 {
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse},
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "long"},
		}
	}
	return p
}

func TestBareTakesTheSameRoom(t *testing.T) {
	var bare nodes.Bare
	taking := 0
	for seed := range uint64(2000) {
		p := randomPod(rand.New(rand.NewPCG(seed, 5)))
		got := bare.Of(p)
		if diff := cmp.Diff(nodes.Used(p), nodes.Used(got)); diff != "" {
			t.Fatalf("seed %d: it takes other room:\n%s", seed, diff)
		}
		if nodes.Occupies(p) != nodes.Occupies(got) {
			t.Fatalf("seed %d: occupies %v", seed, nodes.Occupies(got))
		}
		if len(nodes.Used(p)) > 2 {
			taking++
		}
		want := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion}}
		want.Spec.NodeName, want.Status.Phase = p.Spec.NodeName, p.Status.Phase
		if len(p.Status.Conditions) > 0 {
			want.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		}
		got.Spec.Containers = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: (-want +got)\n%s", seed, diff)
		}
	}
	if taking < 1000 {
		t.Errorf("only %d pods ask for much", taking)
	}
}

func TestBareSharesWhatPodsAskFor(t *testing.T) {
	var bare nodes.Bare
	at := map[uintptr]bool{}
	for i := range 100 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse([]string{"1", "1000m"}[i%2])}},
		}}}}
		at[reflect.ValueOf(bare.Of(p).Spec.Containers).Pointer()] = true
	}
	if len(at) != 1 {
		t.Errorf("%d lists of containers for pods that ask for the same", len(at))
	}
}
