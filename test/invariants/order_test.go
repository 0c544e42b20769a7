package invariants_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/invariants"
)

var watched = []string{
	"resourceclaims", "pods", "workloads", "gangreservations", "resourceslices", "nodes", "admissionchecks", "acceleratorpools",
}

// life is a legal history with an event of every kind.
func (f *fixture) life() {
	f.t.Helper()
	node := f.node("n0", corev1.ConditionUnknown)
	f.publish(2, "1", "whole", "left", "right", "solo")
	f.fence(v1alpha1.FenceEnforce)
	old := f.reserve(f.workload("old"), epoch1, "whole").allocate()
	old.release()
	f.nodeReady(node, corev1.ConditionTrue)
	g := f.reserve(f.workload("a"), epoch1, "left", "right").allocate().state(kueue.CheckStateReady)
	p0, p1 := g.pod("p0", 0, "n0"), g.pod("p1", 1, "n0")
	g.phase(v1alpha1.PhaseHandedOver)
	f.podPhase(p0, corev1.PodRunning)
	f.podPhase(p1, corev1.PodRunning)
	g.state(kueue.CheckStatePending)
	f.podPhase(p0, corev1.PodFailed)
	f.delete(p1)
	g.release()
	f.delete(g.workload)
	f.node("n1", corev1.ConditionUnknown) // it was not there when p1 was deleted
	// The quarantine of h0 begins after b got it and ends before c does.
	before := f.reserve(f.workload("b"), epoch1, "right").allocate()
	sick := f.reserve(f.workload("sick"), epoch1, "solo")
	sick.quarantine("h0")
	before.release()
	sick.reservation.Status.Quarantine = nil
	f.must(f.client.Status().Update(f.ctx, sick.reservation))
	c := f.reserve(f.workload("c"), epoch1, "right").allocate()
	c.release()
	// The host of the former pod was lost for a moment before the gang got another.
	former, p := f.moved(func(host *corev1.Node, _ *corev1.Pod) {
		f.nodeReady(host, corev1.ConditionUnknown)
		f.nodeReady(host, corev1.ConditionTrue)
	})
	f.delete(p)
	former.release()
}

// One watch is far behind all others. What it makes look wrong in the meantime must wait for it.
func TestWatchOutOfOrderIsNoBreach(t *testing.T) {
	for _, resource := range watched {
		t.Run("behind-"+resource, func(t *testing.T) {
			f := newFixture(t)
			f.lag.Hold(resource)
			f.life()
			// Everything is judged while the watch is held. That may be impossible until it is not.
			short, cancel := context.WithTimeout(f.ctx, time.Second)
			defer cancel()
			_ = f.watcher.Settle(short)
			f.must(f.watcher.Err())
			f.lag.Release()
			f.legal()
		})
	}
}

// apart are the kinds between which an invariant is judged.
var apart = map[int][]string{
	1:  {"resourceslices", "acceleratorpools"},
	2:  {"resourceclaims", "workloads", "gangreservations"},
	4:  {"resourceclaims", "pods", "gangreservations", "nodes"},
	6:  {"resourceclaims", "pods", "workloads", "gangreservations"},
	11: {"pods", "nodes"},
}

// A watch that is behind hides nothing either.
func TestBreachIsFoundOutOfOrder(t *testing.T) {
	for i, p := range planted {
		for _, resource := range apart[p.invariant] {
			t.Run(fmt.Sprintf("%d-behind-%s", i, resource), func(t *testing.T) {
				f := newFixture(t)
				f.lag.Hold(resource)
				p.plant(f)
				f.lag.Release()
				f.must(f.watcher.Settle(f.ctx))
				var b *invariants.Breach
				if err := f.watcher.Err(); !errors.As(err, &b) || b.Invariant != p.invariant {
					t.Errorf("%s: found %v, want a breach of invariant %d", p.name, err, p.invariant)
				}
			})
		}
	}
}

// A reservation comes and goes while its watch is behind, and everything is judged meanwhile: its name is used up.
func TestReservationUnseen(t *testing.T) {
	f := newFixture(t)
	f.lag.Hold("gangreservations")
	workload := f.workload("a")
	f.reserve(workload, epoch1, "left").allocate().state(kueue.CheckStateReady).state(kueue.CheckStatePending).release()
	f.must(f.watcher.Settle(f.ctx))
	f.must(f.watcher.Err())
	f.reserve(workload, epoch1, "left").allocate().state(kueue.CheckStateReady)
	f.lag.Release()
	f.must(f.watcher.Settle(f.ctx))
	var b *invariants.Breach
	if err := f.watcher.Err(); !errors.As(err, &b) || b.Invariant != 6 {
		t.Errorf("found %v, want a breach of invariant 6", err)
	}
}

// What looked innocent is judged again although nobody asks and nothing else looks suspicious.
func TestBreachIsFoundByAndBy(t *testing.T) {
	f := newFixture(t)
	f.lag.Hold("gangreservations")
	f.reserve(f.workload("a"), epoch1, "solo").quarantine("h0")
	f.reserve(f.workload("b"), epoch1, "left").allocate()
	// It waits for the watch that is held, and by then the claims are in.
	short, cancel := context.WithTimeout(f.ctx, time.Second)
	defer cancel()
	if err := f.watcher.Settle(short); err == nil {
		t.Fatal("the reservations are in")
	}
	f.lag.Release()
	select {
	case <-f.watcher.Breached():
	case <-time.After(limit):
		t.Fatalf("nothing was found within %s", limit)
	}
	var b *invariants.Breach
	if err := f.watcher.Err(); !errors.As(err, &b) || b.Invariant != 4 {
		t.Errorf("found %v, want a breach of invariant 4", err)
	}
}

// The API server goes away under the watcher and comes back.
func TestWatcherOutlivesTheAPIServer(t *testing.T) {
	f := newFixture(t)
	g := f.reserve(f.workload("a"), epoch1, "left").allocate().state(kueue.CheckStateReady)
	p := g.pod("p", 0, "n0")
	f.must(f.c.Process(cluster.APIServer).Stop())
	f.must(f.c.Process(cluster.APIServer).Start(f.ctx))
	f.podPhase(p, corev1.PodSucceeded)
	f.must(f.watcher.Settle(f.ctx))
	f.must(f.watcher.Err())
	g.state(kueue.CheckStatePending)
	g.clear(0)
	f.reserve(f.workload("b"), epoch1, "left").allocate()
	f.must(f.watcher.Settle(f.ctx))
	f.must(f.watcher.Err())
	f.reserve(f.workload("c"), epoch1, "whole").allocate()
	f.must(f.watcher.Settle(f.ctx))
	var b *invariants.Breach
	if err := f.watcher.Err(); !errors.As(err, &b) || b.Invariant != 1 {
		t.Errorf("found %v, want a breach of invariant 1", err)
	}
}
