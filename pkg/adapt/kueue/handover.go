package kueue

import (
	"fmt"
	"slices"
	"strings"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/render"
)

// Updates are the labels and annotations that hand a reservation over to the pods, one update per reserved pod set.
func Updates(res *berth.GangReservation) []kueue.PodSetUpdate {
	updates := make([]kueue.PodSetUpdate, 0, len(res.Spec.PodSets))
	for _, ps := range res.Spec.PodSets {
		annotations := map[string]string{
			berth.AnnotationContract: berth.ContractVersion,
			berth.AnnotationHosts:    strings.Join(ps.Hosts, ","),
		}
		for _, c := range ps.Claims {
			annotations[berth.AnnotationClaimPrefix+c.PodClaim] = fmt.Sprintf("%s/%d", c.Prefix, c.PodsPerClaim)
		}
		updates = append(updates, kueue.PodSetUpdate{
			Name:        kueue.PodSetReference(ps.Name),
			Labels:      map[string]string{berth.LabelReservation: res.Name},
			Annotations: annotations,
		})
	}
	return updates
}

// Reserved is what a reservation holds, for people. Hosts of a pod set are the values of their hostname label, as in the
// reservation.
func Reserved(res *berth.GangReservation) []render.PodSet {
	sets := make([]render.PodSet, 0, len(res.Spec.PodSets))
	for _, ps := range res.Spec.PodSets {
		set := render.PodSet{Name: ps.Name, Count: int(ps.Count), Hosts: append([]string{}, ps.Hosts...), Domains: append([]string{}, ps.Domains...), Across: ps.Across, Claims: []render.Claim{}}
		for _, c := range ps.Claims {
			first := len(set.Claims)
			for _, d := range c.Devices {
				i := slices.IndexFunc(set.Claims[first:], func(have render.Claim) bool { return have.Instance == int(d.Instance) })
				if i < 0 {
					i = len(set.Claims) - first
					set.Claims = append(set.Claims, render.Claim{PodClaim: c.PodClaim, Instance: int(d.Instance)})
				}
				at := &set.Claims[first+i]
				at.Devices = append(at.Devices, render.Device{
					Request: d.Request, Driver: d.Driver, Pool: d.Pool, Device: d.Device, Hosts: append([]string{}, d.Hosts...),
					Capacity: render.Part(dra.Amounts(d.Capacity)),
				})
			}
		}
		sets = append(sets, set)
	}
	return sets
}

// Slice says in one sentence what a reservation holds: "tpu-4x4-02 (pod-a) on node-2, node-3, node-6, node-7".
func Slice(res *berth.GangReservation) string { return render.Slice(Reserved(res)) }
