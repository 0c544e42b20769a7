package fold

import (
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// liveLooker has a Live fold for the Cohort research, which exists in name only: ClusterQueue research is in it.
func liveLooker(t *testing.T) *looker {
	l := newLooker(t, queue(kueuetest.Queue, "research", "0"))
	l.create(newFold(live))
	l.wrote("create Cohort, create ResourceFlavor, update CapacityFold, update status CapacityFold")
	l.holds("Cohort", "research", "4")
	l.events = nil
	return l
}

func (l *looker) later(after time.Duration) {
	l.t.Helper()
	l.looks()
	l.now = l.now.Add(after)
	l.looks()
}

func (l *looker) observed(want berth.FoldObservation) {
	l.t.Helper()
	want.Published, want.Usable, want.Proved = 4, 4, true
	if got := l.fold().Status.Observed; got != want {
		l.t.Errorf("observed %+v, want %+v", got, want)
	}
}

// What succeeded pods leave is charged to nobody and free for nobody: the quota goes down at once, and comes back with the
// devices.
func TestPodsSucceedOneByOne(t *testing.T) {
	l := liveLooker(t)
	wl, res := l.gang("a", "pair-0", "h0", "h1")
	l.now = l.now.Add(time.Second)
	l.wrote("update status CapacityFold")
	l.observed(berth.FoldObservation{Held: 2, Free: 2, Charged: 2})
	l.holds("Cohort", "research", "4")

	wl.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: kueuetest.PodSet, Count: 1}}
	l.change(wl.Workload)
	l.wrote("update Cohort, update status CapacityFold")
	l.observed(berth.FoldObservation{Held: 2, Free: 2, Charged: 1})
	l.holds("Cohort", "research", "3")
	l.said() // It says nothing of the hardware.

	// It is done. Its devices come back within the hysteresis, so the number goes up.
	l.change(wl.Finished().Workload)
	res.Status.Phase = berth.PhaseReleasing
	l.change(res)
	l.wrote("update Cohort, update status CapacityFold")
	l.holds("Cohort", "research", "4")
	l.observed(berth.FoldObservation{Held: 0, Free: 4})
}

// The pods of a gang that is being released still run: nobody else can have its devices. The hysteresis bridges the usual
// moment, and no longer.
func TestGangBeingReleased(t *testing.T) {
	l := liveLooker(t)
	wl, res := l.gang("a", "pair-0", "h0", "h1")
	l.create(dratest.Claim(res.Namespace, res.Spec.PodSets[0].Claims[0].Prefix+"-0", dratest.Result(driver, "pod-a", "pair-0")))
	claim := &resourcev1.ResourceClaim{}
	key := metav1.ObjectMeta{Namespace: res.Namespace, Name: res.Spec.PodSets[0].Claims[0].Prefix + "-0"}
	edited(l, key, claim, func() {
		claim.Annotations = map[string]string{berth.AnnotationReservationUID: string(res.UID)}
	})
	l.later(5 * time.Second)
	l.observed(berth.FoldObservation{Held: 2, Free: 2, Charged: 2})

	l.change(wl.Evicted().Workload)
	res.Status.Phase = berth.PhaseReleasing
	l.change(res)
	if wrote, again := l.looks(); wrote != "" || again != 5*time.Second {
		t.Errorf("writes %q, and looks again after %s", wrote, again)
	}
	l.holds("Cohort", "research", "4")
	l.now = l.now.Add(5 * time.Second)
	// What Kueue still charges is not taken away: 2 shares are free and 2 charged, and the first 2 are not free for the same.
	l.wrote("update Cohort, update status CapacityFold")
	l.observed(berth.FoldObservation{Held: 2, Free: 2, Charged: 0})
	l.holds("Cohort", "research", "2")
	if s := l.fold().Status.Targets[0]; s.Charged != 2 || s.Quota != 2 {
		t.Errorf("%+v", s)
	}
	if err := l.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	l.wrote("update Cohort, update status CapacityFold")
	l.holds("Cohort", "research", "4")
}

// A number does not fall below what is charged: Kueue would preempt for it.
func TestNotBelowTheCharge(t *testing.T) {
	l := newLooker(t, queue(kueuetest.Queue, "", "9"))
	l.create(newFold(into("ClusterQueue " + kueuetest.Queue)))
	l.looks()
	_, _ = l.gang("a", "pair-0", "h0", "h1")
	_, _ = l.gang("b", "pair-1", "h2", "h3")
	for _, h := range []string{"h0", "h2"} {
		edit(l, h, dratest.Node(h), broken)
	}
	l.later(5 * time.Second)
	l.holds("ClusterQueue", kueuetest.Queue, "4")
	if s := l.fold().Status; s.Shares != 0 || s.Targets[0].Quota != 4 || s.Targets[0].Charged != 4 {
		t.Errorf("%+v", s)
	}
	wl := &kueue.Workload{}
	edited(l, metav1.ObjectMeta{Namespace: kueuetest.Namespace, Name: "job-a"}, wl, nil)
	l.change(kueuetest.Workload{Workload: wl}.Finished().Workload)
	l.wrote("update ClusterQueue, update status CapacityFold")
	l.holds("ClusterQueue", kueuetest.Queue, "2")
}

// Gangs of other queues hold what they hold: it is no part of what these targets can have.
func TestGangsOfOthers(t *testing.T) {
	l := liveLooker(t)
	wl, _ := l.gang("a", "pair-0", "h0", "h1")
	l.change(wl.In("elsewhere").Workload)
	l.later(5 * time.Second)
	l.observed(berth.FoldObservation{Held: 0, Free: 2})
	l.holds("Cohort", "research", "2")
}
