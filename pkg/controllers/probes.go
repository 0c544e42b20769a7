package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	berthv1alpha1 "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// probeTimeout is how long a readiness probe waits for caches.
const probeTimeout = 500 * time.Millisecond

// warm starts, on every replica, the informers that a takeover needs, and tells the probe when they have synced. Those
// of the controllers are started by their own warm-up.
type warm struct {
	cache  cache.Cache
	synced atomic.Bool
}

func addProbes(mgr manager.Manager) error {
	w := &warm{cache: mgr.GetCache()}
	if err := mgr.Add(w); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("caches", w.check)
}

// NeedLeaderElection is false: a stand-by is ready, too.
func (*warm) NeedLeaderElection() bool { return false }

// Start returns when the informers have synced.
func (w *warm) Start(ctx context.Context) error {
	for _, obj := range []client.Object{&resourcev1.ResourceClaim{}, &berthv1alpha1.GangReservation{}} {
		if _, err := w.cache.GetInformer(ctx, obj); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("watching %T: %w", obj, err)
		}
	}
	w.synced.Store(true)
	return nil
}

func (w *warm) check(request *http.Request) error {
	if !w.synced.Load() {
		return errors.New("the caches have not synced")
	}
	ctx, cancel := context.WithTimeout(request.Context(), probeTimeout)
	defer cancel()
	// All that were started by now, those of the controllers among them.
	if !w.cache.WaitForCacheSync(ctx) {
		return errors.New("some caches have not synced")
	}
	return nil
}
