package snapshot

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// Read lists every kind from one reader. taintRules says whether the API server serves DeviceTaintRules (Kubernetes 1.37).
func Read(ctx context.Context, r client.Reader, taintRules bool) (*Snapshot, error) {
	s := &Snapshot{}
	steps := []func() error{
		func() error { return list(ctx, r, &berth.AcceleratorPoolList{}, &s.AcceleratorPools) },
		func() error { return list(ctx, r, &berth.GangReservationConfigList{}, &s.Configs) },
		func() error { return list(ctx, r, &berth.GangReservationList{}, &s.Reservations) },
		func() error { return list(ctx, r, &berth.CapacityFoldList{}, &s.CapacityFolds) },
		func() error { return list(ctx, r, &resourcev1.ResourceSliceList{}, &s.ResourceSlices) },
		func() error { return list(ctx, r, &resourcev1.DeviceClassList{}, &s.DeviceClasses) },
		func() error { return list(ctx, r, &resourcev1.ResourceClaimList{}, &s.ResourceClaims) },
		func() error { return list(ctx, r, &resourcev1.ResourceClaimTemplateList{}, &s.ResourceClaimTemplates) },
		func() error { return list(ctx, r, &corev1.NodeList{}, &s.Nodes) },
		func() error { return list(ctx, r, &corev1.PodList{}, &s.Pods) },
		func() error { return list(ctx, r, &batchv1.JobList{}, &s.Jobs) },
		func() error { return list(ctx, r, &kueue.ResourceFlavorList{}, &s.ResourceFlavors) },
		func() error { return list(ctx, r, &kueue.ClusterQueueList{}, &s.ClusterQueues) },
		func() error { return list(ctx, r, &kueue.CohortList{}, &s.Cohorts) },
		func() error { return list(ctx, r, &kueue.LocalQueueList{}, &s.LocalQueues) },
		func() error { return list(ctx, r, &kueue.AdmissionCheckList{}, &s.AdmissionChecks) },
		func() error { return list(ctx, r, &kueue.WorkloadList{}, &s.Workloads) },
	}
	if taintRules {
		steps = append(steps, func() error { return list(ctx, r, &resourcev1.DeviceTaintRuleList{}, &s.DeviceTaintRules) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Lister lists whole kinds from memory: every object at the same address until it changes and, as far as that is possible,
// at the same place from list to list. Cluster finds by that what changed.
type Lister interface {
	// Items returns a []*T for a kind *T. It and what it points to are shared and must not be changed. listed is false for a
	// kind that it cannot list, or not yet.
	Items(ctx context.Context, kind client.Object) (items any, listed bool, err error)
}

// list reads one kind, or takes it from a Lister.
func list[T any](ctx context.Context, r client.Reader, into client.ObjectList, out *[]*T) error {
	if lister, ok := r.(Lister); ok {
		items, listed, err := lister.Items(ctx, any(new(T)).(client.Object))
		if err != nil {
			return fmt.Errorf("listing %T: %w", into, err)
		}
		if all, ok := items.([]*T); listed && ok {
			*out = all
			return nil
		}
	}
	if err := r.List(ctx, into, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing %T: %w", into, err)
	}
	return apimeta.EachListItem(into, func(obj runtime.Object) error {
		item, ok := any(obj).(*T)
		if !ok {
			return fmt.Errorf("listing %T: unexpected item %T", into, obj)
		}
		*out = append(*out, item)
		return nil
	})
}
