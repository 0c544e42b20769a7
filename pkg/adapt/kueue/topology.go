package kueue

import (
	"fmt"
	"maps"
	"slices"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/reason"
)

// topologyAssigned refuses an admission with which Kueue chooses hosts. Its topology ungater writes its choice into the node
// selector in which a pod has the host of its slice: the API server refuses another host there, and a pod with another rack
// fits nowhere, so the gang would keep its slice and never start. No other Job would do better, only another flavor.
func topologyAssigned(assigned *kueue.PodSetAssignment, in Lookup) *reason.Refusal {
	if assigned == nil || assigned.TopologyAssignment == nil && assigned.DelayedTopologyRequest == nil {
		return nil
	}
	name := firstFlavor(assigned)
	for _, f := range slices.Sorted(maps.Values(assigned.Flavors)) {
		if flavor := in.Flavor(string(f)); flavor != nil && flavor.Spec.TopologyName != nil {
			name = string(f)
			break
		}
	}
	return &reason.Refusal{Code: reason.TopologyAssigned, Message: fmt.Sprintf(
		"flavor %s has a topology (Kueue's topology-aware scheduling), which would choose other hosts: use a flavor without topologyName", name)}
}
