package line

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/placement"
)

// carryOut makes the site what it is after a pass: reservations are served at once, targets stand, and what is dropped is gone.
func (s *site) carryOut(t *testing.T) steps {
	t.Helper()
	got := s.pass()
	for i, res := range got.reserve {
		res.UID, res.Status.Phase = types.UID(fmt.Sprintf("uid-%s-%d", res.Name, i)), berth.PhaseReserved
		s.Reservations = append(s.Reservations, res)
	}
	for _, p := range got.targets {
		if p.res.UID == "" {
			p.res.UID = types.UID("uid-" + p.res.Name)
			s.Reservations = append(s.Reservations, p.res)
		}
		p.res.Status.Phase = berth.PhasePlanned
		apimeta.SetStatusCondition(&p.res.Status.Conditions, metav1.Condition{Type: berth.ReservationProgressing, Status: "True", Message: p.message})
	}
	s.Reservations = slices.DeleteFunc(s.Reservations, func(r *berth.GangReservation) bool { return slices.Contains(got.drop, r) })
	return got
}

// ends takes a gang away with what it held.
func (s *site) ends(name string) {
	s.Workloads = slices.DeleteFunc(s.Workloads, func(wl *kueue.Workload) bool { return wl.Name == "job-"+name })
	s.Reservations = slices.DeleteFunc(s.Reservations, func(r *berth.GangReservation) bool {
		return r.Spec.WorkloadRef.Name == "job-"+name && r.Holds()
	})
}

// goes has the release of a reservation begin some time before the pass, and not come to its end.
func (s *site) goes(res *berth.GangReservation, before time.Duration) {
	res.Status.Phase = berth.PhaseReleasing
	claim := ours(res)
	claim.DeletionTimestamp = &metav1.Time{Time: now.Add(-before)}
	s.ResourceClaims = append(s.ResourceClaims, claim)
}

// slices of 4x4 for one gang.
func ofSlices(n int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.Parallelism, j.Spec.Completions = ptr.To(4*n), ptr.To(4*n)
		j.Spec.Template.Annotations = map[string]string{berth.AnnotationSlices: fmt.Sprint(n)}
	}
}

// policy gives the check a configuration.
func (s *site) policy(p berth.BackfillPolicy) {
	s.AdmissionChecks[0].Spec.Parameters = &kueue.AdmissionCheckParametersReference{Name: "config"}
	s.Configs = []*berth.GangReservationConfig{{ObjectMeta: metav1.ObjectMeta{Name: "config"}, Spec: berth.GangReservationConfigSpec{Backfill: p}}}
}

// full is a site whose four slices are held by a, b, c and d, while e waits.
func full(t *testing.T) *site {
	t.Helper()
	s := newSite()
	for _, name := range []string{"a", "b", "c", "d"} {
		s.waits(name)
	}
	s.carryOut(t)
	s.waits("e")
	return s
}

// A target of several slices in the racks of an interconnect stands as well: what is read back is what would be written.
func TestTargetInRacksStands(t *testing.T) {
	s := newSite()
	s.AcceleratorPools[0].Spec.Interconnect = &berth.Interconnect{NodeLabel: "example.com/rack"}
	for i, n := range s.Nodes {
		n.Labels["example.com/rack"] = fmt.Sprint("r", i/8)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		s.waits(name)
	}
	s.carryOut(t)
	s.waits("e", ofSlices(2))
	if got := s.carryOut(t); len(got.targets) != 1 || len(got.targets[0].res.Spec.PodSets[0].Claims[0].Devices) != 2 {
		t.Fatal(got.tell())
	}
	for range 3 {
		if again := s.carryOut(t); len(again.targets) > 0 || len(again.drop) > 0 {
			t.Errorf("nothing changed, and %s", again.tell())
		}
	}
}

func TestTargetIsWrittenDown(t *testing.T) {
	s := full(t)
	got := s.carryOut(t)
	if len(got.targets) != 1 || len(got.drop) > 0 || len(got.reserve) > 0 {
		t.Fatal(got.tell())
	}
	p := got.targets[0]
	epoch := epochOf(s, 4)
	if want := "job-e-" + epoch + "-target-"; !strings.HasPrefix(p.res.Name, want) || len(p.res.Name) != len(want)+8 {
		t.Errorf("it is named %s", p.res.Name)
	}
	spec := p.res.Spec
	if !spec.Target || spec.Lent || spec.Epoch != epoch || len(p.res.Finalizers) > 0 || spec.WorkloadRef.Name != "job-e" {
		t.Errorf("%+v with finalizers %v", spec, p.res.Finalizers)
	}
	if d := spec.PodSets[0].Claims[0].Devices[0]; d.Pool != "pod-a" || d.Device != "tpu-4x4-00" || len(d.Hosts) != 4 {
		t.Errorf("%+v is kept", d)
	}
	if want := "waits for pod-a/tpu-4x4-00: drains when ml/job-a-" + epochOf(s, 0) + " ends"; p.message != want {
		t.Errorf("\n got %s\nwant %s", p.message, want)
	}
	// It holds nothing and is no phase of anything else.
	if held := s.view().hostsHeld(); held[string(s.Workloads[0].Status.Admission.ClusterQueue)] != 16 {
		t.Errorf("held %v", held)
	}
	if got := s.view().phases(); got["Planned"] != 1 || got["Reserved"] != 4 {
		t.Errorf("phases %v", got)
	}
	if again := s.carryOut(t); len(again.targets) > 0 || len(again.drop) > 0 {
		t.Errorf("nothing changed, and %s", again.tell())
	}
	// Half a write: the status is made up for.
	p.res.Status = berth.GangReservationStatus{}
	if again := s.carryOut(t); len(again.targets) != 1 || again.targets[0].res != p.res {
		t.Errorf("%s", again.tell())
	}
}

