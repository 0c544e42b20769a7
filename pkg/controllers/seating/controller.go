package seating

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
	"github.com/berth-dev/berth/pkg/controllers/watch"
	"github.com/berth-dev/berth/pkg/reservation"
)

// parallel is how many gates are taken off at once.
const parallel = 32

type reconciler struct {
	*shell.Dependencies
	board *verdict.Board
}

// Setup adds the controller to the manager.
func Setup(mgr manager.Manager, deps *shell.Dependencies, board *verdict.Board) error {
	r := &reconciler{Dependencies: deps, board: board}
	return ctrl.NewControllerManagedBy(mgr).Named("seating").
		For(&berth.GangReservation{}).
		Watches(&resourcev1.ResourceClaim{}, watch.Labelled()).
		Watches(&corev1.Pod{}, watch.Labelled()).
		Watches(&kueue.Workload{}, watch.OfWorkload(mgr.GetCache())).
		WithOptions(controller.Options{MaxConcurrentReconciles: int(deps.Config.Concurrency.Seats)}).
		Complete(r)
}

// Reconcile seats whoever can be seated now.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.Ready(ctx); err != nil {
		return ctrl.Result{}, err
	}
	g, err := r.gather(ctx, req.NamespacedName)
	if err != nil || g == nil {
		return ctrl.Result{}, err
	}
	plan := reservation.Seat(g.SeatingView)
	r.board.Set(req.NamespacedName, verdict.Seating, plan.GiveUp)
	switch err := r.apply(ctx, g, plan); {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: 20 * time.Millisecond}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.again(g, plan)}, nil
}

// again is when to look although nothing changes: when patience ends, then at the deadline. Later, while a rank waits: an
// own write hides for a few seconds that its predecessor is gone (see package written), and nobody tells when that is over;
// nor when the pods of a former admission end.
func (r *reconciler) again(g *gathered, plan reservation.SeatingPlan) time.Duration {
	begun := g.Begun || plan.Begin
	switch {
	case plan.Waits != "" && (begun || g.Late):
		return patience
	case begun || g.Late || g.deadline.IsZero():
		return 0
	}
	if left := g.since.Add(patience).Sub(r.Now()); left > 0 {
		return min(left, g.deadline.Sub(r.Now()))
	}
	return min(patience, g.deadline.Sub(r.Now()))
}

func (r *reconciler) apply(ctx context.Context, g *gathered, plan reservation.SeatingPlan) error {
	if plan.Begin {
		if err := r.begin(ctx, g); err != nil {
			return err
		}
	}
	if err := r.confirm(ctx, g, plan.Enter); err != nil {
		return err
	}
	for _, c := range g.Claims {
		if pods := plan.Enter[c.Name]; len(pods) > 0 {
			if err := r.enter(ctx, g, c.Name, pods); err != nil {
				return err
			}
		}
	}
	if err := r.ungate(ctx, g, plan.Ungate); err != nil {
		return err
	}
	return r.say(ctx, g, plan)
}

// begin writes down that pods may run, before the first gate is off: a release must then reckon with pods that it cannot
// see.
func (r *reconciler) begin(ctx context.Context, g *gathered) error {
	res := g.res.DeepCopy()
	now := metav1.NewTime(r.Now())
	res.Status.Phase = berth.PhaseHandedOver
	apimeta.SetStatusCondition(&res.Status.Conditions, metav1.Condition{
		Type: berth.ReservationSeated, Status: metav1.ConditionTrue, Reason: "GangComplete",
		Message: fmt.Sprintf("all %d pods exist", g.Expected), LastTransitionTime: now, ObservedGeneration: res.Generation,
	})
	progress(res, "HandedOver", seated, now)
	return r.Client.Status().Update(ctx, res)
}

// confirm leaves out who was let go and, unseen by the cache, has ended or is to go: such a pod left its claims for good.
func (r *reconciler) confirm(ctx context.Context, g *gathered, enter map[string][]reservation.SeatingPod) error {
	stays := map[string]bool{}
	for name, pods := range enter {
		for _, p := range pods {
			if _, asked := stays[p.UID]; asked || p.Gated {
				continue
			}
			pod := &corev1.Pod{}
			err := r.Live.Get(ctx, client.ObjectKeyFromObject(g.pods[p.Name]), pod)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			stays[p.UID] = err == nil && string(pod.UID) == p.UID && pod.DeletionTimestamp == nil && !jobs.Ended(pod)
		}
		enter[name] = slices.DeleteFunc(pods, func(p reservation.SeatingPod) bool { return !p.Gated && !stays[p.UID] })
	}
	return nil
}

// enter adds pods to a claim's reservedFor in one write, conditioned on the version whose entries were looked at.
func (r *reconciler) enter(ctx context.Context, g *gathered, name string, pods []reservation.SeatingPod) error {
	claim := g.claims[name].DeepCopy()
	for _, p := range pods {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{
			Resource: "pods", Name: p.Name, UID: types.UID(p.UID),
		})
	}
	return r.Client.Status().Update(ctx, claim)
}

// ungate takes the gates off in parallel. The UID in the patch keeps it from a successor of the same name; a pod that is
// gone needs nothing.
func (r *reconciler) ungate(ctx context.Context, g *gathered, pods []reservation.SeatingPod) error {
	var group errgroup.Group
	group.SetLimit(parallel)
	failed := make([]error, len(pods))
	for i, p := range pods {
		group.Go(func() error {
			patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"schedulingGates":[{"$patch":"delete","name":%q}]}}`, p.UID, berth.GateSeating)
			err := r.Client.Patch(ctx, g.pods[p.Name].DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch))
			if client.IgnoreNotFound(err) != nil {
				failed[i] = err
			}
			return nil
		})
	}
	_ = group.Wait() // no function of the group returns an error
	return errors.Join(failed...)
}

// seated is said when nobody waits for a seat.
const seated = "the gang is seated"

// waiting is the reason of a sentence that says what seating waits for.
const waiting = "Waiting"

// say keeps on the reservation what seating waits for, once that is worth a word, and takes it back when it is over.
func (r *reconciler) say(ctx context.Context, g *gathered, plan reservation.SeatingPlan) error {
	have := apimeta.FindStatusCondition(g.res.Status.Conditions, berth.ReservationProgressing)
	why, message := waiting, plan.Waits
	switch {
	case plan.Waits == "" && g.Begun && have != nil && have.Reason == waiting:
		why, message = "HandedOver", seated
	case plan.Waits == "" || (!g.Begun && r.Now().Sub(g.since) < patience):
		return nil
	}
	if have != nil && have.Message == message {
		return nil
	}
	res := g.res.DeepCopy()
	progress(res, why, message, metav1.NewTime(r.Now()))
	return client.IgnoreNotFound(r.Client.Status().Update(ctx, res))
}

// progress is the condition Progressing.
func progress(res *berth.GangReservation, why, message string, now metav1.Time) {
	apimeta.SetStatusCondition(&res.Status.Conditions, metav1.Condition{
		Type: berth.ReservationProgressing, Status: metav1.ConditionTrue, Reason: why, Message: message,
		LastTransitionTime: now, ObservedGeneration: res.Generation,
	})
}
