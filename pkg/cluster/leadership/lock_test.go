package leadership

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
)

// lockStub is the lease itself.
type lockStub struct {
	resourcelock.Interface // nil
	record                 *resourcelock.LeaderElectionRecord
	fail                   error
	// late: the write takes effect although it fails.
	late bool
	// during runs before a write takes effect.
	during func()
}

func (l *lockStub) Identity() string { return "b" }

func (l *lockStub) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), "berth")
	}
	record := *l.record
	return &record, nil, nil
}

func (l *lockStub) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record)
}

func (l *lockStub) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record)
}

func (l *lockStub) write(record resourcelock.LeaderElectionRecord) error {
	if l.during != nil {
		l.during()
	}
	if l.fail == nil || l.late {
		l.record = &record
	}
	return l.fail
}

func held(by string, at time.Time) *resourcelock.LeaderElectionRecord {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: by, LeaseDurationSeconds: 15, RenewTime: metav1.NewTime(at)}
}

func newLock(t *testing.T) (*Lock, *lockStub, *Guard, *clocktesting.FakeClock) {
	t.Helper()
	guard, clock := newGuard(t)
	stub := &lockStub{}
	lock, err := NewLock(stub, guard)
	if err != nil {
		t.Fatal(err)
	}
	return lock, stub, guard, clock
}

// get reads the lease as the elector does before every attempt.
func get(t *testing.T, l *Lock) {
	t.Helper()
	if _, _, err := l.Get(t.Context()); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

func TestPredecessor(t *testing.T) {
	failed := errors.New("connection lost")
	for name, test := range map[string]struct {
		acquire func(t *testing.T, l *Lock, stub *lockStub, clock *clocktesting.FakeClock)
		want    predecessor
	}{
		"no lease": {
			acquire: func(t *testing.T, l *Lock, _ *lockStub, clock *clocktesting.FakeClock) {
				get(t, l)
				clock.Step(time.Second)
				_ = l.Create(t.Context(), *held("b", clock.Now()))
			},
			want: predecessor{expired: start.Add(time.Second)},
		},
		"released": {
			acquire: func(t *testing.T, l *Lock, stub *lockStub, clock *clocktesting.FakeClock) {
				stub.record = held("a", start)
				get(t, l)
				clock.Step(2 * time.Second)
				stub.record = &resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}
				get(t, l)
				_ = l.Update(t.Context(), *held("b", clock.Now()))
			},
			want: predecessor{released: true, expired: start.Add(3 * time.Second)},
		},
		"ran out, counted from when the last renewal was first seen": {
			acquire: func(t *testing.T, l *Lock, stub *lockStub, clock *clocktesting.FakeClock) {
				stub.record = held("a", start.Add(-time.Hour)) // its clock is wrong, and that does not matter
				get(t, l)
				clock.Step(2 * time.Second)
				stub.record = held("a", start.Add(-time.Hour+2*time.Second))
				get(t, l)
				clock.Step(16 * time.Second)
				get(t, l)
				_ = l.Update(t.Context(), *held("b", clock.Now()))
			},
			want: predecessor{holder: "a", expired: start.Add(17 * time.Second)},
		},
		"acquired by a write that seemed to fail": {
			acquire: func(t *testing.T, l *Lock, stub *lockStub, clock *clocktesting.FakeClock) {
				stub.record = held("a", start)
				get(t, l)
				clock.Step(16 * time.Second)
				stub.fail, stub.late = failed, true
				if err := l.Update(t.Context(), *held("b", clock.Now())); !errors.Is(err, failed) {
					t.Fatal(err)
				}
				stub.fail = nil
				get(t, l)
				_ = l.Update(t.Context(), *held("b", clock.Now()))
			},
			want: predecessor{holder: "a", expired: start.Add(15 * time.Second)},
		},
		"deleted while somebody held it": {
			acquire: func(t *testing.T, l *Lock, stub *lockStub, clock *clocktesting.FakeClock) {
				stub.record = held("a", start)
				get(t, l)
				stub.record = nil
				get(t, l)
				clock.Step(time.Second)
				_ = l.Create(t.Context(), *held("b", clock.Now()))
			},
			want: predecessor{expired: start.Add(time.Second)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			lock, stub, guard, clock := newLock(t)
			test.acquire(t, lock, stub, clock)
			if guard.phase != takingOver {
				t.Fatal("the term did not begin")
			}
			if guard.predecessor != test.want {
				t.Errorf("got %+v, want %+v", guard.predecessor, test.want)
			}
			// Renewals do not change it.
			clock.Step(time.Second)
			_ = lock.Update(t.Context(), *held("b", clock.Now()))
			if guard.predecessor != test.want {
				t.Errorf("after a renewal: %+v", guard.predecessor)
			}
		})
	}
}

