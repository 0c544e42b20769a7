package leadership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
)

// ErrNotLeader says that a write was not sent, because this process could have lost the lease, has not finished taking
// over, or has already given the lease up. It is never worth a retry within the same term unless the lease is renewed.
var ErrNotLeader = errors.New("not the leader")

// Options bound the writes of one term.
type Options struct {
	// Term is the value of NewTerm and the identity of the lock.
	Term string
	// LeaseDuration is counted in whole seconds, as a Lease does; a fraction is dropped. 0: there is no lease, this
	// process is the only one by decree.
	LeaseDuration time.Duration
	// WriteTimeout is how long one write may take. Give the same value to the API server in the request's timeout
	// (rest.Config.Timeout), because a request that the client gave up may still be waiting there.
	WriteTimeout time.Duration
	// Margin is how long before the end of the lease the last write must be over. Default: a twentieth of
	// LeaseDuration, that is, clocks may run apart by 5 %.
	Margin time.Duration
	// Clock; default: the real one.
	Clock clock.Clock
}

// phase is how far a term has come. It only ever grows.
type phase int

const (
	waiting    phase = iota // not elected
	takingOver              // elected; only Takeover may write
	leading                 // everybody may write
	closed                  // given up; nobody may write
)

// Guard is what a process knows about its right to write. Its zero value is of no use; see NewGuard. It is safe for
// concurrent use.
type Guard struct {
	term         string
	lease        time.Duration
	writeTimeout time.Duration
	margin       time.Duration
	clock        clock.Clock

	mu sync.Mutex
	// phase never goes back: a term that is closed stays closed, whatever the lease says.
	phase phase
	// renewed is never later than the moment at which the API server stored the last renewal that we know of: it is
	// taken before the request is sent. So every candidate counts from a later moment than we do.
	renewed time.Time
	// underWay counts writes between their check and their outcome. The lease is not given up while it is above zero.
	underWay int
	// unknownUntil is until when a write whose outcome we did not learn may still take effect on the API server.
	unknownUntil time.Time
	// tookOver: phase has been leading. Only then was the predecessor's last possible write waited for.
	tookOver bool
	// quiet is closed when underWay falls to zero in phase closed.
	quiet chan struct{}
	// predecessor is set when phase becomes takingOver and never changes afterwards.
	predecessor predecessor
}

// NewGuard returns a Guard that refuses every write until a Lock on it is acquired and a Takeover is done. Without a
// lease (LeaseDuration 0) only the Takeover is needed.
func NewGuard(o Options) *Guard {
	g := &Guard{
		term:         o.Term,
		lease:        o.LeaseDuration.Truncate(time.Second),
		writeTimeout: o.WriteTimeout,
		margin:       o.Margin,
		clock:        o.Clock,
		quiet:        make(chan struct{}),
	}
	if g.clock == nil {
		g.clock = clock.RealClock{}
	}
	if g.margin == 0 {
		g.margin = g.lease / 20
	}
	if g.lease == 0 {
		g.phase = takingOver
	}
	return g
}

// Term is the name of this term.
func (g *Guard) Term() string { return g.term }

// Deadline returns the time by which a write that starts now must be over, and false if none may start.
func (g *Guard) Deadline() (time.Time, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	deadline, err := g.deadline(leading)
	return deadline, err == nil
}

// deadline requires g.mu.
func (g *Guard) deadline(needed phase) (time.Time, error) {
	switch {
	case g.phase == closed:
		return time.Time{}, fmt.Errorf("%w: this process is giving up the lease", ErrNotLeader)
	case g.phase == waiting:
		return time.Time{}, fmt.Errorf("%w: the lease was not acquired", ErrNotLeader)
	case g.phase < needed:
		return time.Time{}, fmt.Errorf("%w: taking over from the predecessor is not done", ErrNotLeader)
	}
	now := g.clock.Now()
	deadline := now.Add(g.writeTimeout)
	if g.lease == 0 {
		return deadline, nil
	}
	left := g.lease - g.margin - elapsed(g.renewed, now)
	if left <= 0 {
		return time.Time{}, fmt.Errorf("%w: the lease was last renewed %s ago and lasts %s", ErrNotLeader, elapsed(g.renewed, now).Round(time.Millisecond), g.lease)
	}
	if end := now.Add(left); end.Before(deadline) {
		deadline = end
	}
	return deadline, nil
}

// elapsed is the time between two moments, by the monotonic or by the wall clock, whichever shows more: the first may
// stand still while the machine is suspended, the second may be set back.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// begin admits one write. The returned context ends at the write's deadline or the caller's, but not when the caller's
// context is cancelled: a request that is cut off may or may not have been carried out, and nobody could tell. finish
// must be called with the write's error.
func (g *Guard) begin(ctx context.Context, needed phase) (_ context.Context, finish func(error), _ error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	g.mu.Lock()
	deadline, err := g.deadline(needed)
	if err != nil {
		g.mu.Unlock()
		return nil, nil, err
	}
	g.underWay++
	// On the API server the time-out counts from the request's arrival, which is before our deadline.
	latest := deadline.Add(g.writeTimeout)
	left := deadline.Sub(g.clock.Now())
	g.mu.Unlock()

	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
	return ctx, func(err error) {
		cancel()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.underWay--
		if !known(err) && latest.After(g.unknownUntil) {
			g.unknownUntil = latest
		}
		if g.phase == closed && g.underWay == 0 {
			close(g.quiet)
		}
	}, nil
}

// known reports whether a write's outcome follows from its error: it succeeded, the API server said that it did not, or
// it was never sent because the API server does not serve the kind.
func known(err error) bool {
	if err == nil || meta.IsNoMatchError(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}

// elected begins the term. It has no effect on a term that has begun.
func (g *Guard) elected(p predecessor) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase == waiting {
		g.phase = takingOver
		g.predecessor = p
	}
}

// renewedAt notes that a renewal sent at that time succeeded.
func (g *Guard) renewedAt(sent time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if sent.After(g.renewed) {
		g.renewed = sent
	}
}

// open lets everybody write. It is false when the term was closed in the meantime.
func (g *Guard) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase == takingOver {
		g.phase, g.tookOver = leading, true
	}
	return g.phase == leading
}

// close ends the term: no further write starts. It returns nil when the lease may be handed to somebody who will not
// wait, that is, when every write has ended and none can still take effect. It waits for that as long as ctx allows.
func (g *Guard) close(ctx context.Context) error {
	g.mu.Lock()
	if g.phase != closed {
		g.phase = closed
		if g.underWay == 0 {
			close(g.quiet)
		}
	}
	tookOver := g.tookOver
	g.mu.Unlock()
	// The predecessor's writes may still be under way. Whoever comes next must wait for them as we would have, and it
	// does so only if the lease runs out.
	if !tookOver {
		return errors.New("the takeover was not finished, so the lease must run out")
	}

	select {
	case <-g.quiet:
	case <-ctx.Done():
		return fmt.Errorf("writes are still under way: %w", ctx.Err())
	}
	g.mu.Lock()
	left := g.unknownUntil.Sub(g.clock.Now())
	g.mu.Unlock()
	if left <= 0 {
		return nil
	}
	timer := g.clock.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("a write whose outcome is unknown may still take effect: %w", ctx.Err())
	}
}
