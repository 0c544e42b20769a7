package leadership

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// predecessor is what the lease said before this process acquired it.
type predecessor struct {
	// holder is empty if there was no lease or its holder had released it.
	holder string
	// released: the last holder had stopped all its writes and then given the lease up.
	released bool
	// expired is when the lease of a holder that did not release it had ended, on this process's clock. It counts from
	// when this process first saw the holder's last renewal, so it is never earlier than on the holder's own clock.
	// Without a lease it is when this process acquired one.
	expired time.Time
}

// Lock tells a Guard what happens to a lease. Hand it to the leader elector in place of the lock that it wraps. Like
// every lock it is used by one elector, which calls one method at a time.
type Lock struct {
	resourcelock.Interface
	guard *Guard

	// last is the record that the lease was last seen to have, nil if there was none. It is what an update replaces,
	// because an update carries the resourceVersion of the read before it.
	last *resourcelock.LeaderElectionRecord
	// foreign is the last record seen with another holder or none; it outlives our own renewals, also those whose
	// success we learnt of only by reading the lease again.
	foreign *resourcelock.LeaderElectionRecord
	// foreignSince is when foreign was first seen.
	foreignSince time.Time
}

var _ resourcelock.Interface = (*Lock)(nil)

// NewLock returns inner with its news passed on to guard. The identity of inner must be the guard's term.
func NewLock(inner resourcelock.Interface, guard *Guard) (*Lock, error) {
	if inner.Identity() != guard.Term() {
		return nil, fmt.Errorf("the lock's identity is %q but the term is %q", inner.Identity(), guard.Term())
	}
	return &Lock{Interface: inner, guard: guard}, nil
}

// Get reads the lease.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		l.last = nil
	case err == nil:
		l.see(record)
	}
	return record, raw, err
}

func (l *Lock) see(record *resourcelock.LeaderElectionRecord) {
	seen := *record
	l.last = &seen
	if seen.HolderIdentity == l.Identity() || (l.foreign != nil && *l.foreign == seen) {
		return
	}
	l.foreign, l.foreignSince = &seen, l.guard.clock.Now()
}

// Create makes the lease with this process as its holder.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := l.guard.clock.Now()
	if err := l.Interface.Create(ctx, record); err != nil {
		return err
	}
	// Whatever was seen before is no predecessor: its lease was deleted. Takeover decides what that means.
	l.foreign = nil
	l.acquired(record, sent)
	return nil
}

// Update acquires, renews or releases the lease. A release (a record without a holder) is refused when the lease is not
// ours, when the takeover was not finished, and when a write could still take effect; the lease then runs out, and the
// next leader waits for it.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		if err := l.mayRelease(ctx); err != nil {
			return fmt.Errorf("the lease is kept until it runs out: %w", err)
		}
	}
	sent := l.guard.clock.Now()
	if err := l.Interface.Update(ctx, record); err != nil {
		return err
	}
	if record.HolderIdentity == l.Identity() {
		l.acquired(record, sent)
	}
	return nil
}

func (l *Lock) mayRelease(ctx context.Context) error {
	// The elector judges by the record that it remembers. After a time without contact it would put an empty holder
	// over the lease of whoever has acquired it since.
	if l.last == nil || l.last.HolderIdentity != l.Identity() {
		return fmt.Errorf("%w: another process may hold the lease", ErrNotLeader)
	}
	return l.guard.close(ctx)
}

func (l *Lock) acquired(record resourcelock.LeaderElectionRecord, sent time.Time) {
	l.last = &record
	l.guard.renewedAt(sent)
	p := predecessor{expired: l.guard.clock.Now()}
	if l.foreign != nil {
		p.holder = l.foreign.HolderIdentity
		p.released = p.holder == ""
		p.expired = l.foreignSince.Add(time.Duration(l.foreign.LeaseDurationSeconds) * time.Second)
	}
	l.guard.elected(p)
}
