package kueue

import (
	"fmt"
	"slices"
	"strings"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
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

// Slice says in one sentence what a reservation holds: "tpu-4x4-01 (pod-a) on node-2, node-3, node-6, node-7".
func Slice(res *berth.GangReservation) string {
	var parts []string
	for _, ps := range res.Spec.PodSets {
		var devices []string
		pools := map[string]bool{}
		for _, c := range ps.Claims {
			for _, d := range c.Devices {
				devices = append(devices, d.Device)
				pools[d.Pool] = true
			}
		}
		part := fmt.Sprintf("%s (%s) on %s", some(devices), some(sortedKeys(pools)), some(ps.Hosts))
		if len(res.Spec.PodSets) > 1 {
			part = ps.Name + ": " + part
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// some joins up to 16 names.
func some(names []string) string {
	const most = 16
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func sortedKeys(m map[string]bool) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
