package leadership

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const (
	lease        = 15 * time.Second
	writeTimeout = 5 * time.Second
	margin       = 750 * time.Millisecond // a twentieth of lease
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newGuard(t *testing.T) (*Guard, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(start)
	return NewGuard(Options{Term: "b", LeaseDuration: lease, WriteTimeout: writeTimeout, Clock: clock}), clock
}

// lead brings a new guard to where everybody may write.
func lead(t *testing.T, g *Guard) {
	t.Helper()
	g.renewedAt(g.clock.Now())
	g.elected(predecessor{released: true})
	if !g.open() {
		t.Fatal("the guard did not open")
	}
}

// recorder is a client that only notes which request would be sent and until when.
type recorder struct {
	client.WithWatch // nil: what is not intercepted panics
	sent             string
	ctx              context.Context
	// during, if set, runs while the request is under way and gives its outcome.
	during func(context.Context) error
}

func (r *recorder) note(ctx context.Context, what string) error {
	r.sent, r.ctx = what, ctx
	if r.during != nil {
		return r.during(ctx)
	}
	return nil
}

func (r *recorder) client() client.WithWatch {
	return interceptor.NewClient(r.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return r.note(ctx, "get")
		},
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			return r.note(ctx, "list")
		},
		Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
			return r.note(ctx, "create")
		},
		Delete: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.DeleteOption) error {
			return r.note(ctx, "delete")
		},
		DeleteAllOf: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.DeleteAllOfOption) error {
			return r.note(ctx, "deletecollection")
		},
		Update: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.UpdateOption) error {
			return r.note(ctx, "update")
		},
		Patch: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return r.note(ctx, "patch")
		},
		Apply: func(ctx context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			return r.note(ctx, "apply")
		},
		SubResourceGet: func(ctx context.Context, _ client.Client, name string, _, _ client.Object, _ ...client.SubResourceGetOption) error {
			return r.note(ctx, "get "+name)
		},
		SubResourceCreate: func(ctx context.Context, _ client.Client, name string, _, _ client.Object, _ ...client.SubResourceCreateOption) error {
			return r.note(ctx, "create "+name)
		},
		SubResourceUpdate: func(ctx context.Context, _ client.Client, name string, _ client.Object, _ ...client.SubResourceUpdateOption) error {
			return r.note(ctx, "update "+name)
		},
		SubResourcePatch: func(ctx context.Context, _ client.Client, name string, _ client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			return r.note(ctx, "patch "+name)
		},
		SubResourceApply: func(ctx context.Context, _ client.Client, name string, _ runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
			return r.note(ctx, "apply "+name)
		},
	})
}

// writes are all ways of writing that client.Client has, by what recorder calls them.
var writes = map[string]func(context.Context, client.Client) error{
	"create":           func(ctx context.Context, c client.Client) error { return c.Create(ctx, &corev1.Pod{}) },
	"delete":           func(ctx context.Context, c client.Client) error { return c.Delete(ctx, &corev1.Pod{}) },
	"deletecollection": func(ctx context.Context, c client.Client) error { return c.DeleteAllOf(ctx, &corev1.Pod{}) },
	"update":           func(ctx context.Context, c client.Client) error { return c.Update(ctx, &corev1.Pod{}) },
	"patch":            func(ctx context.Context, c client.Client) error { return c.Patch(ctx, &corev1.Pod{}, nil) },
	"apply":            func(ctx context.Context, c client.Client) error { return c.Apply(ctx, nil) },
	"create status": func(ctx context.Context, c client.Client) error {
		return c.Status().Create(ctx, &corev1.Pod{}, &corev1.Pod{})
	},
	"update status": func(ctx context.Context, c client.Client) error { return c.Status().Update(ctx, &corev1.Pod{}) },
	"patch status":  func(ctx context.Context, c client.Client) error { return c.Status().Patch(ctx, &corev1.Pod{}, nil) },
	"apply status":  func(ctx context.Context, c client.Client) error { return c.Status().Apply(ctx, nil) },
	"create eviction": func(ctx context.Context, c client.Client) error {
		return c.SubResource("eviction").Create(ctx, &corev1.Pod{}, &corev1.Pod{})
	},
	"update scale": func(ctx context.Context, c client.Client) error {
		return c.SubResource("scale").Update(ctx, &corev1.Pod{})
	},
	"patch scale": func(ctx context.Context, c client.Client) error {
		return c.SubResource("scale").Patch(ctx, &corev1.Pod{}, nil)
	},
	"apply scale": func(ctx context.Context, c client.Client) error { return c.SubResource("scale").Apply(ctx, nil) },
}

func TestEveryWriteIsGuarded(t *testing.T) {
	for what, write := range writes {
		t.Run(what, func(t *testing.T) {
			guard, clock := newGuard(t)
			inner := &recorder{}
			c := guard.Client(inner.client())
			refused := func(why string) {
				t.Helper()
				inner.sent = ""
				err := write(t.Context(), c)
				if !errors.Is(err, ErrNotLeader) || !strings.Contains(err.Error(), why) {
					t.Errorf("got error %v, want ErrNotLeader: …%s…", err, why)
				}
				if inner.sent != "" {
					t.Errorf("%q was sent", inner.sent)
				}
			}
			allowed := func() {
				t.Helper()
				inner.sent = ""
				if err := write(t.Context(), c); err != nil || inner.sent != what {
					t.Errorf("sent %q with error %v", inner.sent, err)
				}
			}

			refused("the lease was not acquired")
			guard.renewedAt(clock.Now())
			guard.elected(predecessor{holder: "a"})
			refused("taking over from the predecessor is not done")
			guard.open()
			allowed()
			clock.Step(lease - margin - time.Millisecond)
			allowed()
			clock.Step(time.Millisecond)
			refused("the lease was last renewed 14.25s ago and lasts 15s")
			guard.renewedAt(clock.Now())
			allowed()
			if err := guard.close(t.Context()); err != nil {
				t.Error(err)
			}
			refused("giving up the lease")
			guard.renewedAt(clock.Now())
			refused("giving up the lease")
		})
	}
}

