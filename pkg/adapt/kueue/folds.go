package kueue

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

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
			Name: f.Name, Revision: fmt.Sprintf("%s/%d", f.UID, f.Generation), Classes: f.Spec.DeviceClasses,
			In:     func(id inventory.PoolID) bool { return f.Spec.PoolSelector.Selects(id.Name) },
			Flavor: f.Spec.Flavor, Resource: cmp.Or(f.Spec.Resource, DefaultFoldResource), Live: f.Spec.Mode == berth.FoldLive,
			Stands: stands(f),
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

// FoldCompiler compiles CapacityFolds and keeps what came out while neither they nor the hardware change. It is not safe for
// concurrent use.
type FoldCompiler struct {
	compiler fold.Compiler
	inv      *inventory.Inventory
	of       []foldVersion
	last     []fold.Compiled
}

type foldVersion struct {
	uid        types.UID
	generation int64
	name       string
	deleted    bool
	stands     bool
}

// stands reports that a fold has promised something, of which its last number stays whatever becomes of it.
func stands(f *berth.CapacityFold) bool { return f.Status.Shares > 0 }

// Compile checks all folds on the inventory, the oldest first. The result must not be changed.
func (c *FoldCompiler) Compile(all []*berth.CapacityFold, inv *inventory.Inventory) []fold.Compiled {
	of := make([]foldVersion, 0, len(all))
	for _, f := range all {
		of = append(of, foldVersion{f.UID, f.Generation, f.Name, f.DeletionTimestamp != nil, stands(f)})
	}
	slices.SortFunc(of, func(a, b foldVersion) int { return cmp.Compare(a.name, b.name) })
	if c.inv == inv && slices.Equal(c.of, of) {
		return c.last
	}
	c.inv, c.of, c.last = inv, of, c.compiler.Compile(inv, Folds(all))
	return c.last
}
