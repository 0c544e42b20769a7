package kueue

import (
	"cmp"
	"slices"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/inventory"
)

// Folds reads CapacityFolds into the core's, the oldest first; of equally old ones the first by name. Those that are being
// deleted are left out: their last numbers stay, and their hosts are free for another fold.
func Folds(all []*berth.CapacityFold) []fold.Fold {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b *berth.CapacityFold) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	out := make([]fold.Fold, 0, len(sorted))
	for _, f := range sorted {
		if f.DeletionTimestamp != nil {
			continue
		}
		read := fold.Fold{
			Name: f.Name, Classes: f.Spec.DeviceClasses, In: func(id inventory.PoolID) bool { return f.Spec.PoolSelector.Selects(id.Name) },
			Flavor: f.Spec.Flavor, Resource: cmp.Or(f.Spec.Resource, DefaultFoldResource), Live: f.Spec.Mode == berth.FoldLive,
		}
		for _, t := range f.Spec.Targets {
			read.Writes = append(read.Writes, string(t.Kind)+" "+t.Name)
		}
		out = append(out, read)
	}
	return out
}

// DefaultFoldResource is the default of CapacityFold.spec.resource, for objects that no API server has defaulted.
const DefaultFoldResource = "berth.dev/shares"
