package main

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/constants"
	"sigs.k8s.io/kueue/pkg/workload"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/snapshot/files"
)

// candidate is one gang of the input: a Job or JobSet together with its Workload, or a Workload that has neither.
type candidate struct {
	kind, namespace, name string
	workload              *kueue.Workload
	// job stands for the Job of a Workload that is not in the input.
	job *batchv1.Job
	// ended is true for a Job that is complete or failed.
	ended bool
}

// ownerKey is who creates a Workload's pods.
type ownerKey struct {
	apiVersion, kind, namespace, name string
	uid                               types.UID
}

func keyOf(namespace string, ref *metav1.OwnerReference) ownerKey {
	return ownerKey{ref.APIVersion, ref.Kind, namespace, ref.Name, ref.UID}
}

// apiVersion of a kind.
func apiVersion(gvk metav1.GroupVersionKind) string {
	return metav1.GroupVersion{Group: gvk.Group, Version: gvk.Version}.String()
}

var (
	kindJob    = metav1.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	kindJobSet = metav1.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
)

// candidates are the gangs of the input in the order in which Job, JobSet or Workload first appears.
func (w *world) candidates() []candidate {
	workloads := map[ownerKey]*kueue.Workload{}
	prebuilt := map[types.NamespacedName]*kueue.Workload{}
	for _, wl := range w.objects.Workloads {
		prebuilt[types.NamespacedName{Namespace: wl.Namespace, Name: wl.Name}] = wl
		if ref := metav1.GetControllerOf(wl); ref != nil {
			key := keyOf(wl.Namespace, ref)
			// Of several the one that has not ended counts: Kueue makes a new Workload when a Job changes.
			if old := workloads[key]; old == nil || workload.IsFinished(old) {
				workloads[key] = wl
			}
		}
	}
	owners := map[*kueue.Workload]metav1.Object{}
	workloadOf := func(object metav1.Object, kind metav1.GroupVersionKind) *kueue.Workload {
		wl := workloads[ownerKey{apiVersion(kind), kind.Kind, object.GetNamespace(), object.GetName(), object.GetUID()}]
		if name := object.GetLabels()[constants.PrebuiltWorkloadLabel]; wl == nil && name != "" {
			wl = prebuilt[types.NamespacedName{Namespace: object.GetNamespace(), Name: name}]
		}
		return wl
	}
	for _, object := range w.objects.Submitted {
		switch o := object.(type) {
		case *batchv1.Job:
			if wl := workloadOf(o, kindJob); wl != nil && !partOfJobSet(o) {
				owners[wl] = o
			}
		case *files.JobSet:
			if wl := workloadOf(o, kindJobSet); wl != nil {
				owners[wl] = o
			}
		}
	}

	var out []candidate
	done := map[metav1.Object]bool{}
	for _, object := range w.objects.Submitted {
		var wl *kueue.Workload
		if given, ok := object.(*kueue.Workload); ok {
			wl = given
			if owner := owners[wl]; owner != nil {
				object = owner
			}
		}
		if done[object] {
			continue
		}
		done[object] = true
		switch o := object.(type) {
		case *batchv1.Job:
			if !partOfJobSet(o) {
				out = append(out, w.ofJob(o, workloadOf(o, kindJob)))
			}
		case *files.JobSet:
			out = append(out, ofJobSet(o, workloadOf(o, kindJobSet)))
		case *kueue.Workload:
			if c, ok := w.ofWorkload(o, workloads); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

// partOfJobSet is true for the Jobs that a JobSet made: the gang is the JobSet.
func partOfJobSet(j *batchv1.Job) bool {
	ref := metav1.GetControllerOf(j)
	return ref != nil && ref.Kind == kindJobSet.Kind
}

func (w *world) ofJob(j *batchv1.Job, wl *kueue.Workload) candidate {
	c := candidate{kind: kindJob.Kind, namespace: j.Namespace, name: j.Name, workload: wl}
	for _, cond := range j.Status.Conditions {
		if (cond.Type == batchv1.JobComplete || cond.Type == batchv1.JobFailed) && cond.Status == corev1.ConditionTrue {
			c.ended = true
		}
	}
	if wl == nil {
		c.workload = adaptkueue.Assume(j, kindJob, adaptkueue.AssumedPodSet{Name: kueue.DefaultPodSetName, Jobs: 1, Spec: &j.Spec})
	} else if metav1.GetControllerOf(wl) == nil {
		// Built before its Job, which takes it over.
		c.workload = wl.DeepCopy()
		c.workload.OwnerReferences = append(c.workload.OwnerReferences, *metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind(kindJob.Kind)))
	}
	return c
}

func ofJobSet(j *files.JobSet, wl *kueue.Workload) candidate {
	c := candidate{kind: kindJobSet.Kind, namespace: j.Namespace, name: j.Name, workload: wl}
	if wl == nil {
		var sets []adaptkueue.AssumedPodSet
		for i := range j.Spec.ReplicatedJobs {
			r := &j.Spec.ReplicatedJobs[i]
			sets = append(sets, adaptkueue.AssumedPodSet{
				Name: kueue.NewPodSetReference(r.Name), Jobs: ptr.Deref(r.Replicas, 1), Spec: &r.Template.Spec,
			})
		}
		c.workload = adaptkueue.Assume(j, kindJobSet, sets...)
	}
	return c
}

// ofWorkload reads a Workload whose owner is not in the input. Where that is a Job, or nobody yet, the Workload is placed
// on its own word, because its ranks cannot be looked up. Owners of which none is the controller are the pods of a group.
// A Workload that another one of the same owner replaced is no gang.
func (w *world) ofWorkload(wl *kueue.Workload, current map[ownerKey]*kueue.Workload) (candidate, bool) {
	c := candidate{kind: "Workload", namespace: wl.Namespace, name: wl.Name, workload: wl}
	ref := metav1.GetControllerOf(wl)
	if ref != nil {
		if newest := current[keyOf(wl.Namespace, ref)]; newest != wl && workload.IsFinished(wl) {
			return c, false
		}
		if ref.Kind != kindJob.Kind || ref.APIVersion != apiVersion(kindJob) {
			return c, true
		}
	}
	if workload.IsFinished(wl) || ref == nil && len(wl.OwnerReferences) > 0 {
		return c, true
	}
	var pods int32
	if len(wl.Spec.PodSets) > 0 {
		pods = wl.Spec.PodSets[0].Count
	}
	c.job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: wl.Namespace, Name: wl.Name, UID: "assumed:" + wl.UID}}
	c.job.Spec = batchv1.JobSpec{Parallelism: &pods, Completions: &pods, CompletionMode: ptr.To(batchv1.IndexedCompletion)}
	if ref != nil {
		c.job.Name, c.job.UID = ref.Name, ref.UID
		w.warn("Job %s/%s of Workload %s is not in the input: its pods are taken for one rank each", wl.Namespace, ref.Name, wl.Name)
	} else {
		c.workload = wl.DeepCopy()
		c.workload.OwnerReferences = append(c.workload.OwnerReferences, *metav1.NewControllerRef(c.job, batchv1.SchemeGroupVersion.WithKind(kindJob.Kind)))
		w.warn("Workload %s/%s has no owner: Berth serves it once a Job owns it", wl.Namespace, wl.Name)
	}
	return c, true
}

// reservationOf finds the reservation that serves the candidate; releasing is true when the only one is being given back.
func (w *world) reservationOf(c candidate) (res *berth.GangReservation, releasing bool) {
	claimed := map[string]bool{}
	for _, claim := range w.objects.ResourceClaims {
		claimed[dra.ReservationUID(claim)] = true
	}
	owner := metav1.GetControllerOf(c.workload)
	for _, r := range w.objects.Reservations {
		if r.Namespace != c.namespace || !r.Holds() {
			continue
		}
		mine := r.Spec.WorkloadRef.UID == c.workload.UID ||
			owner != nil && r.Spec.Owner.Kind == owner.Kind && r.Spec.Owner.Name == owner.Name && (r.Spec.Owner.UID == owner.UID || r.Spec.Owner.UID == "")
		switch {
		case !mine:
		case r.Status.Phase != berth.PhaseReleasing:
			return r, false
		case !dra.Released(r, claimed[string(r.UID)]):
			releasing = true
		}
	}
	return nil, releasing
}

// title names the candidate in messages and as a holder.
func (c candidate) title() string { return fmt.Sprintf("%s/%s", c.namespace, c.name) }