func TestReadsPass(t *testing.T) {
	guard, _ := newGuard(t)
	inner := &recorder{}
	c := guard.Client(inner.client())
	for what, read := range map[string]func() error{
		"get":       func() error { return c.Get(t.Context(), client.ObjectKey{}, &corev1.Pod{}) },
		"list":      func() error { return c.List(t.Context(), &corev1.PodList{}) },
		"get scale": func() error { return c.SubResource("scale").Get(t.Context(), &corev1.Pod{}, &corev1.Pod{}) },
	} {
		if err := read(); err != nil || inner.sent != what {
			t.Errorf("%s: sent %q with error %v", what, inner.sent, err)
		}
	}
}

func TestDeadline(t *testing.T) {
	for name, test := range map[string]struct {
		sinceRenewal time.Duration
		want         time.Duration // from now; 0: none
	}{
		"fresh lease: the write time-out":          {0, writeTimeout},
		"as long as the time-out still fits":       {lease - margin - writeTimeout, writeTimeout},
		"then what is left of the lease":           {lease - margin - time.Second, time.Second},
		"a moment before the end":                  {lease - margin - 1, 1},
		"a write that could not end inside: none":  {lease - margin, 0},
		"an old lease: none":                       {time.Hour, 0},
		"after a renewal from the future: capped":  {-time.Minute, writeTimeout},
		"the renew deadline leaves the whole time": {10*time.Second - margin, writeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			guard, clock := newGuard(t)
			lead(t, guard)
			clock.Step(test.sinceRenewal)
			got, ok := guard.Deadline()
			if ok != (test.want != 0) {
				t.Fatalf("a write may start: %t", ok)
			}
			if want := clock.Now().Add(test.want); ok && !got.Equal(want) {
				t.Errorf("got %s, want %s", got.Sub(clock.Now()), test.want)
			}
		})
	}
}

func TestFractionsOfASecondAreNoLease(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	guard := NewGuard(Options{Term: "b", LeaseDuration: 1999 * time.Millisecond, WriteTimeout: time.Second, Margin: 1, Clock: clock})
	lead(t, guard)
	clock.Step(time.Second)
	if _, ok := guard.Deadline(); ok {
		t.Error("candidates read 1s in the Lease, the guard still believes in 1.999s")
	}
}

func TestWithoutLease(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	guard := NewGuard(Options{Term: "b", WriteTimeout: writeTimeout, Clock: clock})
	if _, ok := guard.Deadline(); ok {
		t.Error("may write before the takeover")
	}
	guard.open()
	clock.Step(time.Hour)
	if deadline, ok := guard.Deadline(); !ok || !deadline.Equal(clock.Now().Add(writeTimeout)) {
		t.Errorf("got %s, %t", deadline, ok)
	}
}

func TestElapsedTrustsTheClockThatMovedMore(t *testing.T) {
	monotonic := time.Now()
	if got := elapsed(monotonic, monotonic.Add(time.Second)); got != time.Second {
		t.Errorf("got %s", got)
	}
	// A suspended machine: the monotonic clock stood still, the wall clock did not. Removing the reading from one side
	// is the only way to pull them apart in a test.
	if got := elapsed(monotonic, monotonic.Round(0).Add(time.Minute)); got != time.Minute {
		t.Errorf("got %s", got)
	}
}

func TestWriteIsBoundedButNotCutOff(t *testing.T) {
	guard, _ := newGuard(t)
	lead(t, guard)
	inner := &recorder{}
	c := guard.Client(inner.client())

	before := time.Now()
	if err := c.Create(t.Context(), &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	if deadline, ok := inner.ctx.Deadline(); !ok || deadline.Before(before.Add(writeTimeout-time.Second)) || deadline.After(time.Now().Add(writeTimeout)) {
		t.Errorf("deadline %s (%t), want %s from now", deadline.Sub(before), ok, writeTimeout)
	}

	ctx, cancel := context.WithCancel(t.Context())
	inner.during = func(sent context.Context) error {
		cancel()
		return sent.Err()
	}
	if err := c.Create(ctx, &corev1.Pod{}); err != nil {
		t.Errorf("cancelling cut the write off: %v", err)
	}
	inner.sent = ""
	if err := c.Create(ctx, &corev1.Pod{}); !errors.Is(err, context.Canceled) || inner.sent != "" {
		t.Errorf("sent %q with error %v although the context had ended before", inner.sent, err)
	}

	inner.during = nil
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := c.Create(ctx, &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	if deadline, _ := inner.ctx.Deadline(); time.Until(deadline) > time.Second {
		t.Error("the caller's deadline was lost")
	}
}

func TestOutcomes(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		err   error
		known bool
	}{
		"success":         {nil, true},
		"conflict":        {apierrors.NewConflict(resource, "x", errors.New("changed")), true},
		"not found":       {apierrors.NewNotFound(resource, "x"), true},
		"too many":        {apierrors.NewTooManyRequests("later", 1), true},
		"kind not served": {fmt.Errorf("creating: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "JobSet"}}), true},
		"server time-out": {apierrors.NewTimeoutError("etcd", 1), false},
		"internal":        {apierrors.NewInternalError(errors.New("etcd")), false},
		"connection lost": {errors.New("EOF"), false},
		"cut off":         {context.DeadlineExceeded, false},
	} {
		if got := known(test.err); got != test.known {
			t.Errorf("%s: known is %t", name, got)
		}
	}
}
