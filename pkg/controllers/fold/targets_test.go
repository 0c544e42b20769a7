package fold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

func quotaTo(number string) func(*kueue.ClusterQueue) {
	return func(q *kueue.ClusterQueue) {
		q.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse(number)
	}
}

// stands asserts how a target stands, and Following.
func (l *looker) stands(target, state, message string) {
	l.t.Helper()
	f := l.fold()
	for _, t := range f.Status.Targets {
		if got := string(t.Kind) + " " + t.Name; got == target {
			if string(t.State) != state || t.Message != message {
				l.t.Errorf("%s is %s: %s\nwant %s: %s", target, t.State, t.Message, state, message)
			}
		}
	}
	want := "False " + state + ": " + target + ": " + message
	if state == "Following" {
		want = "True Following: every target holds its number"
	}
	if got := condition(f.Status, berth.FoldFollowing); got != want {
		l.t.Errorf("Following is %s\nwant %s", got, want)
	}
}

func condition(s berth.CapacityFoldStatus, kind string) string {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return "none"
}

const (
	contested = "somebody set the nominalQuota again after it was taken back once: it is left alone until the CapacityFold or an annotation berth.dev/fold-paused changes"
	queueA    = "ClusterQueue a"
)

func TestSomebodyElseWritesTheNumber(t *testing.T) {
	contest := func(t *testing.T) *looker {
		l := newLooker(t, queue("a", "", "99"))
		l.create(newFold(into(queueA)))
		l.wrote("create ResourceFlavor, update CapacityFold, update ClusterQueue, update status CapacityFold")
		l.holds("ClusterQueue", "a", "4")
		l.wrote("")
		l.events = nil
		edit(l, "a", &kueue.ClusterQueue{}, quotaTo("7"))
		l.wrote("update ClusterQueue, update status CapacityFold")
		l.holds("ClusterQueue", "a", "4")
		l.stands(queueA, "Following", "")
		l.said()
		edit(l, "a", &kueue.ClusterQueue{}, quotaTo("7"))
		l.wrote("update status CapacityFold")
		l.holds("ClusterQueue", "a", "7")
		l.stands(queueA, "FoldContested", contested)
		l.said("tpus: Warning FoldContested ClusterQueue a: " + contested)
		l.measured(`berth_fold_quota_writes_total{kind="ClusterQueue"} 2`, `berth_fold_shares{fold="tpus"} 4`, `berth_fold_targets{state="FoldContested"} 1`)
		l.wrote("")
		return l
	}
	t.Run("the number moves on", func(t *testing.T) {
		l := contest(t)
		edit(l, "h0", &corev1.Node{}, broken)
		l.looks()
		l.now = l.now.Add(5 * time.Second)
		l.wrote("update status CapacityFold")
		l.holds("ClusterQueue", "a", "7")
		l.stands(queueA, "FoldContested", contested)
	})
	t.Run("the number meets theirs and moves on", func(t *testing.T) {
		l := contest(t)
		edit(l, "a", &kueue.ClusterQueue{}, quotaTo("2"))
		edit(l, "h0", &corev1.Node{}, broken)
		l.later(5 * time.Second)
		l.stands(queueA, "FoldContested", contested)
		edit(l, "h0", &corev1.Node{}, sound)
		l.looks()
		l.holds("ClusterQueue", "a", "2")
		l.stands(queueA, "FoldContested", contested)
	})
	t.Run("also in another process", func(t *testing.T) {
		l := contest(t)
		l.restart()
		l.wrote("")
		l.holds("ClusterQueue", "a", "7")
	})
	t.Run("the annotation of the target", func(t *testing.T) {
		l := contest(t)
		edit(l, "a", &kueue.ClusterQueue{}, func(q *kueue.ClusterQueue) {
			q.Annotations = map[string]string{berth.AnnotationFoldPaused: "false"}
		})
		l.wrote("update ClusterQueue, update status CapacityFold")
		l.holds("ClusterQueue", "a", "4")
		l.stands(queueA, "Following", "")
	})
	t.Run("the annotation of the fold", func(t *testing.T) {
		l := contest(t)
		edit(l, "tpus", &berth.CapacityFold{}, func(f *berth.CapacityFold) {
			f.Annotations = map[string]string{berth.AnnotationFoldPaused: "false"}
		})
		l.wrote("update ClusterQueue, update status CapacityFold")
		l.holds("ClusterQueue", "a", "4")
	})
	t.Run("the fold", func(t *testing.T) {
		l := contest(t)
		edit(l, "tpus", &berth.CapacityFold{}, func(f *berth.CapacityFold) {
			f.Generation, f.Spec.HysteresisSeconds = 2, ptr.To[int32](6)
		})
		l.wrote("update ClusterQueue, update status CapacityFold")
		l.holds("ClusterQueue", "a", "4")
		edit(l, "a", &kueue.ClusterQueue{}, quotaTo("7"))
		l.wrote("update ClusterQueue, update status CapacityFold")
		l.holds("ClusterQueue", "a", "4")
	})
	t.Run("the same number in other words", func(t *testing.T) {
		l := contest(t)
		edit(l, "tpus", &berth.CapacityFold{}, func(f *berth.CapacityFold) { f.Generation = 2 })
		l.looks()
		edit(l, "a", &kueue.ClusterQueue{}, quotaTo("4000m"))
		l.wrote("")
	})
}

