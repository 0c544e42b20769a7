package fold

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/capacity"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/controllers/watch"
)

const (
	// gathering collects a burst of events into one look.
	gathering = 50 * time.Millisecond
	// parallel is how many folds, and how many targets of each, are read or written at once.
	parallel = 8
)

// Options are what the controller needs besides its dependencies.
type Options struct {
	// Writer changes Kueue's objects as they came from the API server. It must not remember what it wrote.
	Writer     client.Client
	Cluster    *cluster.Cluster
	TaintRules bool
}

type reconciler struct {
	*shell.Dependencies
	Options
	// What follows is touched by one look at a time.
	compiler  adaptkueue.FoldCompiler
	calculate capacity.Calculator
	kept      map[types.UID]*kept
}

// Setup adds the controller to the manager.
func Setup(mgr manager.Manager, deps *shell.Dependencies, opts Options) error {
	r := &reconciler{Dependencies: deps, Options: opts, kept: map[types.UID]*kept{}}
	kinds := []client.Object{
		&berth.CapacityFold{}, &berth.AcceleratorPool{}, &berth.GangReservation{},
		&resourcev1.ResourceSlice{}, &resourcev1.DeviceClass{}, &resourcev1.ResourceClaim{}, &corev1.Node{},
		&kueue.Workload{}, &kueue.ClusterQueue{}, &kueue.Cohort{}, &kueue.ResourceFlavor{},
	}
	if opts.TaintRules {
		kinds = append(kinds, &resourcev1.DeviceTaintRule{})
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("fold").WithOptions(controller.Options{MaxConcurrentReconciles: 1})
	for _, kind := range kinds {
		b = b.WatchesRawSource(source.Kind(mgr.GetCache(), kind, watch.Soon[client.Object](look, gathering), relevant{}))
	}
	return b.Complete(r)
}

// look is the one key of the queue.
var look = ctrl.Request{NamespacedName: types.NamespacedName{Name: "look"}}

// Reconcile is one look at all folds. What goes wrong with one of them stops no other.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	if err := r.Ready(ctx); err != nil {
		return ctrl.Result{}, err
	}
	v, err := r.gather(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	var failed failures
	failed.add(r.keepFlavors(ctx, v))
	var group errgroup.Group
	group.SetLimit(parallel)
	var again soonest
	for i := range v.folds {
		group.Go(func() error {
			after, err := r.follow(ctx, &v.folds[i])
			failed.add(err)
			again.in(after)
			return nil
		})
	}
	for _, f := range v.deleted {
		group.Go(func() error {
			failed.add(r.leave(ctx, f))
			return nil
		})
	}
	_ = group.Wait() // no function of the group returns an error
	r.Metrics.SetFolds(v.shares(), v.states())
	return ctrl.Result{RequeueAfter: again.after}, failed.err()
}

// follow looks at one fold, closer where something is to be changed, and changes it. It returns when to look again, zero for
// when something happens.
func (r *reconciler) follow(ctx context.Context, f *folded) (time.Duration, error) {
	d := decide(f)
	for len(d.unsure) > 0 {
		if err := r.lookCloser(ctx, f, d.unsure); err != nil {
			return 0, err
		}
		d = decide(f)
	}
	again := soonest{after: d.again}
	after, err := r.apply(ctx, f, d)
	again.in(after)
	return again.after, err
}

// failures collects errors of functions that run at once.
type failures struct {
	mu  sync.Mutex
	all []error
}

func (f *failures) add(err error) {
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all = append(f.all, err)
	}
}

func (f *failures) err() error { return errors.Join(f.all...) }

// soonest is the shortest of the times that were named; zero for none.
type soonest struct {
	mu    sync.Mutex
	after time.Duration
}

func (s *soonest) in(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after > 0 && (s.after == 0 || after < s.after) {
		s.after = after
	}
}