func TestRenewalCountsFromBeforeItWasSent(t *testing.T) {
	lock, stub, guard, clock := newLock(t)
	get(t, lock)
	stub.during = func() { clock.Step(3 * time.Second) }
	_ = lock.Create(t.Context(), *held("b", clock.Now()))
	if !guard.renewed.Equal(start) {
		t.Errorf("renewed %s after the request was sent", guard.renewed.Sub(start))
	}
	_ = lock.Update(t.Context(), *held("b", clock.Now()))
	if want := start.Add(3 * time.Second); !guard.renewed.Equal(want) {
		t.Errorf("got %s, want %s", guard.renewed, want)
	}
}

func TestFailedRenewalDoesNotCount(t *testing.T) {
	lock, stub, guard, clock := newLock(t)
	get(t, lock)
	_ = lock.Create(t.Context(), *held("b", clock.Now()))
	guard.open()
	stub.fail, stub.late = errors.New("connection lost"), true
	clock.Step(14 * time.Second)
	if err := lock.Update(t.Context(), *held("b", clock.Now())); err == nil {
		t.Fatal("the failure was swallowed")
	}
	if _, ok := guard.Deadline(); !ok {
		t.Error("the lease has not lapsed yet")
	}
	clock.Step(time.Second)
	if _, ok := guard.Deadline(); ok {
		t.Error("a renewal of unknown outcome counted as one")
	}
}

func TestIdentityMustBeTheTerm(t *testing.T) {
	guard := NewGuard(Options{Term: "other", LeaseDuration: lease, WriteTimeout: writeTimeout})
	if _, err := NewLock(&lockStub{}, guard); err == nil {
		t.Error("a lock of another identity was accepted")
	}
}

func TestRelease(t *testing.T) {
	release := resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}
	refused := func(ctx context.Context, t *testing.T, l *Lock, stub *lockStub, why string) {
		t.Helper()
		before := *stub.record
		if err := l.Update(ctx, release); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got error %v, want …%s…", err, why)
		}
		if *stub.record != before {
			t.Error("the lease was changed")
		}
	}
	leading := func(t *testing.T) (*Lock, *lockStub, *Guard, *clocktesting.FakeClock) {
		lock, stub, guard, clock := newLock(t)
		get(t, lock)
		_ = lock.Create(t.Context(), *held("b", clock.Now()))
		guard.open()
		get(t, lock)
		return lock, stub, guard, clock
	}

	t.Run("nothing under way", func(t *testing.T) {
		lock, stub, guard, _ := leading(t)
		if err := lock.Update(t.Context(), release); err != nil {
			t.Fatal(err)
		}
		if stub.record.HolderIdentity != "" {
			t.Error("the lease was not released")
		}
		if _, ok := guard.Deadline(); ok {
			t.Error("writes may start after the release")
		}
	})
	t.Run("takeover not finished", func(t *testing.T) {
		lock, stub, _, clock := newLock(t)
		get(t, lock)
		_ = lock.Create(t.Context(), *held("b", clock.Now()))
		refused(t.Context(), t, lock, stub, "takeover was not finished")
		refused(t.Context(), t, lock, stub, "takeover was not finished") // nor the second time
	})
	t.Run("somebody else holds it", func(t *testing.T) {
		lock, stub, _, _ := leading(t)
		stub.record = held("c", start)
		get(t, lock)
		refused(t.Context(), t, lock, stub, "another process may hold the lease")
	})
	t.Run("waits for a write", func(t *testing.T) {
		lock, stub, guard, _ := leading(t)
		inner := &recorder{during: func(context.Context) error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			refused(ctx, t, lock, stub, "writes are still under way")
			return nil
		}}
		if err := guard.Client(inner.client()).Create(t.Context(), &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
		if err := lock.Update(t.Context(), release); err != nil {
			t.Errorf("after the write: %v", err)
		}
	})
	t.Run("waits until a lost write is over", func(t *testing.T) {
		lock, stub, guard, clock := leading(t)
		inner := &recorder{during: func(context.Context) error { return errors.New("connection lost") }}
		if err := guard.Client(inner.client()).Create(t.Context(), &corev1.Pod{}); err == nil {
			t.Fatal("the failure was swallowed")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		refused(ctx, t, lock, stub, "may still take effect")
		clock.Step(2*writeTimeout - 1)
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		refused(ctx, t, lock, stub, "may still take effect")
		clock.Step(1)
		if err := lock.Update(t.Context(), release); err != nil {
			t.Errorf("after the write's last moment: %v", err)
		}
	})
}

func TestTermsDiffer(t *testing.T) {
	a, b := NewTerm("pod", "", start), NewTerm("pod", "", start)
	if a == b || !strings.HasPrefix(a, "pod_") {
		t.Errorf("got %q and %q", a, b)
	}
	if got, want := NewTerm("pod", "uid", time.UnixMilli(36)), "pod_uid_10"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
