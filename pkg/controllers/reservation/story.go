package reservation

import (
	"encoding/json"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// promised is one ResourceClaim that a reservation promises.
type promised struct {
	name     string
	podSet   string
	podClaim string
	// template that the claim is made from; nil in a reservation of an older release.
	template *berth.TemplateReference
	devices  []berth.ReservedDevice
}

// promises lists the claims of a reservation in the order of its spec.
func promises(res *berth.GangReservation) []promised {
	var all []promised
	for _, ps := range res.Spec.PodSets {
		for _, c := range ps.Claims {
			at := map[int32]int{}
			for _, d := range c.Devices {
				i, known := at[d.Instance]
				if !known {
					i = len(all)
					at[d.Instance] = i
					all = append(all, promised{
						name: jobs.ClaimName(c.Prefix, int(d.Instance)), podSet: ps.Name, podClaim: c.PodClaim, template: c.Template,
					})
				}
				all[i].devices = append(all[i].devices, d)
			}
		}
	}
	return all
}

// newClaim is a promised claim before it is allocated. It carries its story, so that it can be released when nothing else
// is left, and no owner reference: only Berth may decide when it goes.
func newClaim(res *berth.GangReservation, p promised, spec resourcev1.ResourceClaimSpec, term string) (*resourcev1.ResourceClaim, error) {
	devices, err := json.Marshal(p.devices)
	if err != nil {
		return nil, fmt.Errorf("writing down the devices of claim %s: %w", p.name, err)
	}
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:  res.Namespace,
			Name:       p.name,
			Finalizers: []string{berth.FinalizerHold},
			Labels:     map[string]string{berth.LabelReservation: res.Name},
			Annotations: map[string]string{
				berth.AnnotationReservationUID: string(res.UID),
				berth.AnnotationWorkload:       res.Spec.WorkloadRef.Name,
				berth.AnnotationWorkloadUID:    string(res.Spec.WorkloadRef.UID),
				berth.AnnotationEpoch:          res.Spec.Epoch,
				berth.AnnotationDevices:        string(devices),
				berth.AnnotationLeader:         term,
			},
		},
		Spec: spec,
	}, nil
}

// hold is the Workload's entry in a claim's reservedFor. While a non-pod entry stands there nobody deallocates the claim.
func hold(name string, uid types.UID) resourcev1.ResourceClaimConsumerReference {
	return resourcev1.ResourceClaimConsumerReference{
		APIGroup: kueue.GroupVersion.Group, Resource: "workloads", Name: name, UID: uid,
	}
}

// isPod reports whether an entry of reservedFor is a pod's.
func isPod(ref resourcev1.ResourceClaimConsumerReference) bool {
	return ref.APIGroup == "" && ref.Resource == "pods"
}

// held reports whether a claim carries the entry of the Workload that its story names.
func held(claim *resourcev1.ResourceClaim) bool {
	for _, ref := range claim.Status.ReservedFor {
		if ref == hold(claim.Annotations[berth.AnnotationWorkload], types.UID(claim.Annotations[berth.AnnotationWorkloadUID])) {
			return true
		}
	}
	return false
}

// orphan rebuilds as much of a reservation as its claims tell: who was served, and on which hosts.
func orphan(key types.NamespacedName, claims []*resourcev1.ResourceClaim) *berth.GangReservation {
	res := &berth.GangReservation{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	res.Status.Phase = berth.PhaseReleasing
	for _, c := range claims {
		res.UID = types.UID(c.Annotations[berth.AnnotationReservationUID])
		res.Spec.WorkloadRef = berth.WorkloadReference{
			Name: c.Annotations[berth.AnnotationWorkload], UID: types.UID(c.Annotations[berth.AnnotationWorkloadUID]),
		}
		res.Spec.Epoch = c.Annotations[berth.AnnotationEpoch]
	}
	return res
}