func TestPaused(t *testing.T) {
	l := newLooker(t, queue("a", "", "99"))
	l.create(newFold(into(queueA), func(f *berth.CapacityFold) {
		f.Annotations = map[string]string{berth.AnnotationFoldPaused: "until Monday"}
	}))
	l.wrote("update CapacityFold, update status CapacityFold")
	l.stands(queueA, "Paused", "annotation berth.dev/fold-paused on the CapacityFold says so")
	l.holds("ClusterQueue", "a", "99")
	l.wrote("")
	edit(l, "tpus", &berth.CapacityFold{}, func(f *berth.CapacityFold) { f.Annotations = nil })
	l.wrote("create ResourceFlavor, update ClusterQueue, update status CapacityFold")
	l.holds("ClusterQueue", "a", "4")
	edit(l, "a", &kueue.ClusterQueue{}, func(q *kueue.ClusterQueue) {
		q.Annotations = map[string]string{berth.AnnotationFoldPaused: "yes"}
		quotaTo("7")(q)
	})
	l.wrote("update status CapacityFold")
	l.stands(queueA, "Paused", "annotation berth.dev/fold-paused on it says so")
	l.holds("ClusterQueue", "a", "7")
	// Resumed: what was typed meanwhile is no contest.
	edit(l, "a", &kueue.ClusterQueue{}, func(q *kueue.ClusterQueue) { q.Annotations = nil })
	l.wrote("update ClusterQueue, update status CapacityFold")
	l.holds("ClusterQueue", "a", "4")
	if s := l.fold().Status.Targets[0]; s.Asserted {
		t.Errorf("counted as a contest: %+v", s)
	}
}

func TestLendingLimit(t *testing.T) {
	lend := func(limit string) func(*kueue.ClusterQueue) {
		return func(q *kueue.ClusterQueue) {
			q.Spec.ResourceGroups[0].Flavors[0].Resources[0].LendingLimit = ptr.To(resource.MustParse(limit))
		}
	}
	q := queue("a", "c", "4")
	lend("3500m")(q)
	l := newLooker(t, q)
	l.create(newFold(into(queueA)))
	l.looks()
	l.stands(queueA, "Following", "")
	edit(l, "h0", &corev1.Node{}, broken)
	l.looks()
	l.now = l.now.Add(5 * time.Second)
	l.wrote("update status CapacityFold")
	l.holds("ClusterQueue", "a", "4")
	l.stands(queueA, "LendingLimit", "Kueue refuses a nominalQuota of 2 because the lendingLimit is 3500m: lower that, and the quota follows")
	l.wrote("")
	edit(l, "a", &kueue.ClusterQueue{}, lend("2"))
	l.wrote("update ClusterQueue, update status CapacityFold")
	l.holds("ClusterQueue", "a", "2")
	if s := l.fold().Status.Targets[0]; s.Asserted || s.State != berth.TargetFollowing {
		t.Errorf("%+v", s)
	}
}