// A target is read and not computed again: it stays although another slice will be free sooner.
func TestTargetSurvivesARestart(t *testing.T) {
	s := full(t)
	kept := s.carryOut(t).targets[0].res
	s.Workloads[2].Spec.MaximumExecutionTimeSeconds = ptr.To[int32](3601) // c has a second left
	s.Workloads[2].Status.Conditions = append(s.Workloads[2].Status.Conditions, metav1.Condition{
		Type: kueue.WorkloadAdmitted, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(kueuetest.Start),
	})
	if got := s.carryOut(t); len(got.targets) > 0 || len(got.drop) > 0 {
		t.Errorf("%s", got.tell())
	}
	s.Reservations = slices.DeleteFunc(s.Reservations, func(r *berth.GangReservation) bool { return r == kept })
	if got := s.carryOut(t).tell(); !strings.HasSuffix(got, "e keeps pod-b/tpu-4x4-00\nagain in 15m2s") {
		t.Errorf("without the target it is\n%s", got)
	}
}

func TestTargetIsDropped(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(s *site, wl *kueue.Workload, target *berth.GangReservation)
		want   string
	}{
		{"nothing happened", func(*site, *kueue.Workload, *berth.GangReservation) {}, ""},
		{"the gang is gone", func(s *site, wl *kueue.Workload, _ *berth.GangReservation) {
			s.Workloads = slices.DeleteFunc(s.Workloads, func(o *kueue.Workload) bool { return o == wl })
		}, "drops OLD"},
		{"evicted", func(_ *site, wl *kueue.Workload, _ *berth.GangReservation) {
			kueuetest.Workload{Workload: wl}.Evicted()
		}, "drops OLD"},
		{"admitted anew", func(_ *site, wl *kueue.Workload, _ *berth.GangReservation) {
			kueuetest.Workload{Workload: wl}.QuotaReserved(kueuetest.Start.Add(time.Minute))
		}, "drops OLD, e keeps pod-a/tpu-4x4-00"},
		{"another check", func(_ *site, _ *kueue.Workload, target *berth.GangReservation) { target.Spec.Check = "former" }, "drops OLD"},
		{"placed", func(s *site, _ *kueue.Workload, _ *berth.GangReservation) { s.ends("b") }, "drops OLD, e reserves pod-a/tpu-4x4-01"},
		{"placed where it was to be", func(s *site, _ *kueue.Workload, _ *berth.GangReservation) { s.ends("a") }, "drops OLD, e reserves pod-a/tpu-4x4-00"},
		{"no targets are kept any more", func(s *site, _ *kueue.Workload, _ *berth.GangReservation) {
			s.policy(berth.BackfillPolicy{Targets: berth.TargetNone})
		}, "drops OLD"},
		{"its hardware is out of use", func(s *site, _ *kueue.Workload, _ *berth.GangReservation) { s.Nodes[0].Spec.Unschedulable = true }, "drops OLD, e keeps pod-a/tpu-4x4-01"},
		{"somebody deletes it", func(_ *site, _ *kueue.Workload, target *berth.GangReservation) {
			target.DeletionTimestamp, target.Finalizers = ptr.To(metav1.Now()), []string{"somebody's"}
		}, "e keeps pod-a/tpu-4x4-00"},
		{"its holder is going", func(s *site, _ *kueue.Workload, _ *berth.GangReservation) { s.goes(s.Reservations[0], time.Minute) }, ""},
		{"its holder is going and does not come to its end", func(s *site, _ *kueue.Workload, _ *berth.GangReservation) {
			s.goes(s.Reservations[0], time.Hour)
		}, "drops OLD, e keeps pod-a/tpu-4x4-01"},
		{"its pool is not fenced", func(s *site, _ *kueue.Workload, _ *berth.GangReservation) {
			s.unfenced["pod-a"] = formerFirst()
		}, "drops OLD, e keeps pod-b/tpu-4x4-00"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := full(t)
			target := s.carryOut(t).targets[0].res
			row.change(s, s.Workloads[4], target)
			var told []string
			for line := range strings.SplitSeq(s.pass().tell(), "\n") {
				if strings.Contains(line, "drops") || strings.Contains(line, "keeps") || strings.Contains(line, "reserves") {
					told = append(told, strings.Replace(line, target.Name, "OLD", 1))
				}
			}
			slices.Sort(told)
			want := strings.Split(row.want, ", ")
			slices.Sort(want)
			if got := strings.Join(told, ", "); got != strings.Join(want, ", ") {
				t.Errorf("it\n     %s\nwant %s", got, strings.Join(want, ", "))
			}
		})
	}
}

