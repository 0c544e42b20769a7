package leadership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berthv1alpha1 "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

const (
	// bumpers is how many claims are rewritten at once.
	bumpers = 16
	// readers is how many Workloads are read at once.
	readers = 16
)

// catchUpPeriod is how often the local cache, which tells nobody when it has caught up, is looked at.
const catchUpPeriod = 50 * time.Millisecond

// Takeover makes the past harmless once per term: it waits until the predecessor's last write is over, bumps the
// unallocated claims, and lets the cache catch up with what it saw. It is a runnable for the elected process and must
// be added to the manager; until Done nobody else can write through the Guard.
type Takeover struct {
	guard  *Guard
	client client.Client
	live   client.Reader
	cache  client.Reader
	log    logr.Logger
	done   chan struct{}
}

// NewTakeover returns a Takeover that opens guard. writer must not be guarded itself. live must read with quorum. cache
// is what the controllers read from; nil if they read live.
func NewTakeover(guard *Guard, writer client.Client, live, cache client.Reader, log logr.Logger) *Takeover {
	return &Takeover{
		guard:  guard,
		client: guarded{inner: writer, guard: guard, needed: takingOver},
		live:   live,
		cache:  cache,
		log:    log.WithName("takeover").WithValues("term", guard.Term()),
		done:   make(chan struct{}),
	}
}

// NeedLeaderElection is true: Start runs when the lease was acquired.
func (t *Takeover) NeedLeaderElection() bool { return true }

// Done is closed when this process may act.
func (t *Takeover) Done() <-chan struct{} { return t.done }

// Wait returns nil when this process may act, or the error of ctx if that ends first.
func (t *Takeover) Wait(ctx context.Context) error {
	select {
	case <-t.done:
		return nil
	default:
	}
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the takeover: %w", ctx.Err())
	}
}

// Start takes over. It retries whatever fails, with a growing pause, until it succeeds or ctx ends; it returns an error
// only when the term was ended under it.
func (t *Takeover) Start(ctx context.Context) error {
	began := t.guard.clock.Now()
	t.guard.mu.Lock()
	p := t.guard.predecessor
	t.guard.mu.Unlock()
	t.log.Info("Taking over", "predecessor", p.holder, "released", p.released)

	steps := []func(context.Context) error{
		func(ctx context.Context) error { return t.outwait(ctx, p) },
		t.settle,
	}
	for _, step := range steps {
		if err := t.retry(ctx, step); err != nil {
			return nil //nolint:nilerr // only the end of ctx stops retry, and a runnable that was told to stop succeeded
		}
	}
	if !t.guard.open() {
		return errors.New("the term ended during the takeover")
	}
	close(t.done)
	t.log.Info("Leading", "after", t.guard.clock.Since(began).Round(time.Millisecond).String())
	return nil
}

func (t *Takeover) retry(ctx context.Context, step func(context.Context) error) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 7, Cap: 5 * time.Second}
	for {
		err := step(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		pause := backoff.Step()
		t.log.Error(err, "Taking over failed; trying again", "in", pause.String())
		if err := t.sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// outwait returns when no write that the predecessor began under its lease can take effect any more, other than by
// being stopped; see the package comment for those.
func (t *Takeover) outwait(ctx context.Context, p predecessor) error {
	switch {
	case t.guard.lease == 0, p.released:
		return nil
	case p.holder != "":
		return t.sleep(ctx, p.expired.Add(t.guard.writeTimeout).Sub(t.guard.clock.Now()))
	}
	// There was no lease: either nobody ever led, or somebody deleted it under a leader that may not have noticed. Then
	// there are traces of that leader.
	claims, reservations, err := t.list(ctx)
	if err != nil {
		return err
	}
	if len(claims) == 0 && len(reservations) == 0 {
		return nil
	}
	until := p.expired.Add(t.guard.lease + t.guard.writeTimeout)
	t.log.Info("There was no lease although there are reservations; waiting as long as a leader without one may act", "until", until)
	return t.sleep(ctx, until.Sub(t.guard.clock.Now()))
}

// settle bumps what must be bumped and waits until the cache shows all of it, and whom it serves: a Workload that the
// cache does not show yet looks gone, and as it was before its quota was reserved it wants nothing.
func (t *Takeover) settle(ctx context.Context) error {
	claims, reservations, err := t.list(ctx)
	if err != nil {
		return err
	}
	// Not this step's ctx: ParallelizeUntil would return without an error when it ends.
	failures := make([]error, len(claims))
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), bumpers, len(claims), func(i int) {
		failures[i] = t.bump(ctx, &claims[i])
	})
	if err := errors.Join(failures...); err != nil {
		return err
	}
	if t.cache == nil {
		return nil
	}
	for i := range claims {
		if err := t.catchUp(ctx, &claims[i], &resourcev1.ResourceClaim{}); err != nil {
			return err
		}
	}
	for i := range reservations {
		if err := t.catchUp(ctx, &reservations[i], &berthv1alpha1.GangReservation{}); err != nil {
			return err
		}
	}
	failures = make([]error, len(reservations))
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), readers, len(reservations), func(i int) {
		served := client.ObjectKey{Namespace: reservations[i].Namespace, Name: reservations[i].Spec.WorkloadRef.Name}
		failures[i] = t.catchUpWorkload(ctx, served)
	})
	if err := errors.Join(failures...); err != nil {
		return err
	}
	t.log.Info("Took stock", "claims", len(claims), "reservations", len(reservations))
	return nil
}

