package line

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reason"
)

// parallel is how many writes of one pass are under way at once.
const parallel = 16

// apply carries the steps out, all of them even when some fail. Lost races are not errors: the change that won brings
// the next pass.
func (r *reconciler) apply(ctx context.Context, s steps) error {
	var group errgroup.Group
	group.SetLimit(parallel)
	var mu sync.Mutex
	var failed []error
	run := func(do func() error) {
		group.Go(func() error {
			if err := do(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
			return nil
		})
	}
	for _, res := range s.reserve {
		run(func() error { return r.reserve(ctx, res) })
	}
	for _, res := range s.drop {
		run(func() error { return r.forget(ctx, res) })
	}
	for _, p := range s.targets {
		run(func() error { return r.plan(ctx, p) })
	}
	for _, a := range s.answers {
		run(func() error { return r.tell(ctx, a) })
	}
	for _, wl := range s.unpark {
		run(func() error { return r.unpark(ctx, wl) })
	}
	_ = group.Wait() // no function of the group returns an error
	return errors.Join(failed...)
}

// reserve writes a decision down. A refusal by the API server goes to the Workload, and the next try waits.
func (r *reconciler) reserve(ctx context.Context, res *berth.GangReservation) error {
	err := r.Client.Create(ctx, res)
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		return nil
	case refused(err):
		why := &reason.Refusal{Code: reason.ReservationFailed, Message: fmt.Sprintf(
			"the API server refused to create the GangReservation: %s", apierrors.ReasonForError(err))}
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			why.Message = "the API server refused to create the GangReservation: " + status.Status().Message
		}
		r.Backoff.Failed(res.Spec.WorkloadRef.UID, why)
		return nil
	default:
		return fmt.Errorf("creating GangReservation %s/%s: %w", res.Namespace, res.Name, err)
	}
}

// refused reports whether a reservation cannot be created as long as it and all else is as it is.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) || tooLarge(err)
}

// tooLarge reports whether an object is larger than the API server takes, or etcd, or its client: those errors the API
// server passes on as they are, with no other mark than their text.
func tooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || err != nil && (strings.Contains(err.Error(), "etcdserver: request is too large") ||
		strings.Contains(err.Error(), "trying to send message larger than max"))
}

// plan writes a target down and says what it waits for. One that the API server refuses is found again in
// the next pass: it is only not sure to stay where it is.
func (r *reconciler) plan(ctx context.Context, p planned) error {
	res := p.res
	if res.UID == "" {
		err := r.Client.Create(ctx, res)
		switch {
		case apierrors.IsAlreadyExists(err): // Our cache is behind; the next pass finds it.
			return nil
		case refused(err):
			log.FromContext(ctx).Info("The API server refused to create a target", "target", client.ObjectKeyFromObject(res), "error", err.Error())
			return nil
		case err != nil:
			return fmt.Errorf("creating target %s/%s: %w", res.Namespace, res.Name, err)
		}
	} else {
		res = res.DeepCopy()
	}
	res.Status.Phase, res.Status.ObservedGeneration = berth.PhasePlanned, res.Generation
	apimeta.SetStatusCondition(&res.Status.Conditions, metav1.Condition{
		Type: berth.ReservationProgressing, Status: metav1.ConditionTrue, Reason: "Draining", Message: p.message,
		ObservedGeneration: res.Generation, LastTransitionTime: metav1.NewTime(r.Now()),
	})
	if err := r.Client.Status().Update(ctx, res); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of target %s/%s: %w", res.Namespace, res.Name, err)
	}
	return nil
}

// forget deletes a target that stands no more. It holds nothing, so nothing has to be given back.
func (r *reconciler) forget(ctx context.Context, res *berth.GangReservation) error {
	err := r.Client.Delete(ctx, res, client.Preconditions{UID: ptr.To(res.UID)})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting target %s/%s: %w", res.Namespace, res.Name, err)
	}
	return nil
}

// tell writes an answer and, when it stands, one event.
func (r *reconciler) tell(ctx context.Context, a answer) error {
	wl := a.workload.DeepCopy()
	err := adaptkueue.Write(ctx, r.Client, wl, a.answer, r.Now())
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("answering Workload %s/%s: %w", wl.Namespace, wl.Name, err)
	}
	kind, why := corev1.EventTypeNormal, a.answer.Reason
	switch a.answer.State {
	case kueue.CheckStateRejected, kueue.CheckStateRetry:
		kind = corev1.EventTypeWarning
	}
	if why == "" {
		why = adaptkueue.ReasonIgnored
	}
	r.Recorder.Eventf(wl, nil, kind, why, "Placing", "%s", a.answer.Message)
	return nil
}

// unpark has Kueue queue a Workload. Who wrote in between makes it another decision.
func (r *reconciler) unpark(ctx context.Context, wl *kueue.Workload) error {
	err := adaptkueue.Unpark(ctx, r.Client, wl.DeepCopy())
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("queueing Workload %s/%s: %w", wl.Namespace, wl.Name, err)
	}
	return nil
}
