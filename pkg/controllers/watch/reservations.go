package watch

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// byWorkload and byPhase index GangReservations in the cache: without them every event of a Workload or a Node would walk
// through all reservations.
const (
	byWorkload = "spec.workloadRef.name"
	byPhase    = "status.phase"
)

// Index adds the indexes that OfWorkload and Releasing use. Call it once for each manager.
func Index(mgr manager.Manager) error {
	ctx := context.Background()
	if err := mgr.GetFieldIndexer().IndexField(ctx, &berth.GangReservation{}, byWorkload, func(obj client.Object) []string {
		return []string{obj.(*berth.GangReservation).Spec.WorkloadRef.Name}
	}); err != nil {
		return err
	}
	return mgr.GetFieldIndexer().IndexField(ctx, &berth.GangReservation{}, byPhase, func(obj client.Object) []string {
		return []string{string(obj.(*berth.GangReservation).Status.Phase)}
	})
}

// Labelled asks for the reservation that a pod or claim names in its label.
func Labelled() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		name := obj.GetLabels()[berth.LabelReservation]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
	})
}

// OfWorkload asks for the reservations that serve a Workload: one for each epoch, so almost always one. cache is the
// manager's.
func OfWorkload(cache client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, wl client.Object) []reconcile.Request {
		return requests(ctx, cache, client.InNamespace(wl.GetNamespace()), client.MatchingFields{byWorkload: wl.GetName()})
	})
}

// Releasing asks for every reservation whose release may wait for what happened to the object. cache is the manager's.
func Releasing(cache client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return requests(ctx, cache, client.MatchingFields{byPhase: string(berth.PhaseReleasing)})
	})
}

func requests(ctx context.Context, cache client.Reader, where ...client.ListOption) []reconcile.Request {
	var list berth.GangReservationList
	if err := cache.List(ctx, &list, append(where, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "Listing reservations")
		return nil
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}
