package pool

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/snapshot"
)

const driver = "tpu.example.com"

var start = time.Unix(1000, 0)

// report says of policies by name, and of AcceleratorPools after a slash, whether they are in force.
func report(verdicts map[string]policy.Verdict) policy.Report {
	var r policy.Report
	for _, name := range []string{"claims", "pods"} {
		v, said := verdicts[name]
		if !said {
			v = policy.InForce
		}
		r.Findings = append(r.Findings, policy.Finding{Policy: name, Verdict: v, Message: "said"})
	}
	for _, pool := range []string{driver, "other"} {
		if v, said := verdicts["/"+pool]; said {
			r.Findings = append(r.Findings, policy.Finding{Policy: "claim-status", AcceleratorPool: pool, Verdict: v, Message: "said"})
		}
	}
	return r
}

func poolAt(generation int64) *berth.AcceleratorPool {
	p := dratest.Pool(driver)
	p.UID, p.Generation = "pool", generation
	return p
}

func told(r *reason.Refusal) string {
	if r == nil {
		return ""
	}
	return r.Error()
}

func TestFence(t *testing.T) {
	f := NewFence()
	woken := func() bool {
		select {
		case <-f.Changed():
			return true
		default:
			return false
		}
	}
	probed := func() bool {
		select {
		case <-f.Probed():
			return true
		default:
			return false
		}
	}
	if probed() || woken() {
		t.Error("there is news before the first probe")
	}
	if got, want := told(f.NotInForce()), "NotFenced: the admission policies have not been probed yet"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	const up = policy.InForce
	for i, step := range []struct {
		report     map[string]policy.Verdict
		generation int64
		wakes      bool
		policies   string
		pool       string
		failing    time.Duration // since start; -1 for not at all
	}{
		{map[string]policy.Verdict{"claims": policy.Absent, "pods": policy.Unclear, "/" + driver: policy.Absent}, 1, true,
			"NotFenced: the admission policies are not in force: claims is Absent: said (and 1 more)", "NotFenced: the fence of AcceleratorPool tpu.example.com is not in force yet", 0},
		{map[string]policy.Verdict{"claims": policy.Absent, "pods": policy.Unclear, "/" + driver: policy.Absent}, 1, false,
			"NotFenced: the admission policies are not in force: claims is Absent: said (and 1 more)", "NotFenced: the fence of AcceleratorPool tpu.example.com is not in force yet", 0},
		{map[string]policy.Verdict{"claims": policy.Absent, "/" + driver: up}, 1, true,
			"NotFenced: the admission policies are not in force: claims is Absent: said", "", 0},
		{map[string]policy.Verdict{"/" + driver: up}, 1, true, "", "", -1},
		{map[string]policy.Verdict{"/" + driver: up}, 1, false, "", "", -1},
		{map[string]policy.Verdict{"/" + driver: up}, 2, true, "", "", -1},
		// A pool without its fence does not stop the others.
		{map[string]policy.Verdict{"/" + driver: policy.Unclear}, 2, true, "", "NotFenced: the fence of AcceleratorPool tpu.example.com is not in force yet", -1},
		{map[string]policy.Verdict{"/other": up}, 2, true, "", "NotFenced: the fence of AcceleratorPool tpu.example.com is not in force yet", -1},
		{map[string]policy.Verdict{"pods": policy.Absent}, 2, true, "NotFenced: the admission policies are not in force: pods is Absent: said", "NotFenced: the fence of AcceleratorPool tpu.example.com is not in force yet", 8 * time.Second},
	} {
		f.observe(report(step.report), []*berth.AcceleratorPool{poolAt(step.generation)}, start.Add(time.Duration(i)*time.Second))
		if !probed() {
			t.Fatalf("step %d: not probed", i)
		}
		if got := woken(); got != step.wakes {
			t.Errorf("step %d: wakes the line: %v", i, got)
		}
		if got := told(f.NotInForce()); got != step.policies {
			t.Errorf("step %d: policies: %s", i, got)
		}
		if got := told(f.Unfenced(poolAt(step.generation))); got != step.pool {
			t.Errorf("step %d: pool: %s", i, got)
		}
		since := f.failing()
		if step.failing < 0 && !since.IsZero() || step.failing >= 0 && since.Sub(start) != step.failing {
			t.Errorf("step %d: failing since %v", i, since)
		}
	}
}

// The gangs that Berth serves are Jobs: they do not depend on an answer of the webhooks of JobSet.
func TestJobSetsThatCannotBeTried(t *testing.T) {
	for verdict, want := range map[policy.Verdict]string{
		policy.InForce: "", policy.Unclear: "",
		policy.Absent: "NotFenced: the admission policies are not in force: berth-jobset-keys is Absent: said",
	} {
		r := report(nil)
		r.Findings = append(r.Findings, policy.Finding{Policy: policy.JobSetKeys, Verdict: verdict, Message: "said"})
		f := NewFence()
		f.observe(r, nil, start)
		if got := told(f.NotInForce()); got != want {
			t.Errorf("%s: got %q, want %q", verdict, got, want)
		}
	}
	f := NewFence()
	f.observe(report(map[string]policy.Verdict{"pods": policy.Unclear}), nil, start)
	if got, want := told(f.NotInForce()), "NotFenced: the admission policies are not in force: pods is Unclear: said"; got != want {
		t.Errorf("another policy: got %q, want %q", got, want)
	}
}