func TestRefusedByTheAPIServer(t *testing.T) {
	l := newLooker(t, queue("a", "", "99"))
	refuses := "admission webhook said no"
	l.before = func(wrote string) error {
		if wrote == "update ClusterQueue" && refuses != "" {
			return apierrors.NewForbidden(kueue.Resource("clusterqueues"), "a", errors.New(refuses))
		}
		return nil
	}
	l.create(newFold(into(queueA)))
	if _, again := l.looks(); again != soon {
		t.Errorf("looks again after %s", again)
	}
	wrote, again := l.looks()
	if wrote != "update status CapacityFold" || again != time.Minute {
		t.Errorf("writes %q, and looks again after %s", wrote, again)
	}
	l.stands(queueA, "Refused", `the API server refused the write: clusterqueues.kueue.x-k8s.io "a" is forbidden: admission webhook said no`)
	l.now = l.now.Add(time.Minute - 1)
	l.wrote("")
	// It is tried again for another number, another version of the object, or after a while.
	refuses = ""
	l.now = l.now.Add(1)
	l.wrote("update ClusterQueue, update status CapacityFold")
	l.holds("ClusterQueue", "a", "4")
	l.stands(queueA, "Following", "")
	l.wrote("")
}

func TestTargetsThatAreNotThere(t *testing.T) {
	other := queue("a", "", "1")
	other.Spec.ResourceGroups[0].Flavors[0].Name = "cpus"
	l := newLooker(t, other)
	l.create(newFold(into(queueA, "ClusterQueue b")))
	l.wrote("create ResourceFlavor, update CapacityFold, update status CapacityFold")
	noEntry := "it has no quota for berth.dev/shares of flavor tpu-v5e, and Berth adds none to what it did not create: add the flavor with this resource to spec.resourceGroups, with any nominalQuota"
	if got, want := condition(l.fold().Status, berth.FoldFollowing), "False NoEntry: "+queueA+": "+noEntry+"; ClusterQueue b: there is no ClusterQueue b"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	l.wrote("")
	// What they begin with is no contest.
	l.create(queue("b", "", "5"))
	edit(l, "a", &kueue.ClusterQueue{}, func(q *kueue.ClusterQueue) { q.Spec.ResourceGroups = groups("0") })
	l.wrote("update ClusterQueue, update ClusterQueue, update status CapacityFold")
	for _, s := range l.fold().Status.Targets {
		if s.Quota != 2 || s.Asserted || s.State != berth.TargetFollowing {
			t.Errorf("%+v", s)
		}
	}
	l.holds("ClusterQueue", "a", "2")
	l.holds("ClusterQueue", "b", "2")
}

func TestWeights(t *testing.T) {
	l := newLooker(t, queue("a", "", "99"))
	l.create(newFold(into("Cohort c", queueA), func(f *berth.CapacityFold) { f.Spec.Targets[0].Weight = ptr.To[int32](3) }))
	l.wrote("create Cohort, create ResourceFlavor, update CapacityFold, update ClusterQueue, update status CapacityFold")
	l.holds("Cohort", "c", "3")
	l.holds("ClusterQueue", "a", "1")
	edit(l, "h0", &corev1.Node{}, broken)
	edit(l, "h3", &corev1.Node{}, broken)
	l.looks()
	l.now = l.now.Add(5 * time.Second)
	l.wrote("update ClusterQueue, update Cohort, update status CapacityFold")
	l.holds("Cohort", "c", "0")
	l.holds("ClusterQueue", "a", "0")
	l.stands(queueA, "Following", "")
}

