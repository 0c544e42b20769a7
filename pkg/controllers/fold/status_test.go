package fold

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

func TestStatus(t *testing.T) {
	l := newLooker(t, queue("a", "", "1"))
	l.create(newFold(into(queueA, "ClusterQueue b"), func(f *berth.CapacityFold) { f.Spec.Targets[1].Weight = ptr.To[int32](0) }))
	l.looks()
	want := berth.CapacityFoldStatus{
		ObservedGeneration: 1, Shares: 4,
		Observed: berth.FoldObservation{Published: 4, Usable: 4, Free: 4, Proved: true},
		Targets: []berth.FoldTargetStatus{
			{Kind: "ClusterQueue", Name: "a", Quota: 4, Previous: ptr.To[int32](1), State: "Following"},
			{Kind: "ClusterQueue", Name: "b", State: "Missing", Message: "there is no ClusterQueue b"},
		},
		Conditions: []metav1.Condition{
			{Type: "Ready", Status: "True", Reason: "Folded", Message: "a share is the same amount of hardware in every class, and no other CapacityFold counts it"},
			{Type: "Tiling", Status: "True", Reason: "Tiles", Message: "each class alone can fill what all of them fill together"},
			{Type: "Following", Status: "False", Reason: "Missing", Message: "ClusterQueue b: there is no ClusterQueue b"},
		},
	}
	for i := range want.Conditions {
		want.Conditions[i].ObservedGeneration, want.Conditions[i].LastTransitionTime = 1, metav1.NewTime(start)
	}
	// The API server keeps times in its own zone.
	sameTime := cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })
	if diff := cmp.Diff(want, l.fold().Status, sameTime); diff != "" {
		t.Fatal(diff)
	}
	// The next write forgets the number from before, and is none of its own.
	l.now = l.now.Add(time.Minute)
	l.wrote("")
	l.create(queue("b", "", "0"))
	l.wrote("update status CapacityFold")
	want.Targets[0].Previous = nil
	want.Targets[1].State, want.Targets[1].Message = "Following", ""
	want.Conditions[2].Status, want.Conditions[2].Reason, want.Conditions[2].Message = "True", "Following", "every target holds its number"
	want.Conditions[2].LastTransitionTime = metav1.NewTime(l.now)
	if diff := cmp.Diff(want, l.fold().Status, sameTime); diff != "" {
		t.Fatal(diff)
	}
}

// A fold that makes no sense any more leaves everything as it is, until it makes sense again.
func TestNotReady(t *testing.T) {
	l := newLooker(t, queue("a", "", "1"))
	second := newFold(into("ClusterQueue b"), func(f *berth.CapacityFold) {
		f.Name, f.UID, f.Spec.DeviceClasses, f.CreationTimestamp = "second", "fold-2", []string{"pair"}, metav1.NewTime(start)
	})
	l.create(newFold(into(queueA)))
	l.create(second)
	l.create(queue("b", "", "7"))
	l.looks()
	overlap := "CapacityFold tpus counts 4 hosts, the first of them h0 already: put the classes into one fold, or select pools or classes that share no host"
	s := read(l, "second", &berth.CapacityFold{}).Status
	if got, want := condition(s, berth.FoldReady), "False FoldOverlap: "+overlap; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got, want := condition(s, berth.FoldFollowing), "False NotReady: the quota stays as it is: "+overlap; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := condition(s, berth.FoldTiling); got != "none" {
		t.Error(got)
	}
	if s.Targets[0].State != berth.TargetNotReady || s.Shares != 0 {
		t.Errorf("%+v", s)
	}
	l.holds("ClusterQueue", "b", "7")

	quad := read(l, "quad", &resourcev1.DeviceClass{})
	if err := l.Delete(t.Context(), quad); err != nil {
		t.Fatal(err)
	}
	// What the first has promised stands, so nobody else promises it.
	l.wrote("update status CapacityFold")
	l.holds("ClusterQueue", "b", "7")
	l.holds("ClusterQueue", "a", "4")
	first := l.fold().Status
	if got, want := condition(first, berth.FoldReady), "False ShapeUnknown: there is no DeviceClass quad"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := condition(first, berth.FoldTiling); got != "none" {
		t.Error(got)
	}
	if first.Shares != 4 || first.Targets[0].Quota != 4 {
		t.Errorf("%+v", first)
	}
	l.wrote("")
	l.restart()
	l.wrote("")

	edit(l, "a", &kueue.ClusterQueue{}, quotaTo("9"))
	l.wrote("")
	l.create(dratest.ByTopology("quad", driver, "4"))
	l.wrote("update ClusterQueue, update status CapacityFold")
	l.holds("ClusterQueue", "a", "4")
	l.holds("ClusterQueue", "b", "7")
	if s := l.fold().Status.Targets[0]; !s.Asserted {
		t.Errorf("what was typed meanwhile is not noticed: %+v", s)
	}

	if err := l.Delete(t.Context(), l.fold()); err != nil {
		t.Fatal(err)
	}
	l.looks()
	l.looks()
	l.holds("ClusterQueue", "b", "4")
	if s := read(l, "second", &berth.CapacityFold{}).Status.Targets[0]; s.Asserted {
		t.Errorf("what was there before is taken for a contest: %+v", s)
	}
}

