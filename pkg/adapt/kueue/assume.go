package kueue

import (
	"math"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/constants"
)

// AssumedPodSet is what a pod set of an assumed Workload is made of.
type AssumedPodSet struct {
	Name kueue.PodSetReference
	// Jobs is how many Jobs of that spec there are.
	Jobs int32
	Spec *batchv1.JobSpec
}

// Assume makes the Workload that Kueue would make of a Job-like object: one pod set for each kind of Job in it, with
// min(parallelism, completions) pods for each Job.
func Assume(owner metav1.Object, gvk metav1.GroupVersionKind, sets ...AssumedPodSet) *kueue.Workload {
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{
		Namespace: owner.GetNamespace(), Name: owner.GetName(), UID: "assumed:" + owner.GetUID(),
		CreationTimestamp: owner.GetCreationTimestamp(),
		Labels:            map[string]string{},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: metav1.GroupVersion{Group: gvk.Group, Version: gvk.Version}.String(), Kind: gvk.Kind,
			Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true),
		}},
	}}
	wl.Spec.QueueName = kueue.LocalQueueName(owner.GetLabels()[constants.QueueLabel])
	if class := owner.GetLabels()[constants.WorkloadPriorityClassLabel]; class != "" {
		wl.Spec.PriorityClassRef = kueue.NewWorkloadPriorityClassRef(class)
	}
	for _, s := range sets {
		pods := min(ptr.Deref(s.Spec.Parallelism, 1), ptr.Deref(s.Spec.Completions, ptr.Deref(s.Spec.Parallelism, 1)))
		wl.Spec.PodSets = append(wl.Spec.PodSets, kueue.PodSet{Name: s.Name, Template: *s.Spec.Template.DeepCopy(), Count: saturated(pods, s.Jobs)})
		if class := s.Spec.Template.Spec.PriorityClassName; class != "" && wl.Spec.PriorityClassRef == nil {
			wl.Spec.PriorityClassRef = kueue.NewPodPriorityClassRef(class)
		}
	}
	return wl
}

// saturated multiplies without wrapping around.
func saturated(a, b int32) int32 {
	return int32(max(math.MinInt32, min(math.MaxInt32, int64(a)*int64(b))))
}

// Queues answers what Kueue would read of its own configuration. Each function returns nil when there is no such object.
type Queues struct {
	Local    func(namespace, name string) *kueue.LocalQueue
	Cluster  func(name string) *kueue.ClusterQueue
	Flavor   func(name string) *kueue.ResourceFlavor
	Class    func(name string) *kueue.WorkloadPriorityClass
	PodClass func(name string) *schedulingv1.PriorityClass
}

// NewQueues indexes Kueue's configuration.
func NewQueues(local []*kueue.LocalQueue, cluster []*kueue.ClusterQueue, flavors []*kueue.ResourceFlavor,
	classes []*kueue.WorkloadPriorityClass, podClasses []*schedulingv1.PriorityClass,
) Queues {
	l, c, f, w, p := byName(local), byName(cluster), byName(flavors), byName(classes), byName(podClasses)
	return Queues{
		Local:    func(ns, name string) *kueue.LocalQueue { return l[types.NamespacedName{Namespace: ns, Name: name}] },
		Cluster:  func(name string) *kueue.ClusterQueue { return c[types.NamespacedName{Name: name}] },
		Flavor:   func(name string) *kueue.ResourceFlavor { return f[types.NamespacedName{Name: name}] },
		Class:    func(name string) *kueue.WorkloadPriorityClass { return w[types.NamespacedName{Name: name}] },
		PodClass: func(name string) *schedulingv1.PriorityClass { return p[types.NamespacedName{Name: name}] },
	}
}

// QueueOf is the ClusterQueue that admitted the Workload, or that its LocalQueue leads to; empty when neither is known.
func (q Queues) QueueOf(wl *kueue.Workload) string {
	if wl.Status.Admission != nil {
		return string(wl.Status.Admission.ClusterQueue)
	}
	if local := q.Local(wl.Namespace, string(wl.Spec.QueueName)); local != nil {
		return string(local.Spec.ClusterQueue)
	}
	return ""
}

// PriorityOf is the Workload's priority: its own, or that of the class that it names.
func (q Queues) PriorityOf(wl *kueue.Workload) int32 {
	if wl.Spec.Priority != nil {
		return *wl.Spec.Priority
	}
	ref := wl.Spec.PriorityClassRef
	if ref == nil {
		return 0
	}
	if ref.Kind == kueue.WorkloadPriorityClassKind {
		if c := q.Class(ref.Name); c != nil {
			return c.Value
		}
		return 0
	}
	if c := q.PodClass(ref.Name); c != nil {
		return c.Value
	}
	return 0
}

// Admit returns the Workload as if its whole count had been admitted, unless it is admitted already. Its flavors are the
// first of each resource group of its ClusterQueue that exists; without a ClusterQueue there are none, and then no node
// is ruled out by a flavor. Quota is not looked at.
func (q Queues) Admit(wl *kueue.Workload) *kueue.Workload {
	if wl.Status.Admission != nil {
		return wl
	}
	admitted := wl.DeepCopy()
	name := q.QueueOf(wl)
	admitted.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(name)}
	flavors := q.flavors(q.Cluster(name))
	for i := range admitted.Spec.PodSets {
		ps := &admitted.Spec.PodSets[i]
		admitted.Status.Admission.PodSetAssignments = append(admitted.Status.Admission.PodSetAssignments, kueue.PodSetAssignment{
			Name: ps.Name, Count: ptr.To(ps.Count), Flavors: flavors,
		})
	}
	return admitted
}

func (q Queues) flavors(cq *kueue.ClusterQueue) map[corev1.ResourceName]kueue.ResourceFlavorReference {
	if cq == nil {
		return nil
	}
	out := map[corev1.ResourceName]kueue.ResourceFlavorReference{}
	for _, group := range cq.Spec.ResourceGroups {
		i := slices.IndexFunc(group.Flavors, func(f kueue.FlavorQuotas) bool { return q.Flavor(string(f.Name)) != nil })
		if i < 0 {
			continue
		}
		for _, resource := range group.CoveredResources {
			out[resource] = group.Flavors[i].Name
		}
	}
	return out
}
