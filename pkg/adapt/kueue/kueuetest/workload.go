package kueuetest

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// Names that the objects of this package have when nothing else is said.
const (
	Namespace = "ml"
	Check     = "berth"
	Queue     = "research"
	Flavor    = "tpu-v5e"
	PodSet    = "main"
	PodClaim  = "tpu"
)

// Start is when everything happens whose time does not matter.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Workload is a Kueue Workload under construction.
type Workload struct{ *kueue.Workload }

// NewWorkload begins the Workload of a Job: one pod set with as many pods as the Job has, and the check Pending.
func NewWorkload(job *batchv1.Job) Workload {
	w := Workload{&kueue.Workload{ObjectMeta: metav1.ObjectMeta{
		Namespace: job.Namespace, Name: "job-" + job.Name, UID: "wl-" + job.UID, ResourceVersion: "1",
		CreationTimestamp: metav1.NewTime(Start),
		OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
	}}}
	w.Spec.PodSets = []kueue.PodSet{{Name: PodSet, Count: *job.Spec.Parallelism, Template: *job.Spec.Template.DeepCopy()}}
	return w.State(kueue.CheckStatePending)
}

// QuotaReserved sets the condition, and an admission of all pods with the flavor.
func (w Workload) QuotaReserved(at time.Time) Workload {
	w.Status.Admission = &kueue.Admission{ClusterQueue: Queue}
	for _, ps := range w.Spec.PodSets {
		count := ps.Count
		w.Status.Admission.PodSetAssignments = append(w.Status.Admission.PodSetAssignments, kueue.PodSetAssignment{
			Name: ps.Name, Count: &count,
			Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"berth.dev/shares": Flavor, corev1.ResourceCPU: Flavor},
		})
	}
	return w.Condition(kueue.WorkloadQuotaReserved, true, at)
}

// In moves the admission to another ClusterQueue.
func (w Workload) In(queue string) Workload {
	w.Status.Admission.ClusterQueue = kueue.ClusterQueueReference(queue)
	return w
}

// Condition sets one condition.
func (w Workload) Condition(kind string, is bool, at time.Time) Workload {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "Test", LastTransitionTime: metav1.NewTime(at)}
	if is {
		c.Status = metav1.ConditionTrue
	}
	for i := range w.Status.Conditions {
		if w.Status.Conditions[i].Type == kind {
			w.Status.Conditions[i] = c
			return w
		}
	}
	w.Status.Conditions = append(w.Status.Conditions, c)
	return w
}

// Admitted, Evicted and Finished set that condition.
func (w Workload) Admitted() Workload { return w.Condition(kueue.WorkloadAdmitted, true, Start) }

// Evicted sets the condition of that name.
func (w Workload) Evicted() Workload { return w.Condition(kueue.WorkloadEvicted, true, Start) }

// Finished sets the condition of that name.
func (w Workload) Finished() Workload { return w.Condition(kueue.WorkloadFinished, true, Start) }

// State sets the state of our check and takes its podSetUpdates away.
func (w Workload) State(state kueue.CheckState) Workload {
	w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: Check, State: state, LastTransitionTime: metav1.NewTime(Start)}}
	return w
}

// Named sets the check Ready for a reservation.
func (w Workload) Named(reservation string) Workload {
	w.State(kueue.CheckStateReady)
	w.Status.AdmissionChecks[0].PodSetUpdates = []kueue.PodSetUpdate{{
		Name: PodSet, Labels: map[string]string{berth.LabelReservation: reservation},
	}}
	return w
}

// Priority sets the priority.
func (w Workload) Priority(p int32) Workload { w.Spec.Priority = &p; return w }

// Queued sets since when it exists.
func (w Workload) Queued(at time.Time) Workload {
	w.CreationTimestamp = metav1.NewTime(at)
	return w
}

// NewCheck is an AdmissionCheck that Berth serves.
func NewCheck(name string) *kueue.AdmissionCheck {
	return &kueue.AdmissionCheck{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1"},
		Spec:       kueue.AdmissionCheckSpec{ControllerName: berth.ControllerName},
	}
}

// NewFlavor is a ResourceFlavor.
func NewFlavor(name string) *kueue.ResourceFlavor {
	return &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
