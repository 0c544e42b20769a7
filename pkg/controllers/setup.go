package controllers

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/cluster/written"
	"github.com/berth-dev/berth/pkg/controllers/fold"
	"github.com/berth-dev/berth/pkg/controllers/line"
	"github.com/berth-dev/berth/pkg/controllers/pool"
	"github.com/berth-dev/berth/pkg/controllers/reservation"
	"github.com/berth-dev/berth/pkg/controllers/seating"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
	"github.com/berth-dev/berth/pkg/controllers/watch"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/snapshot/mirror"
)

// setup adds Berth's controllers. They share one client that sees its own writes, and what they find out of each other.
func setup(mgr manager.Manager, deps *shell.Dependencies) error {
	taintRules, err := served(mgr, "DeviceTaintRule")
	if err != nil {
		return err
	}
	if err := watch.Index(mgr); err != nil {
		return err
	}
	plain := deps.Client
	own := *deps
	lists, err := mirror.All(context.Background(), mgr.GetCache(), taintRules)
	if err != nil {
		return err
	}
	own.Client = written.New(deps.Client, deps.Live).WithMirror(lists)

	world := cluster.New()
	world.Breached(func(err error) {
		deps.Metrics.LedgerBreached()
		deps.Log.Error(err, "The ledger is built anew: what was kept did not say what the objects say")
	})
	if err := mgr.Add(audits{world, lists, deps.Log}); err != nil {
		return err
	}
	board := verdict.NewBoard()
	backoff := verdict.NewBackoff(deps.Config.Reservation.RetryBackoffBase.Duration, deps.Config.Reservation.RetryBackoffMax.Duration, deps.Now)
	fence := pool.NewFence()

	if err := pool.Setup(mgr, &own, pool.Options{
		Fence: fence, Prober: plain, Cluster: world, TaintRules: taintRules, Namespace: configv1alpha1.Namespace(),
	}); err != nil {
		return err
	}
	if err := line.Setup(mgr, &own, line.Options{
		Placer: placement.NewScored(0), Board: board, Backoff: backoff, Cluster: world, TaintRules: taintRules,
		Probed: fence.Probed(), NotFenced: fence.NotInForce, Unfenced: fence.Unfenced, Wake: fence.Changed(),
	}); err != nil {
		return err
	}
	if err := reservation.Setup(mgr, &own, reservation.Options{
		Board: board, Backoff: backoff, Cluster: world, TaintRules: taintRules,
	}); err != nil {
		return err
	}
	if err := fold.Setup(mgr, &own, fold.Options{Writer: plain, Cluster: world, TaintRules: taintRules}); err != nil {
		return err
	}
	return seating.Setup(mgr, &own, board)
}

// served reports whether the API server has a kind of resource.k8s.io/v1; DeviceTaintRule is there from 1.37 on.
func served(mgr manager.Manager, kind string) (bool, error) {
	_, err := mgr.GetRESTMapper().RESTMapping(schema.GroupKind{Group: resourcev1.GroupName, Kind: kind}, resourcev1.SchemeGroupVersion.Version)
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}
