package line

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
	"github.com/berth-dev/berth/pkg/controllers/watch"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// gathering is how long events are collected before a pass: a burst is one pass.
const gathering = 20 * time.Millisecond

// Options are what the line needs besides its dependencies.
type Options struct {
	Placer     placement.Placer
	Board      *verdict.Board
	Backoff    *verdict.Backoff
	TaintRules bool
	Cluster    *cluster.Cluster
	// Probed is closed when NotFenced and Unfenced have something to say; no pass is made before.
	Probed <-chan struct{}
	// NotFenced returns why nothing may be reserved now, or nil.
	NotFenced func() *reason.Refusal
	// Unfenced returns why nothing of one AcceleratorPool may be reserved now, or nil.
	Unfenced func(*berth.AcceleratorPool) *reason.Refusal
	// Wake delivers an event when NotFenced may have changed.
	Wake <-chan event.TypedGenericEvent[*berth.AcceleratorPool]
}

type reconciler struct {
	*shell.Dependencies
	Options
	// memory is what the passes know of refusals, and barred for which pools nothing was given out when they were made.
	memory line.Memory
	barred string
	demand *line.Demand
	folds  adaptkueue.FoldCompiler
	// readings and eligible are what was read of Workloads and nodes in former passes.
	readings adaptkueue.Readings
	eligible *nodes.Eligibility
	// unplaced are the pods that the scheduler had tried in vain when the last pass was made.
	unplaced unplaced
	// answered is when the last pass was made that answered Workloads.
	answered time.Time
}

// Setup adds the line to the manager.
func Setup(mgr manager.Manager, deps *shell.Dependencies, opts Options) error {
	r := &reconciler{Dependencies: deps, Options: opts, demand: line.NewDemand(), eligible: nodes.NewEligibility(nil)}
	kinds := []client.Object{
		&kueue.Workload{}, &kueue.AdmissionCheck{}, &kueue.ResourceFlavor{}, &kueue.ClusterQueue{},
		&berth.AcceleratorPool{}, &berth.GangReservation{}, &berth.GangReservationConfig{}, &berth.CapacityFold{},
		&resourcev1.ResourceSlice{}, &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimTemplate{}, &resourcev1.DeviceClass{},
		&corev1.Node{}, &corev1.Pod{}, &batchv1.Job{},
	}
	if opts.TaintRules {
		kinds = append(kinds, &resourcev1.DeviceTaintRule{})
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("line").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: retries()}).
		WatchesRawSource(source.Channel(opts.Wake, watch.Soon[*berth.AcceleratorPool](pass, gathering)))
	for _, kind := range kinds {
		b = b.WatchesRawSource(source.Kind(mgr.GetCache(), kind, watch.Soon[client.Object](pass, gathering), relevant{}))
	}
	return b.Complete(r)
}

// retries bounds how long after a pass that failed the next one comes. All that is due without an event is lost with it, so
// a write that fails for one gang again and again must not keep the others waiting.
func retries() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](5*time.Millisecond, 10*time.Second)
}

// pass is the one key of the queue.
var pass = ctrl.Request{NamespacedName: types.NamespacedName{Name: "pass"}}

// Reconcile is one pass.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	if err := r.Ready(ctx); err != nil {
		return ctrl.Result{}, err
	}
	select {
	case <-r.Probed:
	case <-ctx.Done():
		return ctrl.Result{}, ctx.Err()
	}
	begun := r.Now()
	v, err := r.gather(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	again := r.judge(v)
	s := decide(v, fenced{r.Placer, v.unfenced})
	if again > 0 {
		s.due(again)
	}
	for key, why := range s.recalls {
		r.Board.Set(key, verdict.Recalled, why)
	}
	r.Metrics.ObservePass(r.Now().Sub(begun))
	r.Metrics.SetWaiting(s.waiting)
	r.Metrics.SetReservations(v.phases())
	if len(s.answers)+len(s.unpark) > 0 {
		r.answered = r.Now()
	}
	if err := r.apply(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.again(s)}, nil
}

// lookAgain is how soon after answers a pass is due: an own write hides for a few seconds that its Workload was removed
// (see package written), and nobody tells when that is over.
const lookAgain = 10 * time.Second

// again is when the next pass is due although nothing changes. After a refused write it is due at once: it tells the gang
// why, looks for others that can use the slice, and waits for the end of the back-off.
func (r *reconciler) again(s steps) time.Duration {
	if left := r.answered.Add(lookAgain).Sub(r.Now()); left > 0 {
		s.due(left)
	}
	for _, res := range s.reserve {
		if wait, _ := r.Backoff.Waits(res.Spec.WorkloadRef.UID); wait > 0 {
			s.due(min(wait, gathering))
		}
	}
	return s.again
}

func (r *reconciler) gather(ctx context.Context) (*view, error) {
	s, err := snapshot.Read(ctx, r.Client, r.TaintRules)
	if err != nil {
		return nil, err
	}
	world := r.Cluster.World(s)
	v := index(s, world, r.folds.Compile(s.CapacityFolds, world.Inventory))
	v.now, v.notFenced, v.backoff = r.Now(), r.NotFenced(), r.Backoff.Waits
	v.seating = r.Config.Seating.Timeout.Duration
	managed := dra.NewManaged(s.AcceleratorPools)
	v.unfenced = func(id inventory.PoolID) *reason.Refusal {
		if owner := managed.Owner(id); owner != nil {
			return r.Unfenced(owner)
		}
		return nil
	}
	v.memory, v.demand = r.remembered(v), r.demand
	r.readings.Sweep()
	r.eligible = r.eligible.For(s.Nodes)
	v.readings, v.lookup.Nodes = &r.readings, r.eligible
	return v, nil
}

// remembered is the memory of former passes, empty when other pools are barred now: refusals depend on that.
func (r *reconciler) remembered(v *view) *line.Memory {
	barred := ""
	for _, pool := range v.world.Inventory.Pools() {
		if why := v.unfenced(pool.ID); why != nil {
			barred += pool.ID.String() + " " + why.Error() + "\n"
		}
	}
	if barred != r.barred {
		r.barred = barred
		r.memory.Forget()
	}
	return &r.memory
}