// What was tried says nothing about what an AcceleratorPool selects since, or about one that nobody has tried.
func TestFenceOfAnotherGeneration(t *testing.T) {
	f := NewFence()
	f.observe(report(map[string]policy.Verdict{"/" + driver: policy.InForce}), []*berth.AcceleratorPool{poolAt(1)}, start)
	const not = "NotFenced: the fence of AcceleratorPool tpu.example.com is not in force yet"
	if got := told(f.Unfenced(poolAt(1))); got != "" {
		t.Error(got)
	}
	if got := told(f.Unfenced(poolAt(2))); got != not {
		t.Errorf("changed since: %q", got)
	}
	anew := poolAt(1)
	anew.UID = "anew"
	if got := told(f.Unfenced(anew)); got != not {
		t.Errorf("created anew since: %q", got)
	}
	observed := poolAt(2)
	observed.Spec.Fence = berth.FenceObserve
	if got := told(f.Unfenced(observed)); got != "" {
		t.Errorf("without a fence there is nothing to wait for: %q", got)
	}
}

func TestNobodyWaitsForTheLine(t *testing.T) {
	f := NewFence()
	for i := range 10 {
		f.observe(report(map[string]policy.Verdict{"claims": []policy.Verdict{policy.InForce, policy.Absent}[i%2]}), nil, start)
	}
}

func TestProbeIsDue(t *testing.T) {
	good, bad := report(nil), report(map[string]policy.Verdict{"claims": policy.Absent})
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for _, row := range []struct {
		name  string
		p     probing
		fence string
		want  time.Duration
	}{
		{"never probed", probing{}, "", 0},
		{"the fence was changed", probing{report: good, fence: "a", changed: at(-100), at: at(0)}, "b", 0},
		{"it stands", probing{report: good, fence: "a", changed: at(-100), at: at(-10)}, "a", 50 * time.Second},
		{"it stood a minute ago", probing{report: good, fence: "a", changed: at(-100), at: at(-60)}, "a", 0},
		{"it does not stand", probing{report: bad, fence: "a", changed: at(-100), at: at(0)}, "a", time.Second},
		{"it did not stand a second ago", probing{report: bad, fence: "a", changed: at(-100), at: at(-1)}, "a", 0},
		{"it stands, but was changed just now", probing{report: good, fence: "a", changed: at(-4), at: at(0)}, "a", time.Second},
		{"it stands, and the change has settled", probing{report: good, fence: "a", changed: at(-5), at: at(0)}, "a", time.Minute},
	} {
		if got := row.p.due(row.fence, start); got != row.want {
			t.Errorf("%s: due in %v, want %v", row.name, got, row.want)
		}
	}
}

func TestActiveCondition(t *testing.T) {
	absent := map[string]policy.Verdict{"claims": policy.Absent}
	parameters := func(group, kind, name string) func(*kueue.AdmissionCheck) {
		return func(ac *kueue.AdmissionCheck) {
			ac.Spec.Parameters = &kueue.AdmissionCheckParametersReference{APIGroup: group, Kind: kind, Name: name}
		}
	}
	active := func(status metav1.ConditionStatus) func(*kueue.AdmissionCheck) {
		return func(ac *kueue.AdmissionCheck) {
			ac.Status.Conditions = []metav1.Condition{{Type: kueue.AdmissionCheckActive, Status: status}}
		}
	}
	for _, row := range []struct {
		name    string
		change  func(*kueue.AdmissionCheck)
		report  map[string]policy.Verdict
		failing time.Duration
		want    string
	}{
		{"all is well", nil, nil, 0, "True Active: the admission policies are in force"},
		{"one pool is not fenced", nil, map[string]policy.Verdict{"/" + driver: policy.Absent}, 0, "True Active: the admission policies are in force"},
		{"parameters that exist", parameters("berth.dev", "GangReservationConfig", "config"), nil, 0, "True Active: the admission policies are in force"},
		{"parameters that do not exist", parameters("berth.dev", "GangReservationConfig", "gone"), nil, 0, "False BadParameters: GangReservationConfig gone does not exist"},
		{"parameters of another kind", parameters("example.com", "Config", "config"), nil, 0, "False BadParameters: spec.parameters names a Config.example.com: it must be a GangReservationConfig.berth.dev"},
		{"parameters before policies", parameters("berth.dev", "GangReservationConfig", "gone"), absent, 0, "False BadParameters: GangReservationConfig gone does not exist"},
		{"never active", nil, absent, 0, "False PoliciesNotInForce: claims is Absent: said"},
		{"inactive", active(metav1.ConditionFalse), absent, 0, "False PoliciesNotInForce: claims is Absent: said"},
		{"active, and the policies fail", active(metav1.ConditionTrue), absent, 0, ""},
		{"active, and they have failed for a while", active(metav1.ConditionTrue), absent, debounce - 1, ""},
		{"active, and they have failed for long", active(metav1.ConditionTrue), absent, debounce, "False PoliciesNotInForce: claims is Absent: said"},
	} {
		t.Run(row.name, func(t *testing.T) {
			ac := kueuetest.NewCheck("berth")
			ac.Generation = 3
			if row.change != nil {
				row.change(ac)
			}
			v := &view{
				now: start, failingSince: start.Add(-row.failing), report: report(row.report),
				snapshot: &snapshot.Snapshot{Configs: []*berth.GangReservationConfig{{ObjectMeta: metav1.ObjectMeta{Name: "config"}}}},
			}
			got := ""
			if c := activeCondition(ac, v); c != nil {
				got = string(c.Status) + " " + c.Reason + ": " + c.Message
				if c.Type != "Active" || c.ObservedGeneration != 3 || !c.LastTransitionTime.Time.Equal(start) {
					t.Errorf("%+v", c)
				}
			}
			if got != row.want {
				t.Errorf("\n got %s\nwant %s", got, row.want)
			}
		})
	}
}
