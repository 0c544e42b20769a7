package pool

import (
	"context"
	"errors"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/controllers/watch"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/snapshot"
)

const (
	// gathering collects a burst of events into one look.
	gathering = 200 * time.Millisecond
	// debounce is how long the policies must have been failing before a check is declared inactive: that makes its
	// ClusterQueues inactive as well.
	debounce = 10 * time.Second
)

// Options are what the controller needs besides its dependencies.
type Options struct {
	Fence *Fence
	// Prober writes dry runs. It must not remember what it wrote.
	Prober     client.Client
	Cluster    *cluster.Cluster
	TaintRules bool
	// Namespace of the controller, where it may try what the policies forbid.
	Namespace string
}

type reconciler struct {
	*shell.Dependencies
	Options
	// probing is touched by one look at a time.
	probing probing
}

// Setup adds the controller to the manager.
func Setup(mgr manager.Manager, deps *shell.Dependencies, opts Options) error {
	r := &reconciler{Dependencies: deps, Options: opts}
	kinds := []client.Object{
		&berth.AcceleratorPool{}, &berth.GangReservationConfig{}, &berth.GangReservation{}, &kueue.AdmissionCheck{},
		&resourcev1.ResourceSlice{}, &resourcev1.ResourceClaim{}, &resourcev1.DeviceClass{}, &corev1.Node{},
		&admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
		&admissionregistrationv1.MutatingAdmissionPolicy{}, &admissionregistrationv1.MutatingAdmissionPolicyBinding{},
	}
	if opts.TaintRules {
		kinds = append(kinds, &resourcev1.DeviceTaintRule{})
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("pool").WithOptions(controller.Options{MaxConcurrentReconciles: 1})
	for _, kind := range kinds {
		b = b.WatchesRawSource(source.Kind(mgr.GetCache(), kind, watch.Soon[client.Object](look, gathering), watch.Health()))
	}
	return b.Complete(r)
}

// look is the one key of the queue.
var look = ctrl.Request{NamespacedName: types.NamespacedName{Name: "look"}}

// view is everything that one look decides on.
type view struct {
	snapshot *snapshot.Snapshot
	world    placement.World
	report   policy.Report
	// failingSince is when the policies were first found not in force; zero while they are.
	failingSince time.Time
	now          time.Time
}

// Reconcile is one look at everything.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	if err := r.Ready(ctx); err != nil {
		return ctrl.Result{}, err
	}
	s, err := snapshot.Read(ctx, r.Client, r.TaintRules)
	if err != nil {
		return ctrl.Result{}, err
	}
	// The taints only spare the scheduler vain attempts: nothing waits for them.
	failed := []error{r.taint(ctx, s)}
	now := r.Now()
	again, err := r.probe(ctx, s, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	v := &view{snapshot: s, world: r.Cluster.World(s), report: r.probing.report, failingSince: r.Fence.failing(), now: now}
	for _, p := range s.AcceleratorPools {
		failed = append(failed, r.writePool(ctx, p, v))
	}
	for _, ac := range s.AdmissionChecks {
		if ac.Spec.ControllerName == berth.ControllerName {
			failed = append(failed, r.writeCheck(ctx, ac, v))
		}
	}
	return ctrl.Result{RequeueAfter: again}, errors.Join(failed...)
}

func pools(s *snapshot.Snapshot) []berth.AcceleratorPool {
	all := make([]berth.AcceleratorPool, 0, len(s.AcceleratorPools))
	for _, p := range s.AcceleratorPools {
		all = append(all, *p)
	}
	return all
}
