package hardware

import (
	"cmp"
	"io"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/snapshot"
	"github.com/berth-dev/berth/pkg/snapshot/files"
)

// Read makes hardware of the files that kubectl-berth reads: files, directories, or "-" for stdin. Claims and reservations
// in them are held for the whole simulation. Faults are all that are found.
func Read(paths []string, stdin io.Reader) (*Hardware, error) {
	objects, faults := files.Read(paths, stdin)
	if len(faults) > 0 {
		return nil, faults
	}
	return OfSnapshot(&objects.Snapshot), nil
}

// OfSnapshot is the hardware of API objects.
func OfSnapshot(s *snapshot.Snapshot) *Hardware {
	world := cluster.New().World(s)
	h := &Hardware{Inventory: world.Inventory, Published: map[inventory.DeviceName]int{}, taken: world.Ledger}
	listed := slices.Clone(s.ResourceSlices)
	slices.SortStableFunc(listed, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	at := map[inventory.PoolID]int{}
	for _, sl := range listed {
		id := inventory.PoolID{Driver: sl.Spec.Driver, Name: sl.Spec.Pool.Name}
		if p := h.Inventory.Pool(id); p == nil || p.Generation != sl.Spec.Pool.Generation {
			continue
		}
		for i := range sl.Spec.Devices {
			h.Published[inventory.DeviceName{Pool: id, Name: sl.Spec.Devices[i].Name}] = at[id]
			at[id]++
		}
	}
	return h
}