// holder is how a message names a gang that holds something.
var holder = regexp.MustCompile("ml/job-([a-z]+)-[0-9a-f]{10}")

func TestBackfillPolicy(t *testing.T) {
	// a holds a slice; big waits for all four; late comes then.
	begin := func(p berth.BackfillPolicy) *site {
		s := newSite()
		s.policy(p)
		s.waits("a")
		return s
	}
	told := func(t *testing.T, s *site) string {
		t.Helper()
		return strings.ReplaceAll(s.carryOut(t).tell(), "\n", ", ")
	}
	big := func(s *site, priority int32) {
		s.waits("big", ofSlices(4)).Queued(kueuetest.Start.Add(time.Minute)).Priority(priority)
	}
	small := func(s *site, name string) kueuetest.Workload {
		return s.waits(name).Queued(kueuetest.Start.Add(2 * time.Minute))
	}
	drains := func(holders string) string {
		return "big Pending NoFreeSlice: 4 tpu-4x4 are needed and only 3 are free: 1 of 4 is held by a; waits for " +
			"pod-a/tpu-4x4-00, pod-a/tpu-4x4-01, pod-b/tpu-4x4-00 and 1 more: drains when " + holders + ", big keeps pod-a/tpu-4x4-00"
	}
	kept, shared := drains("a ends"), drains("late, a end")
	for _, row := range []struct {
		name     string
		policy   berth.BackfillPolicy
		priority int32
		change   func(s *site, late kueuetest.Workload)
		want     string
	}{
		{name: "kept by default", want: kept + ", late Pending WaitingTurn: what is free is kept for ml/job-big"},
		{name: "nothing is kept", policy: berth.BackfillPolicy{Targets: berth.TargetNone},
			want: "big Pending NoFreeSlice: 4 tpu-4x4 are needed and only 3 are free: 1 of 4 is held by a, late reserves pod-a/tpu-4x4-01"},
		{name: "an assumed end lets in who has a known one", policy: berth.BackfillPolicy{AssumedSeconds: ptr.To[int32](7200)},
			change: func(_ *site, late kueuetest.Workload) { late.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](7000) },
			want:   shared + ", late reserves pod-a/tpu-4x4-01, again in 2h15m1s"},
		{name: "and nobody who has none", policy: berth.BackfillPolicy{AssumedSeconds: ptr.To[int32](7200)},
			want: kept + ", late Pending WaitingTurn: what is free is kept for ml/job-big, again in 2h15m1s"},
		{name: "nor who ends too late", policy: berth.BackfillPolicy{AssumedSeconds: ptr.To[int32](7200)},
			change: func(_ *site, late kueuetest.Workload) { late.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](7300) },
			want:   kept + ", late Pending WaitingTurn: what is free is kept for ml/job-big, again in 2h15m1s"},
		{name: "time that was used up counts", policy: berth.BackfillPolicy{AssumedSeconds: ptr.To[int32](7200)},
			change: func(_ *site, late kueuetest.Workload) {
				late.Spec.MaximumExecutionTimeSeconds, late.Status.AccumulatedPastExecutionTimeSeconds = ptr.To[int32](7300), ptr.To[int32](300)
			},
			want: shared + ", late reserves pod-a/tpu-4x4-01, again in 2h15m1s"},
		{name: "lent to lower priority", policy: berth.BackfillPolicy{Evict: berth.EvictLowerPriority}, priority: 1,
			want: shared + ", late reserves pod-a/tpu-4x4-01 (lent)"},
		{name: "not to equal priority", policy: berth.BackfillPolicy{Evict: berth.EvictLowerPriority},
			want: kept + ", late Pending WaitingTurn: what is free is kept for ml/job-big"},
		{name: "not by default", priority: 1, want: kept + ", late Pending WaitingTurn: what is free is kept for ml/job-big"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := begin(row.policy)
			s.carryOut(t)
			big(s, row.priority)
			late := small(s, "late")
			if row.change != nil {
				row.change(s, late)
			}
			if got := holder.ReplaceAllString(told(t, s), "$1"); got != row.want {
				t.Errorf("the pass says\n%s\nand should say\n%s", got, row.want)
			}
		})
	}
}

