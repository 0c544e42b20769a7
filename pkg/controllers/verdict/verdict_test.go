package verdict_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/berth-dev/berth/pkg/controllers/verdict"
	"github.com/berth-dev/berth/pkg/reason"
)

var (
	a       = types.NamespacedName{Namespace: "ml", Name: "a"}
	tainted = &reason.Refusal{Code: reason.DeviceTainted, Message: "tainted"}
	absent  = &reason.Refusal{Code: reason.NotSeated, Message: "absent"}
)

func newQueue(t *testing.T) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	return q
}

// drain returns how many looks are asked for.
func drain(q workqueue.TypedRateLimitingInterface[reconcile.Request]) int {
	n := 0
	for q.Len() > 0 {
		r, _ := q.Get()
		q.Done(r)
		n++
	}
	return n
}

func TestBoard(t *testing.T) {
	b, q := verdict.NewBoard(), newQueue(t)
	if err := b.Changes().Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		do    func()
		lost  *reason.Refusal
		looks int
	}{
		{func() { b.Set(a, verdict.Seating, nil) }, nil, 0},
		{func() { b.Set(a, verdict.Seating, absent) }, absent, 1},
		{func() { b.Set(a, verdict.Seating, absent) }, absent, 0},
		{func() { b.Set(a, verdict.Hardware, nil) }, absent, 0},
		{func() { b.Set(a, verdict.Hardware, tainted) }, tainted, 1},
		{func() { b.Set(a, verdict.Seating, nil) }, tainted, 1},
		{func() { b.Set(a, verdict.Hardware, absent) }, absent, 0},
		{func() { b.Set(a, verdict.Hardware, nil) }, nil, 1},
		{func() { b.Set(a, verdict.Hardware, tainted) }, tainted, 1},
		{func() { b.Forget(a) }, nil, 0},
		{func() { b.Set(a, verdict.Hardware, nil) }, nil, 0},
		{func() { b.Set(a, verdict.Seating, absent) }, absent, 1},
	} {
		step.do()
		if got := b.Lost(a); got != step.lost {
			t.Fatalf("step %d: lost is %v, want %v", i, got, step.lost)
		}
		if got := drain(q); got != step.looks {
			t.Fatalf("step %d: %d looks are asked for, want %d", i, got, step.looks)
		}
	}
	if got := b.Lost(types.NamespacedName{Namespace: "other", Name: "a"}); got != nil {
		t.Errorf("a reservation of that name elsewhere is lost: %v", got)
	}
}

// Verdicts are posted before the controller that acts on them starts, more of them than any channel would hold.
func TestBoardNeverBlocks(t *testing.T) {
	const many = 5000
	b, q := verdict.NewBoard(), newQueue(t)
	key := func(i int) types.NamespacedName { return types.NamespacedName{Namespace: "ml", Name: fmt.Sprint(i)} }
	var posting sync.WaitGroup
	for range 4 {
		posting.Go(func() {
			for i := range many {
				b.Set(key(i), verdict.Hardware, tainted)
				_ = b.Lost(key(i))
			}
		})
	}
	posting.Wait()
	b.Set(key(0), verdict.Hardware, nil) // Nobody has to look at this one any more.
	if err := b.Changes().Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if got := drain(q); got != many-1 {
		t.Errorf("%d looks are asked for, want %d", got, many-1)
	}
}

func TestBackoff(t *testing.T) {
	now := time.Unix(0, 0)
	b := verdict.NewBackoff(time.Second, 10*time.Second, func() time.Time { return now })
	waits := func() time.Duration {
		left, why := b.Waits("u")
		if (left > 0) != (why != nil) {
			t.Fatalf("waits %v for %v", left, why)
		}
		return left
	}
	if waits() != 0 {
		t.Fatal("waits before anything failed")
	}
	for i, seconds := range []int{1, 2, 4, 8, 10, 10} {
		want := time.Duration(seconds) * time.Second
		b.Failed("u", tainted)
		if got := waits(); got != want {
			t.Fatalf("after failure %d it waits %v, want %v", i+1, got, want)
		}
		// Found out again while it waits: the same failure.
		now = now.Add(want / 4)
		b.Failed("u", absent)
		if got := waits(); got != want-want/4 {
			t.Fatalf("after failure %d was noted twice it waits %v, want %v", i+1, got, want-want/4)
		}
		if _, why := b.Waits("u"); why != absent {
			t.Fatalf("waits for %v", why)
		}
		now = now.Add(want - want/4)
		if waits() != 0 {
			t.Fatalf("still waits after %v", want)
		}
	}
	if left, _ := b.Waits("other"); left != 0 {
		t.Errorf("another Workload waits %v", left)
	}
	b.Forget("u")
	b.Failed("u", tainted)
	if got := waits(); got != time.Second {
		t.Errorf("after a success it waits %v", got)
	}
}

func TestBackoffForgetsWhoIsGone(t *testing.T) {
	now := time.Unix(0, 0)
	b := verdict.NewBackoff(time.Second, 10*time.Second, func() time.Time { return now })
	for _, uid := range []types.UID{"gone", "other", "back"} {
		b.Failed(uid, tainted)
		now = now.Add(time.Second)
		b.Failed(uid, tainted) // waits 2 s
	}
	for _, step := range []struct {
		passes time.Duration
		uid    types.UID
		waits  time.Duration
	}{
		{25 * time.Hour, "back", 4 * time.Second}, // its pods did not come, and a day is the longest that they are waited for
		{0, "other", 4 * time.Second},
		{24 * time.Hour, "back", 8 * time.Second},
		{0, "gone", time.Second},
		{1000 * time.Hour, "back", 10 * time.Second}, // whoever fails again has not gone
	} {
		now = now.Add(step.passes)
		b.Failed(step.uid, absent)
		if left, _ := b.Waits(step.uid); left != step.waits {
			t.Errorf("after %v %s waits %v, want %v", step.passes, step.uid, left, step.waits)
		}
	}
}