// Somebody typed a number that is no number of shares.
func TestNumberBeyondReason(t *testing.T) {
	l := newLooker(t, queue("a", "", "100G"))
	l.create(newFold(into(queueA)))
	l.wrote("create ResourceFlavor, update CapacityFold, update ClusterQueue, update status CapacityFold")
	l.holds("ClusterQueue", "a", "4")
	if s := l.fold().Status.Targets[0]; s.Previous != nil || s.Quota != 4 {
		t.Errorf("%+v", s)
	}
	l.wrote("")
	wl, _ := l.gang("a", "pair-0", "h0", "h1")
	wl.Status.Admission.ClusterQueue = "a"
	wl.Status.Admission.PodSetAssignments[0].ResourceUsage[shares] = resource.MustParse("100G")
	l.change(wl.Workload)
	l.now = l.now.Add(time.Second)
	l.wrote("update status CapacityFold")
	if s := l.fold().Status.Targets[0]; s.Charged != math.MaxInt32 || s.Quota != 4 {
		t.Errorf("%+v", s)
	}
}

// A Cohort that Berth made gets what a second fold needs, and nothing else of it changes, known or not.
func TestCohortOfOurs(t *testing.T) {
	l := newLooker(t)
	l.create(newFold(func(f *berth.CapacityFold) { f.Spec.DeviceClasses = []string{"quad"} }))
	l.looks()
	cohort := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kindOf(berth.FoldCohort))
		return read(l, "research", u)
	}
	if got := cohort().GetLabels()[berth.LabelFold]; got != "tpus" {
		t.Errorf("labelled %q", got)
	}
	edit(l, "research", &kueue.Cohort{}, func(c *kueue.Cohort) {
		c.Spec.ParentName = "all"
		c.Spec.ResourceGroups[0].Flavors[0].Resources[0].BorrowingLimit = ptr.To(resource.MustParse("1"))
	})
	second := newFold(func(f *berth.CapacityFold) {
		f.Name, f.UID, f.Spec.DeviceClasses, f.Spec.Flavor = "others", "fold-2", []string{"other"}, "tpu-v6"
		f.CreationTimestamp.Time = start
	})
	for _, obj := range moreHardware() {
		l.create(obj)
	}
	l.create(second)
	l.wrote("create ResourceFlavor, update CapacityFold, update Cohort, update status CapacityFold")
	spec, err := json.Marshal(cohort().Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"parentName":"all","resourceGroups":[{"coveredResources":["berth.dev/shares"],"flavors":[` +
		`{"name":"tpu-v5e","resources":[{"borrowingLimit":"1","name":"berth.dev/shares","nominalQuota":"4"}]},` +
		`{"name":"tpu-v6","resources":[{"name":"berth.dev/shares","nominalQuota":"1"}]}]}]}`
	if got := string(spec); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	l.wrote("")
}

// A Cohort of somebody else's is changed in the one number only.
func TestCohortOfTheirs(t *testing.T) {
	c := &kueue.Cohort{}
	c.Name, c.Spec.ParentName, c.Spec.ResourceGroups = "research", "all", groups("9")
	// Kueue lets a Cohort lend more than it has.
	c.Spec.ResourceGroups[0].Flavors[0].Resources[0].LendingLimit = ptr.To(resource.MustParse("9"))
	l := newLooker(t, c)
	l.create(newFold())
	l.wrote("create ResourceFlavor, update CapacityFold, update Cohort, update status CapacityFold")
	l.holds("Cohort", "research", "4")
	if got := read(l, "research", &kueue.Cohort{}); len(got.Labels) > 0 {
		t.Errorf("labelled %v", got.Labels)
	}
	edit(l, "research", &kueue.Cohort{}, func(c *kueue.Cohort) { c.Spec.ResourceGroups = nil })
	l.wrote("update status CapacityFold")
	if got := condition(l.fold().Status, berth.FoldFollowing); !strings.HasPrefix(got, "False NoEntry: Cohort research: it has no quota") {
		t.Error(got)
	}
}

func TestLeaves(t *testing.T) {
	l := newLooker(t, queue("a", "", "99"))
	l.create(newFold(into(queueA, "ClusterQueue b", "Cohort c")))
	l.looks()
	l.events = nil
	if err := l.Delete(t.Context(), l.fold()); err != nil {
		t.Fatal(err)
	}
	l.wrote("update CapacityFold")
	l.said(
		"a: Normal LastValueStays CapacityFold tpus is deleted: 2 berth.dev/shares of flavor tpu-v5e stay, and follow nothing any more",
		"c: Normal LastValueStays CapacityFold tpus is deleted: 1 berth.dev/shares of flavor tpu-v5e stay, and follow nothing any more",
	)
	if err := l.Get(t.Context(), client.ObjectKey{Name: "tpus"}, &berth.CapacityFold{}); !apierrors.IsNotFound(err) {
		t.Errorf("the fold is still there: %v", err)
	}
	l.holds("ClusterQueue", "a", "2")
	l.wrote("")
}

// What is told once is not told of a number that the cache alone still has.
func TestLeavesWithALateCache(t *testing.T) {
	l := newLooker(t, queue("a", "", "99"))
	l.create(newFold(into(queueA)))
	l.looks()
	l.holds("ClusterQueue", "a", "4")
	l.events = nil
	if err := l.Delete(t.Context(), l.fold()); err != nil {
		t.Fatal(err)
	}
	l.reconciler.Client = interceptor.NewClient(l.reconciler.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := inner.List(ctx, list, opts...)
			if queues, is := list.(*kueue.ClusterQueueList); is {
				for i := range queues.Items {
					queues.Items[i].Spec = queue("a", "", "99").Spec
				}
			}
			return err
		},
	})
	l.looks()
	l.said("a: Normal LastValueStays CapacityFold tpus is deleted: 4 berth.dev/shares of flavor tpu-v5e stay, and follow nothing any more")
}

// A changed spec leaves numbers behind: they stay as those of a deleted fold do, and their targets say so once.
func TestLeavesBehind(t *testing.T) {
	l := newLooker(t, queue("a", "", "99"))
	l.create(newFold(into(queueA, "Cohort c")))
	l.looks()
	change := func(how func(*berth.CapacityFold)) {
		t.Helper()
		l.events = nil
		edit(l, "tpus", &berth.CapacityFold{}, func(f *berth.CapacityFold) {
			f.Generation++
			how(f)
		})
		l.looks()
	}
	behind := func(want ...string) {
		t.Helper()
		l.events = slices.DeleteFunc(l.events, func(e string) bool { return !strings.Contains(e, eventStays) })
		l.said(want...)
	}
	const says = ": Normal LastValueStays CapacityFold tpus is changed: 2 berth.dev/shares of flavor tpu-v5e stay, and do not follow it any more"
	change(func(f *berth.CapacityFold) { f.Spec.HysteresisSeconds = ptr.To[int32](7) })
	behind()
	change(func(f *berth.CapacityFold) { f.Spec.Flavor = "tpu-v6" })
	behind("a"+says, "c"+says)
	change(func(f *berth.CapacityFold) { f.Spec.DeviceClasses = append(f.Spec.DeviceClasses, "unknown") })
	behind()
	change(func(f *berth.CapacityFold) {
		f.Spec.Flavor, f.Spec.DeviceClasses = "tpu-v5e", newFold().Spec.DeviceClasses
	})
	behind("c" + strings.ReplaceAll(says, "v5e", "v6"))
	l.restart()
	change(into(queueA))
	behind("c" + says)
	l.looks()
	behind()
}

// A fold that never wrote leaves nothing behind, and says nothing.
func TestLeavesWithoutATrace(t *testing.T) {
	l := newLooker(t, queue("a", "", "99"))
	l.create(newFold(into(queueA), func(f *berth.CapacityFold) { f.Spec.DeviceClasses = []string{"unknown"} }))
	l.wrote("update CapacityFold, update status CapacityFold")
	if err := l.Delete(t.Context(), l.fold()); err != nil {
		t.Fatal(err)
	}
	l.wrote("update CapacityFold")
	l.said()
}
