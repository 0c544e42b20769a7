package invariants_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/invariants"
)

const (
	epoch1 = "0000000001"
	epoch2 = "0000000002"
)

// planted are histories that each break one invariant, and only at the end.
var planted = []struct {
	name      string
	invariant int
	options   []invariants.Option
	plant     func(f *fixture)
	what      string // part of the report
	nobody    bool   // there is no write to blame
}{
	{name: "counter overdrawn", invariant: 1, what: "of counter hosts/h0", plant: func(f *fixture) {
		f.reserve(f.workload("a"), epoch1, "left").allocate()
		f.reserve(f.workload("b"), epoch1, "whole").allocate()
	}},
	{name: "device given twice", invariant: 1, what: "device solo of pool", plant: func(f *fixture) {
		f.reserve(f.workload("a"), epoch1, "solo").allocate()
		f.reserve(f.workload("b"), epoch1, "solo").allocate()
	}},
	{name: "overdrawn beside a foreign claim", invariant: 1, what: "of counter hosts/h1", plant: func(f *fixture) {
		foreign := f.claim("foreign")
		f.must(f.client.Create(f.ctx, foreign))
		f.allocate(foreign, "right")
		f.reserve(f.workload("b"), epoch1, "whole").allocate()
	}},
	{name: "device of an older generation stays charged", invariant: 1, what: "of counter hosts/h0", plant: func(f *fixture) {
		f.reserve(f.workload("a"), epoch1, "whole").allocate()
		f.publish(2, "1", "left", "right", "solo")
		f.reserve(f.workload("b"), epoch1, "left").allocate()
	}},
	{name: "overdrawn by others behind a fence", invariant: 1, what: "of counter hosts/h0", plant: func(f *fixture) {
		f.fence(v1alpha1.FenceEnforce)
		f.reserve(f.workload("a"), epoch1, "left").allocate()
		foreign := f.claim("foreign")
		f.must(f.client.Create(f.ctx, foreign))
		f.allocate(foreign, "whole")
	}},
	{name: "capacity overdrawn", invariant: 1, what: "of capacity memory of device big", plant: func(f *fixture) {
		f.shareable("big", "80Gi")
		f.shares("a", "big", "50Gi")
		f.shares("b", "big", "30Gi")
		f.shares("c", "big", "1Gi")
	}},
	{name: "capacity overdrawn by others behind a fence", invariant: 1, what: "which is 80Gi, 81Gi is then taken", plant: func(f *fixture) {
		f.fence(v1alpha1.FenceEnforce)
		f.shareable("big", "80Gi")
		f.shares("a", "big", "50Gi")
		foreign := f.claim("foreign")
		f.must(f.client.Create(f.ctx, foreign))
		f.share(foreign, "big", "31Gi")
	}},
	{name: "share beside the whole", invariant: 1, what: "is then allocated whole 1 times and in 1 shares", plant: func(f *fixture) {
		f.shareable("big", "80Gi")
		f.reserve(f.workload("a"), epoch1, "big").allocate()
		f.shares("b", "big", "1Gi")
	}},
	{name: "half a gang", invariant: 2, what: "is not allocated", plant: func(f *fixture) {
		f.reserve(f.workload("a"), epoch1, "left", "right").allocate(0).state(kueue.CheckStateReady)
	}},
	{name: "another device than promised", invariant: 2, what: "instead of", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left")
		f.allocate(g.claims[0], "right", g.hold())
		g.state(kueue.CheckStateReady)
	}},
	{name: "claim not created", invariant: 2, what: "does not exist", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left", "right").allocate(0)
		f.unfinalize(g.claims[1])
		f.delete(g.claims[1])
		g.state(kueue.CheckStateReady)
	}},
	{name: "ready without a reservation", invariant: 2, what: "which does not exist", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left")
		g.reservation.Name = "never-written"
		g.state(kueue.CheckStateReady)
	}},
	{name: "released under a stale ready", invariant: 2, what: "is not allocated", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate().state(kueue.CheckStateReady)
		g.workload.Status.Conditions[0].Status = metav1.ConditionFalse // Kueue took the quota back and left the check
		f.must(f.client.Status().Update(f.ctx, g.workload))
		g.clear(0)
	}},
	{name: "finalizer stripped", invariant: 2, what: "has not the finalizer", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate().state(kueue.CheckStateReady)
		f.unfinalize(g.claims[0])
	}},
	{name: "allocated without the hold", invariant: 3, what: "without the reservedFor entry", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left")
		f.allocate(g.claims[0], "left")
	}},
	{name: "hold removed for a moment", invariant: 3, what: "without the reservedFor entry", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate()
		g.claims[0].Status.ReservedFor = nil
		f.must(f.client.Status().Update(f.ctx, g.claims[0]))
		g.claims[0].Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{g.hold()}
		f.must(f.client.Status().Update(f.ctx, g.claims[0]))
	}},
	{name: "freed under a running pod", invariant: 4, what: "lost its allocation", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate().state(kueue.CheckStateReady)
		f.podPhase(g.pod("p", 0, "n0"), corev1.PodRunning)
		g.state(kueue.CheckStatePending)
		g.clear(0)
	}},
	{name: "freed a moment before the pod ended", invariant: 4, what: "lost its allocation", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate().state(kueue.CheckStateReady)
		pod := g.pod("p", 0, "n0")
		f.podPhase(pod, corev1.PodRunning)
		g.state(kueue.CheckStatePending)
		g.clear(0)
		f.podPhase(pod, corev1.PodSucceeded)
		f.delete(pod)
	}},
	{name: "freed under a pod whose entry was taken off", invariant: 4, what: "which stood in its reservedFor", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate().state(kueue.CheckStateReady)
		f.podPhase(g.pod("p", 0, "n0"), corev1.PodRunning)
		g.claims[0].Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{g.hold()}
		f.must(f.client.Status().Update(f.ctx, g.claims[0]))
		g.state(kueue.CheckStatePending)
		g.clear(0)
	}},
	{name: "claim vanished under a running pod", invariant: 4, what: "vanished while it was allocated", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate()
		f.podPhase(g.podAfterReady("p", 0, "n0"), corev1.PodRunning)
		f.delete(g.claims[0])
		f.unfinalize(g.claims[0])
	}},
	{name: "host lost and not quarantined", invariant: 4, what: "does not list that node", plant: func(f *fixture) {
		f.node("lost", corev1.ConditionUnknown)
		g := f.reserve(f.workload("a"), epoch1, "left").allocate()
		pod := g.podAfterReady("p", 0, "lost")
		f.podPhase(pod, corev1.PodRunning)
		f.delete(pod)
		g.clear(0)
	}},
	{name: "quarantined host given to another gang", invariant: 4, what: "in quarantine", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "solo")
		g.quarantine("h0")
		f.reserve(f.workload("b"), epoch1, "left").allocate()
	}},
	{name: "reservation used after release", invariant: 6, what: "which is Releasing since", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate().state(kueue.CheckStateReady)
		g.state(kueue.CheckStatePending).phase(v1alpha1.PhaseReleasing)
		g.state(kueue.CheckStateReady)
	}},
	{name: "name of a reservation used again", invariant: 6, what: "has served before", plant: func(f *fixture) {
		workload := f.workload("a")
		f.reserve(workload, epoch1, "left").allocate().state(kueue.CheckStateReady).state(kueue.CheckStatePending).release()
		f.reserve(workload, epoch1, "left").allocate().state(kueue.CheckStateReady)
	}},
	{name: "claim of another epoch", invariant: 6, what: "serves epoch", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate()
		g.claims[0].Annotations[v1alpha1.AnnotationEpoch] = epoch2
		f.must(f.client.Update(f.ctx, g.claims[0]))
		g.state(kueue.CheckStateReady)
	}},
	{name: "reservation of another Workload", invariant: 6, what: "serves the Workload with uid", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate()
		g.workload = f.workload("b")
		g.state(kueue.CheckStateReady)
	}},
	{name: "two handed over", invariant: 6, what: "was handed over", plant: func(f *fixture) {
		workload := f.workload("a")
		f.reserve(workload, epoch1, "left").allocate().phase(v1alpha1.PhaseHandedOver)
		f.reserve(workload, epoch2, "right").allocate().phase(v1alpha1.PhaseHandedOver)
	}},
	{name: "pod with a reservation of the past", invariant: 6, what: "named last was a-" + epoch2, plant: func(f *fixture) {
		workload := f.workload("a")
		old := f.reserve(workload, epoch1, "left").allocate().state(kueue.CheckStateReady).state(kueue.CheckStatePending)
		f.reserve(workload, epoch2, "right").allocate().state(kueue.CheckStateReady)
		old.pod("p", 0, "")
	}},
	{name: "pod before the check was ready", invariant: 6, what: "named last was none", plant: func(f *fixture) {
		f.reserve(f.workload("a"), epoch1, "left").allocate().pod("p", 0, "")
	}},
	{name: "reservation left behind", invariant: 7, what: "there remain: GangReservation", nobody: true,
		options: []invariants.Option{invariants.WithTraceGrace(time.Nanosecond)}, plant: func(f *fixture) {
			g := f.reserve(f.workload("a"), epoch1, "left").allocate()
			f.delete(g.workload)
			f.rec.finish()
		}},
	{name: "two pods of one rank", invariant: 11, what: "has the same rank", plant: func(f *fixture) {
		g := f.reserve(f.workload("a"), epoch1, "left").allocate()
		first := g.podAfterReady("first", 0, "n0")
		f.podPhase(first, corev1.PodRunning)
		g.pod("second", 0, "n0")
	}},
	{name: "two pods of one rank in two admissions", invariant: 11, what: "of GangReservation m-" + epoch1, plant: func(f *fixture) {
		f.moved(func(*corev1.Node, *corev1.Pod) {})
	}},
	{name: "two pods of one rank with two Workloads", invariant: 11, what: "of GangReservation a-" + epoch1, plant: func(f *fixture) {
		f.node("n0", corev1.ConditionTrue)
		former := f.reserve(f.workload("a"), epoch1, "left").allocate()
		former.podAfterReady("p", 0, "n0")
		f.delete(former.workload)
		f.reserve(f.workload("a"), epoch2, "right").allocate().podAfterReady("q", 0, "n1")
	}},
}

