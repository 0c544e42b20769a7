package fold

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

var errGone = errors.New("connection lost")

// A process that dies between the status and the target leaves a number that the next one knows as Berth's.
func TestDiesBeforeTheTargetIsWritten(t *testing.T) {
	l := newLooker(t, queue("a", "", "99"))
	l.create(newFold(into(queueA)))
	l.looks()
	edit(l, "h0", &corev1.Node{}, broken)
	l.looks()
	l.now = l.now.Add(5 * time.Second)
	l.before = func(wrote string) error {
		if wrote == "update ClusterQueue" {
			return errGone
		}
		return nil
	}
	l.wrote("error writing ClusterQueue a: connection lost, update ClusterQueue, update status CapacityFold")
	if s := l.fold().Status.Targets[0]; s.Quota != 2 || ptr.Deref(s.Previous, -1) != 4 {
		t.Errorf("remembers %+v", s)
	}
	l.restart()
	l.before = nil
	l.wrote("update ClusterQueue")
	l.holds("ClusterQueue", "a", "2")
	if s := l.fold().Status.Targets[0]; s.Asserted {
		t.Errorf("taken for somebody else's: %+v", s)
	}
	// Once it came true the former number is nobody's: who restores it is somebody.
	l.wrote("")
	edit(l, "a", &kueue.ClusterQueue{}, quotaTo("4"))
	l.wrote("update ClusterQueue, update status CapacityFold")
	if s := l.fold().Status.Targets[0]; !s.Asserted {
		t.Errorf("not noticed: %+v", s)
	}
}

// Nothing is written into a target whose fold cannot remember it.
func TestStatusThatCannotBeWritten(t *testing.T) {
	l := newLooker(t, queue("a", "", "99"))
	l.create(newFold(into(queueA)))
	l.before = func(wrote string) error {
		if wrote == "update status CapacityFold" {
			return errGone
		}
		return nil
	}
	l.wrote("create ResourceFlavor, error writing the status of CapacityFold tpus: connection lost, update CapacityFold, update status CapacityFold")
	l.holds("ClusterQueue", "a", "99")
	l.said("tpus: Normal FlavorCreated ResourceFlavor tpu-v5e")
	l.before = nil
	l.wrote("update ClusterQueue, update status CapacityFold")
	l.said("tpus: Normal CapacityRose 4 berth.dev/shares of flavor tpu-v5e, 0 before")
}

func TestLostRaces(t *testing.T) {
	race := func(t *testing.T, times int, change func(*kueue.ClusterQueue)) *looker {
		l := newLooker(t, queue("a", "", "99"))
		l.create(newFold(into(queueA)))
		l.looks()
		edit(l, "h0", &corev1.Node{}, broken)
		l.looks()
		l.now = l.now.Add(5 * time.Second)
		l.before = func(wrote string) error {
			if wrote == "update ClusterQueue" && times > 0 {
				times--
				edit(l, "a", &kueue.ClusterQueue{}, change)
			}
			return nil
		}
		return l
	}
	labelled := 0
	label := func(q *kueue.ClusterQueue) {
		labelled++
		q.Labels = map[string]string{"edit": string(rune('a' + labelled))}
	}
	t.Run("for another field", func(t *testing.T) {
		l := race(t, 2, label)
		l.wrote("update ClusterQueue, update ClusterQueue, update ClusterQueue, update ClusterQueue, update ClusterQueue, update status CapacityFold")
		l.holds("ClusterQueue", "a", "2")
		if got := read(l, "a", &kueue.ClusterQueue{}).Labels["edit"]; got != string(rune('a'+labelled)) {
			t.Errorf("the edit is lost: %q", got)
		}
		l.wrote("")
	})
	t.Run("again and again", func(t *testing.T) {
		l := race(t, attempts, label)
		if _, again := l.looks(); again != soon {
			t.Errorf("looks again after %s", again)
		}
		l.holds("ClusterQueue", "a", "4")
		l.wrote("update ClusterQueue")
		l.holds("ClusterQueue", "a", "2")
	})
	t.Run("for the number", func(t *testing.T) {
		l := race(t, 1, quotaTo("7"))
		if _, again := l.looks(); again != soon {
			t.Errorf("looks again after %s", again)
		}
		l.holds("ClusterQueue", "a", "7")
		l.wrote("update ClusterQueue, update status CapacityFold")
		l.holds("ClusterQueue", "a", "2")
		if s := l.fold().Status.Targets[0]; !s.Asserted {
			t.Errorf("not noticed: %+v", s)
		}
	})
	t.Run("for the same number", func(t *testing.T) {
		l := race(t, 1, quotaTo("2"))
		l.looks()
		l.wrote("")
		l.holds("ClusterQueue", "a", "2")
		if s := l.fold().Status.Targets[0]; s.Asserted || s.State != berth.TargetFollowing {
			t.Errorf("%+v", s)
		}
	})
	t.Run("it is deleted", func(t *testing.T) {
		l := race(t, 0, nil)
		l.before = func(wrote string) error {
			if wrote == "update ClusterQueue" {
				if err := l.Delete(t.Context(), read(l, "a", &kueue.ClusterQueue{})); err != nil {
					return err
				}
				return apierrors.NewNotFound(kueue.Resource("clusterqueues"), "a")
			}
			return nil
		}
		if _, again := l.looks(); again != soon {
			t.Errorf("looks again after %s", again)
		}
		l.wrote("update status CapacityFold")
		l.stands(queueA, "Missing", "there is no ClusterQueue a")
	})
	t.Run("for the status", func(t *testing.T) {
		l := race(t, 0, nil)
		l.before = func(wrote string) error {
			if wrote == "update status CapacityFold" {
				return apierrors.NewConflict(berth.GroupVersion.WithResource("capacityfolds").GroupResource(), "tpus", errors.New("changed"))
			}
			return nil
		}
		if wrote, again := l.looks(); wrote != "update status CapacityFold" || again != soon {
			t.Errorf("writes %q, looks again after %s", wrote, again)
		}
		l.holds("ClusterQueue", "a", "4")
	})
}

