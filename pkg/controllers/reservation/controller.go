package reservation

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/util/admissioncheck"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
	"github.com/berth-dev/berth/pkg/controllers/watch"
	"github.com/berth-dev/berth/pkg/reservation"
)

// lookAgain is how soon something that waits, or has just been answered, is looked at again although nothing tells of a
// change: an own write hides for a few seconds that others removed the object (see package written), and nobody tells when
// that is over.
const lookAgain = 10 * time.Second

// rounds bounds how often one reconcile gathers and applies; the longest way, from a stale Ready to the last finalizer,
// takes nine.
const rounds = 16

// Options are what the controller needs besides its dependencies.
type Options struct {
	Board      *verdict.Board
	Backoff    *verdict.Backoff
	Cluster    *cluster.Cluster
	TaintRules bool
}

type reconciler struct {
	*shell.Dependencies
	Options
}

// Setup adds the controller to the manager.
func Setup(mgr manager.Manager, deps *shell.Dependencies, opts Options) error {
	r := &reconciler{Dependencies: deps, Options: opts}
	return ctrl.NewControllerManagedBy(mgr).Named("reservation").
		For(&berth.GangReservation{}).
		Watches(&resourcev1.ResourceClaim{}, watch.Labelled()).
		Watches(&corev1.Pod{}, watch.Labelled()).
		Watches(&kueue.Workload{}, watch.OfWorkload(mgr.GetCache())).
		Watches(&corev1.Node{}, watch.Releasing(mgr.GetCache()), builder.WithPredicates(watch.Health())).
		WatchesRawSource(opts.Board.Changes()).
		WithOptions(controller.Options{MaxConcurrentReconciles: int(deps.Config.Concurrency.Reservations)}).
		Complete(r)
}

// Reconcile brings one reservation as far as it can go now.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.Ready(ctx); err != nil {
		return ctrl.Result{}, err
	}
	for range rounds {
		g, err := r.gather(ctx, req.NamespacedName)
		if err != nil || g == nil {
			return ctrl.Result{}, err
		}
		plan := reservation.Next(g.View)
		if len(plan.Steps) == 0 {
			var again time.Duration
			if plan.Waits != "" || r.answered(g) {
				again = lookAgain
			}
			return ctrl.Result{RequeueAfter: again}, r.waits(ctx, g, plan)
		}
		log.FromContext(ctx).V(1).Info("Next", "rule", plan.Rule, "do", plan.Steps[0].Do, "names", plan.Steps[0].Names)
		switch err := r.apply(ctx, g, plan); {
		case apierrors.IsConflict(err):
			// Somebody wrote in between. Our view is old; the informer brings the new one shortly.
			return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
		case err != nil:
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: time.Second}, nil
}

// answered reports whether the Workload was given an answer that may still hide its removal.
func (r *reconciler) answered(g *gathered) bool {
	if g.workload == nil {
		return false
	}
	check := admissioncheck.FindAdmissionCheck(g.workload.Status.AdmissionChecks, kueue.AdmissionCheckReference(g.res.Spec.Check))
	return check != nil && r.Now().Sub(check.LastTransitionTime.Time) < lookAgain
}

// waits keeps the sentence on the reservation that says what it waits for.
func (r *reconciler) waits(ctx context.Context, g *gathered, plan reservation.Plan) error {
	if !g.recorded || plan.Waits == "" {
		return nil
	}
	res := g.res.DeepCopy()
	before := apimeta.FindStatusCondition(g.res.Status.Conditions, berth.ReservationProgressing)
	if before != nil && before.Message == plan.Waits {
		return nil
	}
	err := r.status(ctx, res, "Waiting", plan.Waits)
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// farewell ends what the Workload says of the slice when that is gone, unless it speaks of another reservation by now.
func (r *reconciler) farewell(ctx context.Context, g *gathered) error {
	if g.workload == nil || g.workload.DeletionTimestamp != nil || g.Demand.Current && g.Demand.Wanted() {
		return nil
	}
	slice := adaptkueue.Slice(g.res)
	c := apimeta.FindStatusCondition(g.workload.Status.Conditions, berth.ConditionGangReserved)
	if c == nil || c.Message != slice && c.Message != givingBack(g.res) {
		return nil
	}
	a := adaptkueue.Answer{Reason: adaptkueue.ReasonReleased, Message: "released: " + slice}
	if c.Message == givingBack(g.res) && g.Demand.Check == reservation.CheckPending {
		a.State = kueue.CheckStatePending
	}
	return r.answer(ctx, g, a)
}

// givingBack is what the Workload says while the slice is on its way out.
func givingBack(res *berth.GangReservation) string {
	return "being given back: " + adaptkueue.Slice(res)
}

// setProgress is the condition Progressing.
func setProgress(res *berth.GangReservation, why, message string, now time.Time) {
	apimeta.SetStatusCondition(&res.Status.Conditions, metav1.Condition{
		Type: berth.ReservationProgressing, Status: metav1.ConditionTrue, Reason: why, Message: message,
		ObservedGeneration: res.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}