// podAfterReady hands the gang over and creates a pod.
func (g *gang) podAfterReady(name string, rank int, node string) *corev1.Pod {
	g.f.t.Helper()
	g.state(kueue.CheckStateReady)
	pod := g.pod(name, rank, node)
	g.state(kueue.CheckStatePending)
	return pod
}

func (g *gang) quarantine(node string) {
	g.f.t.Helper()
	g.reservation.Status.Quarantine = []v1alpha1.QuarantinedShare{{Node: node, Driver: driver, Pool: g.f.ns, Since: metav1.Now()}}
	g.f.must(g.f.client.Status().Update(g.f.ctx, g.reservation))
}

func (f *fixture) fence(mode v1alpha1.FenceMode) {
	f.t.Helper()
	fence := &v1alpha1.AcceleratorPool{
		ObjectMeta: metav1.ObjectMeta{Name: f.ns},
		Spec:       v1alpha1.AcceleratorPoolSpec{Driver: driver, Fence: mode, PoolSelector: &v1alpha1.PoolSelector{Names: []string{f.ns}}},
	}
	f.must(f.client.Create(f.ctx, fence))
	fence.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.PoolFenced, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now(),
	}}
	f.must(f.client.Status().Update(f.ctx, fence))
}

func TestEveryPlantedBreachIsFound(t *testing.T) {
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			f := newFixture(t, p.options...)
			p.plant(f)
			select {
			case <-f.watcher.Breached():
			case <-time.After(limit):
				t.Fatalf("nothing was found within %s", limit)
			}
			var b *invariants.Breach
			if err := f.watcher.Err(); !errors.As(err, &b) || b.Invariant != p.invariant {
				t.Fatalf("found\n%v\nwant a breach of invariant %d", err, p.invariant)
			}
			if !strings.Contains(b.What, p.what) {
				t.Errorf("the report does not say %q:\n%v", p.what, b)
			}
			if !p.nobody {
				for _, part := range []string{`"planter"`, "audit: user admin with"} {
					if !strings.Contains(b.Writer, part) {
						t.Errorf("the report does not name the writer, %s:\n%v", part, b)
					}
				}
			}
			if got := f.rec.finish(); len(got) != 1 || got[0] != b.Error() {
				t.Errorf("the test was failed with %d errors:\n%s", len(got), strings.Join(got, "\n"))
			}
			t.Logf("%v", b)
		})
	}
}

