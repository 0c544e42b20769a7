package nodes

import (
	"maps"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Bare makes pods small that only take room. Most pods of a cluster are of no gang; a cache holds all of them, and a fifth
// of each will do. It is safe for concurrent use.
type Bare struct {
	mutex sync.Mutex
	// containers are shared by pods that ask for the same, under a fingerprint of that.
	containers map[uint64][]asked
	size       int
}

type asked struct {
	amounts    map[string]int64
	containers []corev1.Container
}

// mostAsked bounds what Bare remembers; beyond it everything is forgotten, which costs memory only.
const mostAsked = 1 << 16

// Of returns what of a pod decides where it stands, whether it takes room, how much, and whether the scheduler gave up on
// it. Used and Occupies say the same of it as of the pod. All it asks for stands in one container, which must not be
// changed.
func (b *Bare) Of(p *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: unique.Make(p.Namespace).Value(), Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
			DeletionTimestamp: p.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: unique.Make(p.Spec.NodeName).Value(), Containers: b.asking(p)},
		Status: corev1.PodStatus{Phase: p.Status.Phase},
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			out.Status.Conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status, Reason: unique.Make(c.Reason).Value()}}
		}
	}
	return out
}

func (b *Bare) asking(p *corev1.Pod) []corev1.Container {
	requests := resourcehelper.PodRequests(p, withResizes)
	amounts := Amounts(requests)
	print := Fingerprint(amounts)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, a := range b.containers[print] {
		if maps.Equal(a.amounts, amounts) {
			return a.containers
		}
	}
	if b.containers == nil || b.size >= mostAsked {
		b.containers, b.size = map[uint64][]asked{}, 0
	}
	a := asked{amounts, []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}}
	b.containers[print] = append(b.containers[print], a)
	b.size++
	return a.containers
}