// What was lent goes back when nothing else is in the way.
func TestLentIsRecalled(t *testing.T) {
	s := newSite()
	s.policy(berth.BackfillPolicy{Evict: berth.EvictLowerPriority})
	s.waits("a")
	s.carryOut(t)
	s.waits("big", ofSlices(4)).Priority(1)
	s.waits("late").Queued(kueuetest.Start.Add(time.Minute))
	s.carryOut(t)
	late := s.Reservations[slices.IndexFunc(s.Reservations, func(r *berth.GangReservation) bool { return r.Spec.Lent })]
	if got := s.carryOut(t).recalls; len(got) != 2 || got[types.NamespacedName{Namespace: "ml", Name: late.Name}] != nil {
		t.Errorf("recalls %v", got)
	}
	s.ends("a")
	got := s.carryOut(t)
	want := "Recalled: the slice was lent to the gang until ml/job-big needs it, and all else that it waits for is free"
	if why := got.recalls[types.NamespacedName{Namespace: "ml", Name: late.Name}]; why == nil || why.Error() != want {
		t.Errorf("\n got %v\nwant %s", why, want)
	}
	late.Status.Phase = berth.PhaseReleasing
	if got := s.carryOut(t).recalls; len(got) != 0 {
		t.Errorf("recalls %v", got)
	}
}

// Classes count by what was asked of them, also after a restart.
func TestDemandOfThePass(t *testing.T) {
	s := full(t)
	s.demand = true
	v := s.view()
	decide(v, placement.FirstFit{})
	if got := v.world.Demand; len(got) != 1 || got["tpu-4x4"] != 1 {
		t.Errorf("demand %v", got)
	}
	if !v.demand.Serves("wl-a") || v.demand.Serves("wl-e") {
		t.Error("a holds something and e waits")
	}
	if _, refusal := adaptkueue.Read(s.Workloads[0], v.lookup); refusal != nil {
		t.Error(refusal)
	}
}

// A change that helps nobody is told to those near the head of the line and costs no write to those behind them.
func TestFarBackNothingIsWritten(t *testing.T) {
	s := full(t)
	for i := range 40 {
		s.waits(fmt.Sprintf("f%02d", i)).Queued(kueuetest.Start.Add(time.Duration(i+1) * time.Minute))
	}
	heard := func(got steps) int {
		for _, a := range got.answers {
			a.workload.Status.AdmissionChecks[0].Message = a.answer.Message
			apimeta.SetStatusCondition(&a.workload.Status.Conditions, metav1.Condition{
				Type: berth.ConditionGangReserved, Status: metav1.ConditionFalse, Reason: a.answer.Reason, Message: a.answer.Message,
			})
		}
		return len(got.answers)
	}
	if got := heard(s.carryOut(t)); got != 41 {
		t.Errorf("%d are told at first", got)
	}
	if got := heard(s.carryOut(t)); got != 0 {
		t.Errorf("nothing changed, and %d are told", got)
	}
	// e, the first of them, gets what a leaves.
	s.ends("a")
	if got := s.carryOut(t); len(got.reserve) != 1 || heard(got) != 32 {
		t.Errorf("%d begin and %d are told", len(got.reserve), len(got.answers))
	}
	if got := heard(s.carryOut(t)); got != 0 {
		t.Errorf("nothing changed, and %d are told", got)
	}
}

// Everything that a gang has in the ledger is known as its own: its devices, its pods, and the room of pods to come. What
// is not counts as foreign, and no target would be kept where it stands.
func TestRunningOwnsAllItHas(t *testing.T) {
	s := full(t)
	res := s.Reservations[1]
	pod := kueuetest.NewPod(res, 2)
	pod.Spec.NodeName, pod.Status.Phase = jobs.NodesOf(res.Spec.PodSets[0])[2], corev1.PodRunning
	s.Pods = append(s.Pods, pod)
	v := s.view()
	owners, pods := map[string]bool{}, map[string]bool{}
	for _, r := range v.running() {
		owners[r.Owner] = true
		for _, p := range r.Pods {
			pods[p] = true
		}
	}
	for _, h := range v.world.Ledger.Holdings() {
		if !owners[h.Owner] {
			t.Errorf("%s is held by %s, which nobody is", h.Device, h.Owner)
		}
	}
	seen := 0
	for _, host := range v.world.Inventory.Hosts() {
		for _, p := range v.world.Ledger.Blockers(host) {
			if seen++; !pods[p] {
				t.Errorf("%s stands on %s, and is nobody's", p, host)
			}
		}
	}
	if seen != 16 || !pods[pod.Namespace+"/"+pod.Name] {
		t.Errorf("%d pods and seats", seen)
	}
}