// list reads with quorum: no resourceVersion is asked for.
func (t *Takeover) list(ctx context.Context) ([]resourcev1.ResourceClaim, []berthv1alpha1.GangReservation, error) {
	var claims resourcev1.ResourceClaimList
	if err := t.live.List(ctx, &claims, client.HasLabels{berthv1alpha1.LabelReservation}); err != nil {
		return nil, nil, fmt.Errorf("listing claims: %w", err)
	}
	var reservations berthv1alpha1.GangReservationList
	if err := t.live.List(ctx, &reservations); err != nil {
		return nil, nil, fmt.Errorf("listing reservations: %w", err)
	}
	return claims.Items, reservations.Items, nil
}

// bump gives the claim a new resourceVersion unless it is allocated, already bears this term, or is gone. It leaves the
// claim as it was last seen.
func (t *Takeover) bump(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	key := client.ObjectKeyFromObject(claim)
	for claim.Status.Allocation == nil && claim.Annotations[berthv1alpha1.AnnotationLeader] != t.guard.Term() {
		// On the version that was read: only so is it certain that the claim was unallocated when it got its new one.
		before := claim.DeepCopy()
		if claim.Annotations == nil {
			claim.Annotations = map[string]string{}
		}
		claim.Annotations[berthv1alpha1.AnnotationLeader] = t.guard.Term()
		err := t.client.Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("bumping claim %s: %w", key, err)
		}
		*claim = resourcev1.ResourceClaim{}
		if err := t.live.Get(ctx, key, claim); apierrors.IsNotFound(err) {
			claim.Namespace, claim.Name = key.Namespace, key.Name
			return nil
		} else if err != nil {
			return fmt.Errorf("reading claim %s again: %w", key, err)
		}
	}
	return nil
}

// catchUpWorkload waits until the cache shows a Workload as it is now.
func (t *Takeover) catchUpWorkload(ctx context.Context, key client.ObjectKey) error {
	var now kueue.Workload
	switch err := t.live.Get(ctx, key, &now); {
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading Workload %s: %w", key, err)
	}
	return t.catchUp(ctx, &now, &kueue.Workload{})
}

// catchUp waits until the cache shows the object at the version of seen or a newer one, or until it is gone.
func (t *Takeover) catchUp(ctx context.Context, seen, into client.Object) error {
	key := client.ObjectKeyFromObject(seen)
	for {
		err := t.cache.Get(ctx, key, into)
		switch {
		case apierrors.IsNotFound(err):
			// Not there yet or no longer: only the API server knows.
			if err = t.live.Get(ctx, key, into); apierrors.IsNotFound(err) {
				return nil
			}
		case err == nil && seen.GetResourceVersion() == "":
			return nil // seen was gone, the cache has a successor or will learn
		case err == nil:
			var order int
			order, err = resourceversion.CompareResourceVersion(into.GetResourceVersion(), seen.GetResourceVersion())
			if err == nil && order >= 0 {
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("waiting for the cache to show %s: %w", key, err)
		}
		if err := t.sleep(ctx, catchUpPeriod); err != nil {
			return err
		}
	}
}

func (t *Takeover) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := t.guard.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
