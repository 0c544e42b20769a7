package kueue

import (
	batchv1 "k8s.io/api/batch/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// NewLookup indexes a snapshot. folds are its CapacityFolds on the inventory.
func NewLookup(s *snapshot.Snapshot, inv *inventory.Inventory, folds []fold.Compiled) Lookup {
	templates := byName(s.ResourceClaimTemplates)
	claims := byName(s.ResourceClaims)
	jobs := byName(s.Jobs)
	flavors := byName(s.ResourceFlavors)
	queues := byName(s.ClusterQueues)
	return Lookup{
		Template: func(ns, name string) *resourcev1.ResourceClaimTemplate {
			return templates[types.NamespacedName{Namespace: ns, Name: name}]
		},
		Claim: func(ns, name string) *resourcev1.ResourceClaim {
			return claims[types.NamespacedName{Namespace: ns, Name: name}]
		},
		Job:       func(ns, name string) *batchv1.Job { return jobs[types.NamespacedName{Namespace: ns, Name: name}] },
		Flavor:    func(name string) *kueue.ResourceFlavor { return flavors[types.NamespacedName{Name: name}] },
		Nodes:     nodes.NewEligibility(s.Nodes),
		Inventory: inv,

		ClusterQueue: func(name string) *kueue.ClusterQueue { return queues[types.NamespacedName{Name: name}] },
		Folds:        folds, Territories: NewTerritories(folds, inv),
	}
}

func byName[T metav1.Object](list []T) map[types.NamespacedName]T {
	index := make(map[types.NamespacedName]T, len(list))
	for _, o := range list {
		index[types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}] = o
	}
	return index
}
