package line

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
)

// asked is the demand of every class: the gangs that wait and those that got devices lately. The first pass of a process
// counts all that hold something, so that a restart begins with most of it known.
func (v *view) asked(waiting []line.Entry) placement.Demand {
	if v.demand == nil {
		return nil
	}
	workloads := make(map[types.UID]*kueue.Workload, len(v.snapshot.Workloads))
	for _, wl := range v.snapshot.Workloads {
		workloads[wl.UID] = wl
	}
	v.demand.Forget(func(uid string) bool { return workloads[types.UID(uid)] != nil })
	var served []*berth.GangReservation
	for _, res := range v.reservations {
		if workloads[res.Spec.WorkloadRef.UID] != nil && !v.demand.Serves(string(res.Spec.WorkloadRef.UID)) {
			served = append(served, res)
		}
	}
	// In one order, so that sums are equal to the bit.
	slices.SortFunc(served, func(a, b *berth.GangReservation) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	for _, res := range served {
		// A request that cannot be read any more (its template is gone) is tried again in the next pass.
		if req, refusal := v.readings.Read(workloads[res.Spec.WorkloadRef.UID], v.lookup); refusal == nil {
			v.demand.Served(req.Gang, res.CreationTimestamp.Time)
		}
	}
	return v.demand.Weights(v.now, waiting)
}