func TestSwitchedOffInvariantIsNotReported(t *testing.T) {
	f := newFixture(t, invariants.Without(3))
	g := f.reserve(f.workload("a"), epoch1, "left")
	f.allocate(g.claims[0], "left")
	f.legal()
}

func TestAwaitNoTrace(t *testing.T) {
	f := newFixture(t)
	g := f.reserve(f.workload("a"), epoch1, "left").allocate()
	short, cancel := context.WithTimeout(f.ctx, 500*time.Millisecond)
	defer cancel()
	if err := f.watcher.AwaitNoTrace(short, g.workload.UID); err == nil || f.watcher.Err() != nil {
		t.Errorf("while the Workload exists: %v, breach %v", err, f.watcher.Err())
	}
	done := make(chan error, 1)
	go func() { done <- f.watcher.AwaitNoTrace(f.ctx, g.workload.UID) }()
	f.delete(g.workload)
	g.release()
	if err := <-done; err != nil {
		t.Error(err)
	}

	left := f.reserve(f.workload("b"), epoch1, "left")
	f.delete(left.workload)
	short, cancel = context.WithTimeout(f.ctx, 500*time.Millisecond)
	defer cancel()
	var b *invariants.Breach
	if err := f.watcher.AwaitNoTrace(short, left.workload.UID); !errors.As(err, &b) || b.Invariant != 7 {
		t.Errorf("with a reservation left behind: %v", err)
	}
	if got := f.rec.finish(); len(got) != 1 {
		t.Errorf("the test was failed with %q", got)
	}
}
