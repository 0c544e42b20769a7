package mirror

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// All mirrors everything that snapshot.Read lists, but for kinds that the API server does not serve yet: Berth may be started
// before Kueue is installed, and then its informer's own lists do until the next start. taintRules says whether the API server serves DeviceTaintRules.
func All(ctx context.Context, of cache.Informers, taintRules bool) (*Mirror, error) {
	m := New()
	steps := []func(context.Context, *Mirror, cache.Informers) error{
		Add[berth.AcceleratorPool], Add[berth.GangReservationConfig], Add[berth.GangReservation], Add[berth.CapacityFold],
		Add[resourcev1.ResourceSlice], Add[resourcev1.DeviceClass],
		Add[resourcev1.ResourceClaim], Add[resourcev1.ResourceClaimTemplate],
		Add[corev1.Node], Add[corev1.Pod], Add[batchv1.Job],
		Add[kueue.ResourceFlavor], Add[kueue.ClusterQueue], Add[kueue.Cohort], Add[kueue.LocalQueue],
		Add[kueue.AdmissionCheck], Add[kueue.Workload],
	}
	if taintRules {
		steps = append(steps, Add[resourcev1.DeviceTaintRule])
	}
	for _, step := range steps {
		if err := step(ctx, m, of); err != nil && !apimeta.IsNoMatchError(err) {
			return nil, err
		}
	}
	return m, nil
}
