package files

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// complete adds what a cluster would have added: a Node that does not say whether it is Ready is, its allocatable
// resources are its capacity, every object has a UID, and references without one mean the object of that name. Without
// any AcceleratorPool every driver counts as one.
func complete(o *Objects) {
	for _, n := range o.Nodes {
		if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
		}
		if n.Status.Allocatable == nil {
			n.Status.Allocatable = n.Status.Capacity
		}
	}
	if len(o.AcceleratorPools) == 0 {
		drivers := map[string]bool{}
		for _, s := range o.ResourceSlices {
			drivers[s.Spec.Driver] = true
		}
		for _, d := range slices.Sorted(maps.Keys(drivers)) {
			o.AcceleratorPools = append(o.AcceleratorPools, &berth.AcceleratorPool{
				ObjectMeta: metav1.ObjectMeta{Name: d}, Spec: berth.AcceleratorPoolSpec{Driver: d},
			})
		}
	}
	identify(o)
}

type objectKey struct{ kind, namespace, name string }

func (k objectKey) String() string { return k.kind + " " + k.namespace + "/" + k.name }

// identify makes UIDs agree: an object without one takes the one by which others know it, else one made of its name. Of two
// with the same UID the second counts as one without.
func identify(o *Objects) {
	known := map[objectKey]types.UID{}
	learn := func(kind, namespace, name string, uid types.UID) {
		if k := (objectKey{kind, namespace, name}); uid != "" && known[k] == "" {
			known[k] = uid
		}
	}
	for _, r := range o.Reservations {
		learn("Workload", r.Namespace, r.Spec.WorkloadRef.Name, r.Spec.WorkloadRef.UID)
		learn(r.Spec.Owner.Kind, r.Namespace, r.Spec.Owner.Name, r.Spec.Owner.UID)
	}
	for _, c := range o.ResourceClaims {
		if uid := dra.ReservationUID(c); uid != "" {
			learn("GangReservation", c.Namespace, c.Labels[berth.LabelReservation], types.UID(uid))
		}
	}
	for _, w := range o.Workloads {
		if owner := metav1.GetControllerOf(w); owner != nil {
			learn(owner.Kind, w.Namespace, owner.Name, owner.UID)
		}
	}
	first := map[types.UID]objectKey{}
	name := func(kind string, object metav1.Object) {
		k := objectKey{kind, object.GetNamespace(), object.GetName()}
		made := types.UID("file:" + kind + "/" + k.namespace + "/" + k.name)
		if object.GetUID() == "" {
			object.SetUID(cmp.Or(known[k], made))
		}
		if other, twice := first[object.GetUID()]; twice {
			// What is copied from a cluster and renamed still has it. An API server gives every object one of its own.
			o.Warnings = append(o.Warnings, fmt.Sprintf("%s has the UID of %s: it is taken for another one", k, other))
			object.SetUID(made)
		}
		known[k], first[object.GetUID()] = object.GetUID(), k
	}
	for _, j := range o.Jobs {
		name("Job", j)
	}
	for _, j := range o.JobSets {
		name("JobSet", j)
	}
	for _, w := range o.Workloads {
		name("Workload", w)
	}
	for _, r := range o.Reservations {
		name("GangReservation", r)
		if r.Spec.WorkloadRef.UID == "" {
			r.Spec.WorkloadRef.UID = known[objectKey{"Workload", r.Namespace, r.Spec.WorkloadRef.Name}]
		}
	}
	refer := func(object metav1.Object) {
		refs := object.GetOwnerReferences()
		for i := range refs {
			if refs[i].UID == "" {
				refs[i].UID = known[objectKey{refs[i].Kind, object.GetNamespace(), refs[i].Name}]
			}
		}
	}
	for _, w := range o.Workloads {
		refer(w)
	}
	for _, j := range o.Jobs {
		refer(j)
	}
	for _, p := range o.Pods {
		refer(p)
	}
}