// A restart neither raises nor lowers a number: a fall is seen twice by one process.
func TestRestart(t *testing.T) {
	l := newLooker(t)
	l.create(newFold())
	l.looks()
	edit(l, "h1", &corev1.Node{}, broken)
	l.restart()
	if wrote, again := l.looks(); wrote != "" || again != 5*time.Second {
		t.Errorf("writes %q, and looks again after %s", wrote, again)
	}
	l.now = l.now.Add(4 * time.Second)
	l.restart()
	if wrote, again := l.looks(); wrote != "" || again != 5*time.Second {
		t.Errorf("writes %q, and looks again after %s", wrote, again)
	}
	l.holds("Cohort", "research", "4")
	l.now = l.now.Add(5 * time.Second)
	l.wrote("update Cohort, update status CapacityFold")
	l.holds("Cohort", "research", "2")
}

// The cache is late: it shows the number from before the last write, which happens to be the one that is to be written again.
func TestStaleCache(t *testing.T) {
	t.Run("of the same process", func(t *testing.T) { staleCache(t, false) })
	t.Run("of the next process", func(t *testing.T) { staleCache(t, true) })
}

func staleCache(t *testing.T, restarts bool) {
	l := newLooker(t, queue("a", "", "99"))
	l.create(newFold(into(queueA)))
	l.looks()
	stale := read(l, "a", &kueue.ClusterQueue{})
	edit(l, "h0", &corev1.Node{}, broken)
	l.later(5 * time.Second)
	l.holds("ClusterQueue", "a", "2")
	edit(l, "a", &kueue.ClusterQueue{}, func(q *kueue.ClusterQueue) { q.Generation = 2 }) // As the API server counts.
	l.kept["fold-1"].target(targetName{berth.FoldClusterQueue, "a"}).newest.generation = 2
	l.Dependencies.Client = late{l.Client, stale}
	edit(l, "h0", &corev1.Node{}, sound)
	l.before = func(wrote string) error {
		if wrote == "update ClusterQueue" {
			return errGone
		}
		return nil
	}
	l.wrote("error writing ClusterQueue a: connection lost, update ClusterQueue, update status CapacityFold")
	l.before = nil
	if restarts {
		l.restart()
		l.Dependencies.Client = late{l.Client, stale}
	}
	l.wrote("update ClusterQueue")
	l.holds("ClusterQueue", "a", "4")
	if s := l.fold().Status.Targets[0]; s.Asserted {
		t.Errorf("taken for somebody else's: %+v", s)
	}
}
