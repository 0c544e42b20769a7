package line

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
)

const both = "checks berth and berth2 are both Berth's and both apply: leave one of them in ClusterQueue research"

// second puts another check of Berth's on a Workload, before the one that is there.
func (s *site) second(w kueuetest.Workload) {
	if len(s.AdmissionChecks) == 1 {
		s.AdmissionChecks = append(s.AdmissionChecks, kueuetest.NewCheck("berth2"))
	}
	state := kueue.AdmissionCheckState{Name: "berth2", State: kueue.CheckStatePending, LastTransitionTime: metav1.NewTime(kueuetest.Start)}
	w.Status.AdmissionChecks = append([]kueue.AdmissionCheckState{state}, w.Status.AdmissionChecks...)
}

// A gang under two checks of Berth's gets nothing and is told why, on both; the others have their turn.
func TestSeveralChecks(t *testing.T) {
	s := newSite()
	w := s.waits("a")
	s.second(w)
	s.waits("b")
	got := s.pass()
	if len(got.reserve) != 1 || got.reserve[0].Spec.WorkloadRef.Name != "job-b" || got.waiting["TooManyChecks"] != 1 || len(got.answers) != 1 {
		t.Fatalf("the pass says\n%s\n%v", got.tell(), got.waiting)
	}
	a := got.answers[0].answer
	if a.State != kueue.CheckStatePending || a.Reason != "TooManyChecks" || a.Message != both || !a.ForAll ||
		a.Check != "berth2" || len(a.Beside) != 1 || a.Beside[0] != "berth" {
		t.Errorf("%+v", a)
	}
	for i := range w.Status.AdmissionChecks {
		w.Status.AdmissionChecks[i].Message = both
	}
	w.Condition(berth.ConditionGangReserved, false, now)
	w.Status.Conditions[1].Reason, w.Status.Conditions[1].Message = a.Reason, a.Message
	if again := s.pass(); len(again.answers) != 0 {
		t.Errorf("it is told again: %s", again.tell())
	}
	// The administrator takes one away: Kueue drops it from the Workload.
	w.Status.AdmissionChecks = w.Status.AdmissionChecks[1:]
	if again := s.pass(); len(again.reserve) != 2 {
		t.Errorf("the pass says\n%s", again.tell())
	}
}

// Who asks for nothing of Berth's is told as well, and is let go when it is clear whose the check is.
func TestSeveralChecksOfAGangThatAsksForNothing(t *testing.T) {
	s := newSite()
	w := s.waits("a", unclaimed)
	s.second(w)
	if got := s.pass().answers; len(got) != 1 || got[0].answer.Reason != "TooManyChecks" {
		t.Fatalf("the answers are %v", got)
	}
	w.Condition(berth.ConditionGangReserved, false, now)
	w.Status.Conditions[1].Reason, w.Status.Conditions[1].Message = "TooManyChecks", both
	w.Status.AdmissionChecks = w.Status.AdmissionChecks[1:]
	s.passes(t, "a Ready NothingManaged: the gang asks for no device that Berth manages")
}

// Kueue is left to set all checks back.
func TestSeveralChecksOnTheWayOut(t *testing.T) {
	for _, state := range []kueue.CheckState{kueue.CheckStateRetry, kueue.CheckStateRejected} {
		s := newSite()
		s.second(s.waits("a").State(state))
		s.passes(t, "")
	}
}

// A check that comes later costs a gang its slice only while it does not run.
func TestASecondCheckComesLater(t *testing.T) {
	for _, row := range []struct {
		name     string
		admitted bool
		lost     string
	}{
		{"before admission", false, "TooManyChecks: " + both},
		{"it runs", true, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := newJudged(t)
			w := kueuetest.Workload{Workload: j.Workloads[0]}.Named(j.res.Name)
			if row.admitted {
				w.Admitted()
			}
			j.second(w)
			if got := j.verdict(); got != row.lost {
				t.Errorf("lost: %q, want %q", got, row.lost)
			}
			got := j.pass()
			if row.admitted {
				if got.tell() != "" || len(got.reserve) != 0 {
					t.Errorf("a gang that runs is told %s", got.tell())
				}
				return
			}
			if len(got.answers) != 1 || !got.answers[0].answer.ForAll || got.answers[0].answer.Check != kueuetest.Check {
				t.Errorf("the pass says\n%s", got.tell())
			}
		})
	}
	// One that is gone again is a verdict taken back.
	j := newJudged(t)
	w := kueuetest.Workload{Workload: j.Workloads[0]}.Named(j.res.Name)
	r := &reconciler{Options: Options{Board: verdict.NewBoard()}}
	j.second(w)
	r.judge(j.view())
	w.Status.AdmissionChecks = w.Status.AdmissionChecks[1:]
	r.judge(j.view())
	if lost := r.Board.Lost(types.NamespacedName{Namespace: j.res.Namespace, Name: j.res.Name}); lost != nil {
		t.Error(lost)
	}
}

// The sentence names all of them, and no queue where there is none.
func TestThreeChecks(t *testing.T) {
	s := newSite()
	w := s.waits("a")
	s.second(w)
	s.AdmissionChecks = append(s.AdmissionChecks, kueuetest.NewCheck("a3"))
	w.Status.AdmissionChecks = append(w.Status.AdmissionChecks, kueue.AdmissionCheckState{Name: "a3", State: kueue.CheckStatePending})
	w.Status.Admission = nil
	want := "checks a3, berth and berth2 are all Berth's and all apply: leave one of them in its ClusterQueue"
	if got := adaptkueue.OurChecks(s.AdmissionChecks).Several(w.Workload); got == nil || got.Message != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
