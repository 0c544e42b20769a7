package leadership

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	berthv1alpha1 "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster/leadership"
)

// note is a write that any leader may make.
func note(w *world) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "note-"}}
}

// What a predecessor decided on an unallocated claim fails with a conflict once somebody has taken over, and until then
// nobody else writes.
func TestLateAllocationConflicts(t *testing.T) {
	w := newWorld(t)
	late := w.claim(t, "late", "gang-a")
	allocated := w.claim(t, "allocated", "gang-b")
	must(t, w.allocate(t.Context(), allocated))
	foreign := w.claim(t, "foreign", "")
	w.hold(t, "predecessor")

	began := time.Now()
	c := w.run(t, "successor", nil)
	if err := c.Client.Create(t.Context(), note(w)); !errors.Is(err, leadership.ErrNotLeader) {
		t.Errorf("a write before the takeover: %v", err)
	}
	c.awaitLeading(t)
	if took := time.Since(began); took < leaseDuration+writeTimeout {
		t.Errorf("took over after %s; the predecessor could still write until %s", took, leaseDuration+writeTimeout)
	}
	must(t, c.Client.Create(t.Context(), note(w)))
	if got := w.holder(t); got != c.Controller.Term() {
		t.Errorf("the lease is held by %q", got)
	}

	if err := w.allocate(t.Context(), late); !apierrors.IsConflict(err) {
		t.Errorf("the late allocation: %v, want a conflict", err)
	}
	if got := w.current(t, late); got.Status.Allocation != nil || got.Annotations[berthv1alpha1.AnnotationLeader] != c.Controller.Term() {
		t.Errorf("allocation %v, annotations %v", got.Status.Allocation, got.Annotations)
	}
	for _, untouched := range []*resourcev1.ResourceClaim{allocated, foreign} {
		if got := w.current(t, untouched); got.ResourceVersion != untouched.ResourceVersion {
			t.Errorf("%s was rewritten", untouched.Name)
		}
	}
	// What the takeover saw, the cache shows.
	var cached resourcev1.ResourceClaim
	must(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(late), &cached))
	if cached.Annotations[berthv1alpha1.AnnotationLeader] != c.Controller.Term() {
		t.Error("the cache is behind the takeover")
	}
	if len(cached.ManagedFields) > 0 {
		t.Error("the cache holds managed fields")
	}
}