// A fall that began before is not one that nobody could see for a while.
func TestNotReadyForgetsAFall(t *testing.T) {
	l := newLooker(t)
	l.create(newFold())
	l.looks()
	edit(l, "h1", dratest.Node("h1"), broken)
	l.looks()
	if err := l.Delete(t.Context(), read(l, "quad", &resourcev1.DeviceClass{})); err != nil {
		t.Fatal(err)
	}
	l.looks()
	l.now = l.now.Add(5 * time.Second)
	l.create(dratest.ByTopology("quad", driver, "4"))
	if wrote, again := l.looks(); wrote != "update status CapacityFold" || again != 5*time.Second {
		t.Errorf("writes %q, and looks again after %s", wrote, again)
	}
	l.holds("Cohort", "research", "4")
}

// What changes with every gang is written at most once a second, and with the number that is about to fall.
func TestObservationsAreWrittenSeldom(t *testing.T) {
	l := newLooker(t)
	l.create(newFold())
	l.looks()
	_, _ = l.gang("a", "pair-0", "h0", "h1")
	if wrote, again := l.looks(); wrote != "" || again != time.Second {
		t.Errorf("writes %q, and looks again after %s", wrote, again)
	}
	l.now = l.now.Add(time.Second)
	l.wrote("update status CapacityFold")
	if got, want := l.fold().Status.Observed, (berth.FoldObservation{Published: 4, Usable: 4, Free: 2, Proved: true}); got != want {
		t.Errorf("observed %+v, want %+v", got, want)
	}
	l.wrote("")
}

// A number that may be about to fall keeps people in the dark for a while, and not for ever.
func TestObservationsDoNotWaitForEver(t *testing.T) {
	l := newLooker(t)
	l.create(newFold(func(f *berth.CapacityFold) { f.Spec.HysteresisSeconds = ptr.To[int32](3600) }))
	l.looks()
	edit(l, "h1", dratest.Node("h1"), broken)
	if wrote, again := l.looks(); wrote != "" || again != 10*time.Second {
		t.Errorf("writes %q, and looks again after %s", wrote, again)
	}
	l.now = l.now.Add(4 * time.Second)
	edit(l, "h3", dratest.Node("h3"), broken)
	if wrote, again := l.looks(); wrote != "" || again != 6*time.Second {
		t.Errorf("writes %q, and looks again after %s", wrote, again)
	}
	l.now = l.now.Add(6 * time.Second)
	l.wrote("update status CapacityFold")
	if s := l.fold().Status; s.Shares != 4 || s.Observed.Usable != 0 || len(s.Losses) != 2 {
		t.Errorf("%+v", s)
	}
	if wrote, again := l.looks(); wrote != "" || again != 3590*time.Second {
		t.Errorf("writes %q, and looks again after %s", wrote, again)
	}
}

func TestLossesAreListed(t *testing.T) {
	l := newLooker(t)
	l.create(newFold())
	l.looks()
	edit(l, "h3", dratest.Node("h3"), broken)
	if err := l.Delete(t.Context(), read(l, "h0", dratest.Node("h0"))); err != nil {
		t.Fatal(err)
	}
	l.later(5 * time.Second)
	want := "h0 does not exist (HostMissing)\nh3 is not Ready (HostUnusable)"
	if got := strings.Join(l.fold().Status.Losses, "\n"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestSome(t *testing.T) {
	for most, want := range map[int]string{1: "a, and 2 more", 2: "a, b, and 1 more", 3: "a, b, c"} {
		if got := some([]string{"a", "b", "c"}, most, ", "); got != want {
			t.Errorf("%d: %s", most, got)
		}
	}
}
