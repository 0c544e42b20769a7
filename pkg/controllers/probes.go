package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	kueuev1beta2 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berthv1alpha1 "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// probeTimeout is how long a readiness probe waits for caches.
const probeTimeout = 500 * time.Millisecond

// vital are kinds without which a process is of no use, one of each API that must be installed: a controller whose kind
// is missing has no informer yet whose state could be asked for.
var vital = []client.Object{
	&resourcev1.ResourceClaim{},
	&berthv1alpha1.GangReservation{},
	&kueuev1beta2.Workload{},
}

// addProbes makes a process alive while it serves, and ready while its caches are filled, whether it leads or not: a
// stand-by must count as available, or an update of the Deployment would never end.
func addProbes(mgr manager.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	caches := mgr.GetCache()
	return mgr.AddReadyzCheck("caches", func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), probeTimeout)
		defer cancel()
		for _, obj := range vital {
			if _, err := caches.GetInformer(ctx, obj, cache.BlockUntilSynced(false)); err != nil {
				return fmt.Errorf("watching %T: %w", obj, err)
			}
		}
		// All that were started by now, those of the controllers among them.
		if !caches.WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled")
		}
		return nil
	})
}