// Whatever happens to a claim between the list and the bump, the takeover ends, and it never rewrites an allocated one.
func TestBumpMeetsOtherWriters(t *testing.T) {
	w := newWorld(t)
	changed := w.claim(t, "changed", "gang")
	allocated := w.claim(t, "allocated", "gang")
	deleted := w.claim(t, "deleted", "gang")
	flaky := w.claim(t, "flaky", "gang")

	meddle := map[string]func(ctx context.Context) error{
		changed.Name: func(ctx context.Context) error {
			return w.client.Patch(ctx, changed, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"someone":"else"}}}`)))
		},
		allocated.Name: func(ctx context.Context) error { return w.allocate(ctx, allocated) },
		deleted.Name:   func(ctx context.Context) error { return w.client.Delete(ctx, deleted) },
	}
	failures := 3
	var mu sync.Mutex // claims are bumped at once
	began := time.Now()
	c := w.run(t, "meddled", func(inner client.WithWatch) client.WithWatch {
		return interceptor.NewClient(inner, interceptor.Funcs{
			Patch: func(ctx context.Context, inner client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				mu.Lock()
				defer mu.Unlock()
				if obj.GetName() == flaky.Name && failures > 0 {
					failures--
					return apierrors.NewInternalError(errors.New("etcd has no leader"))
				}
				if f := meddle[obj.GetName()]; f != nil {
					delete(meddle, obj.GetName())
					// It happens once, however late this write is.
					if err := f(context.WithoutCancel(ctx)); err != nil {
						return err
					}
				}
				return inner.Patch(ctx, obj, patch, opts...)
			},
		})
	})
	c.awaitLeading(t)
	// There was no lease, but somebody must have made these claims.
	if took := time.Since(began); took < leaseDuration+writeTimeout {
		t.Errorf("took over after %s from a leader whose lease may have been deleted", took)
	}
	for _, claim := range []*resourcev1.ResourceClaim{changed, flaky} {
		if got := w.current(t, claim).Annotations[berthv1alpha1.AnnotationLeader]; got != c.Controller.Term() {
			t.Errorf("%s bears %q", claim.Name, got)
		}
	}
	if got := w.current(t, allocated); got.ResourceVersion != allocated.ResourceVersion {
		t.Error("an allocated claim was rewritten")
	}
}

// An orderly stop hands over at once; the successor does not wait for a lease that was given up.
func TestOrderlyHandOver(t *testing.T) {
	w := newWorld(t)
	first := w.run(t, "first", nil, unhurried)
	first.awaitLeading(t)
	second := w.run(t, "second", nil, unhurried)
	must(t, first.Client.Create(t.Context(), note(w)))

	first.stop()
	if err := first.awaitEnd(t); err != nil {
		t.Errorf("an orderly stop ended with %v", err)
	}
	if err := first.Client.Create(t.Context(), note(w)); !errors.Is(err, leadership.ErrNotLeader) {
		t.Errorf("a write after the stop: %v", err)
	}
	second.awaitLeading(t) // sooner than the lease would run out
	must(t, second.Client.Create(t.Context(), note(w)))
}

// While a write is under way the lease is not given up.
func TestLeaseOutlivesWrites(t *testing.T) {
	w := newWorld(t)
	sent, finish := make(chan struct{}), make(chan struct{})
	var held atomic.Bool
	first := w.run(t, "first", func(inner client.WithWatch) client.WithWatch {
		return interceptor.NewClient(inner, interceptor.Funcs{
			Create: func(ctx context.Context, inner client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if held.CompareAndSwap(false, true) {
					close(sent)
					<-finish
				}
				return inner.Create(ctx, obj, opts...)
			},
		})
	}, unhurried)
	first.awaitLeading(t)
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan error, 1)
	go func() { written <- first.Client.Create(ctx, note(w)) }()
	<-sent
	cancel() // as the manager cancels reconcilers when it stops
	first.stop()
	awaitRefusal(t, w, first) // it is about to give up the lease
	select {
	case err := <-first.done:
		t.Fatalf("stopped with a write under way: %v", err)
	case <-time.After(time.Second): // long for a lease that nobody keeps, and the write has much longer
	}
	if got := w.holder(t); got != first.Controller.Term() {
		t.Errorf("the lease went to %q with a write under way", got)
	}
	close(finish)
	if err := <-written; err != nil {
		t.Errorf("the write was cut off: %v", err)
	}
	if err := first.awaitEnd(t); err != nil {
		t.Error(err)
	}
	if got := w.holder(t); got != "" {
		t.Errorf("the lease was not released; it is held by %q", got)
	}
}

// A leader that finds its lease gone ends with an error and leaves the new holder's lease alone.
func TestLostLease(t *testing.T) {
	w := newWorld(t)
	c := w.run(t, "loser", nil)
	c.awaitLeading(t)
	w.hold(t, "thief")
	if err := c.awaitEnd(t); err == nil {
		t.Error("losing the lease is no error")
	}
	if got := w.holder(t); got != "thief" {
		t.Errorf("the lease was taken from its new holder: %q", got)
	}
	awaitRefusal(t, w, c)
}

// An API server that does not answer: writes end in time, and when the lease may have lapsed none is sent.
func TestSilentAPIServer(t *testing.T) {
	w := newWorld(t)
	var latest time.Time // deadline of a write; one is made at a time
	c := w.run(t, "cut off", func(inner client.WithWatch) client.WithWatch {
		return interceptor.NewClient(inner, interceptor.Funcs{
			Create: func(ctx context.Context, inner client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if end, ok := ctx.Deadline(); !ok {
					t.Error("a write has no deadline")
				} else if end.After(latest) {
					latest = end
				}
				return inner.Create(ctx, obj, opts...)
			},
		})
	})
	c.awaitLeading(t)
	server := w.cluster.Process("kube-apiserver")
	must(t, server.Pause())
	defer func() { must(t, server.Resume()) }()

	began := time.Now() // the last renewal was sent before
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Client.Create(ctx, note(w)); err == nil {
		t.Error("a stopped API server answered")
	}
	if ctx.Err() != nil {
		t.Errorf("the write did not end within %s", patience)
	}
	awaitRefusal(t, w, c)
	if over := latest.Sub(began); over > leaseDuration {
		t.Errorf("a write could go on for %s after the last renewal, and the lease is one of %s", over, leaseDuration)
	}
	must(t, server.Resume())
	if err := c.awaitEnd(t); err == nil {
		t.Error("losing the lease is no error")
	}
}

func awaitRefusal(t *testing.T, w *world, c *candidate) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		err := c.Client.Create(t.Context(), note(w))
		if errors.Is(err, leadership.ErrNotLeader) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("still no refusal, but %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
