package reservation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/reservation"
)

// apply carries out the steps of one plan. The first failure ends it; what was done is seen by the next gather.
func (r *reconciler) apply(ctx context.Context, g *gathered, plan reservation.Plan) error {
	for _, step := range plan.Steps {
		if err := r.step(ctx, g, step); err != nil {
			return fmt.Errorf("%s (%s): %w", step.Do, plan.Rule, err)
		}
	}
	return nil
}

func (r *reconciler) step(ctx context.Context, g *gathered, s reservation.Step) error {
	switch s.Do {
	case reservation.CreateClaims:
		return r.createClaims(ctx, g, s.Names)
	case reservation.Allocate:
		return r.allocate(ctx, g, s.Names)
	case reservation.KeepClaims:
		return r.keep(ctx, g, s.Names)
	case reservation.Hold:
		return r.rehold(ctx, g, s.Names)
	case reservation.Ready:
		return r.ready(ctx, g)
	case reservation.Record:
		return r.phase(ctx, g, berth.PhaseReserved, "Reserved", "every device is allocated and held")
	case reservation.Retry:
		return r.retry(ctx, g, s.Because)
	case reservation.Release:
		return r.release(ctx, g, s.Because)
	case reservation.Pending:
		return r.answer(ctx, g, adaptkueue.Answer{
			State: kueue.CheckStatePending, Reason: adaptkueue.ReasonReleased, Message: givingBack(g.res),
		})
	case reservation.DeleteClaims:
		return r.deleteClaims(ctx, g, s.Names)
	case reservation.DeletePods:
		return r.deletePods(ctx, g, s.Names)
	case reservation.Quarantine:
		return r.quarantine(ctx, g, s.Names)
	case reservation.EndQuarantine:
		return r.endQuarantine(ctx, g, s.Names)
	case reservation.ClearClaims:
		return r.clearClaims(ctx, g, s.Names)
	case reservation.Drop:
		return r.drop(ctx, g)
	default:
		return fmt.Errorf("unknown act %q", s.Do)
	}
}

// ready tells Kueue that the whole gang is held. A refusal for good, as of more host names than annotations may hold, is
// remembered: the next round gives the slice back. Once the gang has begun to run its slice is not given up for that.
func (r *reconciler) ready(ctx context.Context, g *gathered) error {
	err := r.answer(ctx, g, adaptkueue.Answer{
		State: kueue.CheckStateReady, PodSetUpdates: adaptkueue.Updates(g.res),
		Reserved: true, Reason: adaptkueue.ReasonReserved, Message: adaptkueue.Slice(g.res),
	})
	if err == nil || !final(err) || g.Phase == reservation.HandedOver {
		return err
	}
	r.Backoff.Failed(g.workload.UID, &reason.Refusal{Code: reason.ReservationFailed, Message: fmt.Sprintf(
		"the API server refused to make the check of the Workload Ready: %s", message(err))})
	return nil
}

// retry has Kueue evict the Workload as a whole. Without a delay the quota comes back at once.
func (r *reconciler) retry(ctx context.Context, g *gathered, because *reason.Refusal) error {
	return r.answer(ctx, g, adaptkueue.Refused("", kueue.CheckStateRetry, because))
}

