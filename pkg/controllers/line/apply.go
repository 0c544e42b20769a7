package line

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	for _, a := range s.answers {
		run(func() error { return r.tell(ctx, a) })
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
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err):
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