// answer writes to the Workload and, when that stands, one event.
func (r *reconciler) answer(ctx context.Context, g *gathered, a adaptkueue.Answer) error {
	a.Check = kueue.AdmissionCheckReference(g.res.Spec.Check)
	if a.Given(g.workload) {
		return nil
	}
	if err := r.beside(ctx, g, &a); err != nil {
		return err
	}
	if err := adaptkueue.Write(ctx, r.Client, g.workload, a, r.Now()); err != nil {
		return err
	}
	kind := corev1.EventTypeNormal
	if a.State == kueue.CheckStateRetry {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(g.workload, g.res, kind, a.Reason, "Reserving", "%s", a.Message)
	return nil
}

// beside adds Berth's other checks on the Workload. There is one almost always, and then nothing is read.
func (r *reconciler) beside(ctx context.Context, g *gathered, a *adaptkueue.Answer) error {
	if len(g.workload.Status.AdmissionChecks) < 2 {
		return nil
	}
	var list kueue.AdmissionCheckList
	if err := r.Client.List(ctx, &list); err != nil {
		return err
	}
	checks := make([]*kueue.AdmissionCheck, 0, len(list.Items))
	for i := range list.Items {
		checks = append(checks, &list.Items[i])
	}
	a.Beside = adaptkueue.OurChecks(checks).Beside(g.workload, a.Check)
	return nil
}

// release begins to give everything back. A reservation that failed makes its Workload wait before the next try.
func (r *reconciler) release(ctx context.Context, g *gathered, because *reason.Refusal) error {
	switch because.Code {
	case reason.ReservationFailed, reason.ClaimMissing:
		r.Backoff.Failed(g.res.Spec.WorkloadRef.UID, because)
	}
	return r.phase(ctx, g, berth.PhaseReleasing, "Releasing", because.Message)
}

func (r *reconciler) phase(ctx context.Context, g *gathered, phase berth.ReservationPhase, why, message string) error {
	res := g.res.DeepCopy()
	res.Status.Phase = phase
	return r.status(ctx, res, why, message)
}

// status writes the reservation's status with what it waits for.
func (r *reconciler) status(ctx context.Context, res *berth.GangReservation, why, message string) error {
	res.Status.ObservedGeneration = res.Generation
	setProgress(res, why, message, r.Now())
	return r.Client.Status().Update(ctx, res)
}

func (r *reconciler) quarantine(ctx context.Context, g *gathered, hosts []string) error {
	res := g.res.DeepCopy()
	for _, host := range hosts {
		pools := map[[2]string]bool{}
		for _, p := range g.promises {
			for _, d := range p.devices {
				pool := [2]string{d.Driver, d.Pool}
				if slices.Contains(d.Hosts, host) && !pools[pool] {
					pools[pool] = true
					res.Status.Quarantine = append(res.Status.Quarantine, berth.QuarantinedShare{
						Node: host, Driver: d.Driver, Pool: d.Pool, Since: metav1.NewTime(r.Now()),
					})
				}
			}
		}
	}
	return r.status(ctx, res, "Quarantined", fmt.Sprintf("%d hosts are not Ready and may still run a pod", len(hosts)))
}

func (r *reconciler) endQuarantine(ctx context.Context, g *gathered, hosts []string) error {
	res := g.res.DeepCopy()
	res.Status.Quarantine = slices.DeleteFunc(res.Status.Quarantine, func(q berth.QuarantinedShare) bool {
		return slices.Contains(hosts, q.Node)
	})
	return r.status(ctx, res, "Quarantined", fmt.Sprintf("%d hosts are out of doubt", len(hosts)))
}

func (r *reconciler) deleteClaims(ctx context.Context, g *gathered, names []string) error {
	for _, name := range names {
		claim := g.claims[name]
		err := r.Client.Delete(ctx, claim, client.Preconditions{UID: ptr.To(claim.UID)})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) deletePods(ctx context.Context, g *gathered, names []string) error {
	var failed []error
	for _, name := range names {
		pod := g.pods[name]
		err := r.Client.Delete(ctx, pod, client.Preconditions{UID: ptr.To(pod.UID)})
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			failed = append(failed, err)
			continue
		}
		if err == nil {
			why, message := dismissal(g, name)
			r.Recorder.Eventf(pod, g.res, corev1.EventTypeWarning, why, "Deleting", "deleted: %s", message)
		}
	}
	return errors.Join(failed...)
}

// dismissal is the reason and the sentence for a pod that is deleted.
func dismissal(g *gathered, pod string) (string, string) {
	if slices.ContainsFunc(g.Pods, func(p reservation.Pod) bool { return p.Name == pod && !p.Stranger }) {
		return "SliceReleased", "its gang's slice is given back before it was let go"
	}
	return "NotOfTheGang", fmt.Sprintf("it names reservation %s and has no seat in it", g.res.Name)
}

// clearClaims frees the devices. Allocation and entries go in one write that is conditioned on the version whose entries
// were looked at, so a pod that joined in between makes it fail.
func (r *reconciler) clearClaims(ctx context.Context, g *gathered, names []string) error {
	for _, name := range names {
		claim := g.claims[name].DeepCopy()
		if claim.Status.Allocation != nil || len(claim.Status.ReservedFor) > 0 || len(claim.Status.Devices) > 0 {
			claim.Status = resourcev1.ResourceClaimStatus{}
			if err := r.Client.Status().Update(ctx, claim); err != nil {
				return client.IgnoreNotFound(err)
			}
		}
		if !slices.Contains(claim.Finalizers, berth.FinalizerHold) {
			continue
		}
		claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(f string) bool { return f == berth.FinalizerHold })
		if err := r.Client.Update(ctx, claim); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// drop ends the record. The condition on the Workload ends with it, unless a newer reservation speaks there already.
func (r *reconciler) drop(ctx context.Context, g *gathered) error {
	if err := r.farewell(ctx, g); err != nil {
		return err
	}
	res := g.res.DeepCopy()
	if res.DeletionTimestamp == nil {
		err := r.Client.Delete(ctx, res, client.Preconditions{UID: ptr.To(res.UID)})
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		// The next round sees it in deletion and takes the finalizer off.
		return nil
	}
	res.Finalizers = slices.DeleteFunc(res.Finalizers, func(f string) bool { return f == berth.FinalizerReservation })
	key := types.NamespacedName{Namespace: res.Namespace, Name: res.Name}
	// A gang whose pods did not come or found no place has had its turn, although it may be the oldest: whoever waits gets
	// the slice first.
	if why := r.Board.Lost(key); why != nil && why.Code == reason.NotSeated {
		r.Backoff.Failed(res.Spec.WorkloadRef.UID, why)
	}
	r.Board.Forget(key)
	return client.IgnoreNotFound(r.Client.Update(ctx, res))
}
