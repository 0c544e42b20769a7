package kueue_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reason"
)

var later = kueuetest.Start.Add(time.Hour)

func workload() kueuetest.Workload {
	return kueuetest.NewWorkload(kueuetest.NewJob("train", "tpu-4x4", 4)).QuotaReserved(kueuetest.Start)
}

// sent is what Write sends to the API server.
func sent(t *testing.T, wl *kueue.Workload, a adaptkueue.Answer) *kueue.Workload {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var patch *kueue.Workload
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, name string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			options := client.SubResourcePatchOptions{}
			options.ApplyOptions(opts)
			if name != "status" || p != client.Apply || options.FieldManager != "berth-gang" || options.Force == nil || !*options.Force { //nolint:staticcheck // what Kueue sends
				t.Errorf("sent %T to %s as %+v", p, name, options)
			}
			patch = obj.DeepCopyObject().(*kueue.Workload)
			return nil
		},
	}).Build()
	if err := adaptkueue.Write(t.Context(), c, wl, a, later); err != nil {
		t.Fatal(err)
	}
	return patch
}

// say lets the Workload say the answer, as the API server would after Write.
func say(t *testing.T, wl *kueue.Workload, a adaptkueue.Answer) *kueue.Workload {
	t.Helper()
	patch := sent(t, wl.DeepCopy(), a)
	said := wl.DeepCopy()
	said.Status.AdmissionChecks, said.Status.Conditions = patch.Status.AdmissionChecks, append(said.Status.Conditions[:1:1], patch.Status.Conditions...)
	return said
}

func ready() adaptkueue.Answer {
	return adaptkueue.Answer{
		Check: kueuetest.Check, State: kueue.CheckStateReady, Message: "slice", Reserved: true, Reason: adaptkueue.ReasonReserved,
		PodSetUpdates: []kueue.PodSetUpdate{{Name: "main", Labels: map[string]string{"a": "b"}}},
	}
}

func TestGiven(t *testing.T) {
	given := say(t, workload().Workload, ready())
	for _, row := range []struct {
		name   string
		change func(*adaptkueue.Answer)
		want   bool
	}{
		{"the same", func(*adaptkueue.Answer) {}, true},
		{"another check", func(a *adaptkueue.Answer) { a.Check = "other" }, false},
		{"another state", func(a *adaptkueue.Answer) { a.State = kueue.CheckStatePending }, false},
		{"another message", func(a *adaptkueue.Answer) { a.Message = "another" }, false},
		{"another reason", func(a *adaptkueue.Answer) { a.Reason = "Another" }, false},
		{"not reserved", func(a *adaptkueue.Answer) { a.Reserved = false }, false},
		{"other pods", func(a *adaptkueue.Answer) { a.PodSetUpdates[0].Labels["a"] = "c" }, false},
		{"no pods", func(a *adaptkueue.Answer) { a.PodSetUpdates = nil }, false},
		{"the condition only", func(a *adaptkueue.Answer) { a.State, a.PodSetUpdates = "", nil }, true},
		{"the condition only, another message", func(a *adaptkueue.Answer) { a.State, a.Message = "", "another" }, false},
		{"the check only", func(a *adaptkueue.Answer) { a.Reason, a.Reserved = "", false }, true},
		{"nothing", func(a *adaptkueue.Answer) { *a = adaptkueue.Answer{} }, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := ready()
			row.change(&a)
			if got := a.Given(given); got != row.want {
				t.Errorf("given: %v", got)
			}
		})
	}
	if ready().Given(workload().Workload) {
		t.Error("given before it was written")
	}
}

// A Ready without a slice sends pods to none, whatever an old one that Kueue took over says.
func TestReadyWithoutASliceNamesNone(t *testing.T) {
	wl := say(t, workload().Workload, ready())
	wl.Status.AdmissionChecks[0].State = kueue.CheckStatePending
	let := adaptkueue.Answer{Check: kueuetest.Check, State: kueue.CheckStateReady, Message: "nothing"}
	sends := sent(t, wl.DeepCopy(), let).Status.AdmissionChecks[0].PodSetUpdates
	if len(sends) != 1 || sends[0].Name != "main" || len(sends[0].Labels) > 0 || len(sends[0].Annotations) > 0 {
		t.Errorf("it sends %+v", sends)
	}
	wl.Status.AdmissionChecks[0].State, wl.Status.AdmissionChecks[0].Message = let.State, let.Message
	if let.Given(wl) {
		t.Error("it counts as given while pods are sent to the former slice")
	}
	wl.Status.AdmissionChecks[0].PodSetUpdates = sends
	if !let.Given(wl) {
		t.Error("it does not count as given")
	}
	if sends := sent(t, workload().Workload, let).Status.AdmissionChecks[0].PodSetUpdates; len(sends) > 0 {
		t.Errorf("where there was none it sends %+v", sends)
	}
}

// A message is cut where a character ends, so that what comes back from the API server is what was sent.
func TestLongMessages(t *testing.T) {
	for _, message := range []string{strings.Repeat("x", 1024), strings.Repeat("x", 1025), strings.Repeat("ü", 600), "x" + strings.Repeat("ü", 600), strings.Repeat("日", 400)} {
		a := ready()
		a.Message = message
		wl := say(t, workload().Workload, a)
		got := wl.Status.AdmissionChecks[0].Message
		if len(got) > 1024 || !utf8.ValidString(got) || (len(message) <= 1024) != (got == message) || !strings.HasPrefix(message, strings.TrimSuffix(got, "...")) {
			t.Errorf("%d bytes of %q became %d: %q", len(message), message[:6], len(got), got[len(got)-8:])
		}
		if !a.Given(wl) || wl.Status.Conditions[1].Message != got {
			t.Error("it does not count as given")
		}
	}
}

func TestWriteSendsBothParts(t *testing.T) {
	started := metav1.NewTime(kueuetest.Start)
	for _, row := range []struct {
		name   string
		answer adaptkueue.Answer
		// check and condition that are sent: "state message since", "status reason message since".
		check, condition string
	}{
		{"ready", ready(), "Ready slice 1h", "True Reserved slice 1h"},
		{"still pending", adaptkueue.Refused(kueuetest.Check, kueue.CheckStatePending, &reason.Refusal{Code: reason.NoFreeSlice, Message: "taken"}), "Pending taken 0s", "False NoFreeSlice taken 0s"},
		{"the condition only", adaptkueue.Answer{Check: kueuetest.Check, Reason: "Released", Message: "gone"}, "Pending old 0s", "False Released gone 0s"},
		{"the check only", adaptkueue.Answer{Check: kueuetest.Check, State: kueue.CheckStateReady, Message: "nothing"}, "Ready nothing 1h", "False Old old 0s"},
		{"another check's condition", adaptkueue.Answer{Check: "gone", Reason: "Released", Message: "gone"}, "", "False Released gone 0s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			wl := workload()
			wl.Generation = 3
			wl.Status.AdmissionChecks[0].Message = "old"
			wl.Status.Conditions = append(wl.Status.Conditions, metav1.Condition{Type: berth.ConditionGangReserved, Status: "False", Reason: "Old", Message: "old", LastTransitionTime: started, ObservedGeneration: 2})
			patch := sent(t, wl.Workload, row.answer)
			if patch.ResourceVersion != "1" || patch.UID != "wl-train" || patch.Status.Admission != nil {
				t.Errorf("sent %+v", patch)
			}
			since := func(at metav1.Time) string {
				return map[time.Duration]string{0: "0s", time.Hour: "1h"}[at.Sub(kueuetest.Start)]
			}
			check, condition := "", ""
			for _, c := range patch.Status.AdmissionChecks {
				check += string(c.State) + " " + c.Message + " " + since(c.LastTransitionTime)
			}
			for _, c := range patch.Status.Conditions {
				condition += string(c.Status) + " " + c.Reason + " " + c.Message + " " + since(c.LastTransitionTime)
			}
			if check != row.check || condition != row.condition {
				t.Errorf("sent %q and %q, want %q and %q", check, condition, row.check, row.condition)
			}
		})
	}
}

func TestUpdatesAndSlice(t *testing.T) {
	job := kueuetest.NewJob("train", "tpu-4x4", 4)
	res := kueuetest.NewReservation("res", kueuetest.NewWorkload(job), job, "tpu-4x4-00", "h0", "h1", "h4", "h5")
	want := []kueue.PodSetUpdate{{
		Name: "main", Labels: map[string]string{"berth.dev/reservation": "res"},
		Annotations: map[string]string{"berth.dev/contract": "v1", "berth.dev/hosts": "h0,h1,h4,h5", "claim.berth.dev/tpu": "berth.res.main.tpu/4"},
	}}
	if diff := cmp.Diff(want, adaptkueue.Updates(res)); diff != "" {
		t.Error(diff)
	}
	if got, want := adaptkueue.Slice(res), "tpu-4x4-00 (pod-a) on h0, h1, h4, h5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	second := *res.Spec.PodSets[0].DeepCopy()
	second.Name = "second"
	second.Hosts = nil
	for i := range 20 {
		second.Hosts = append(second.Hosts, string(rune('a'+i)))
	}
	nic := *second.Claims[0].DeepCopy()
	nic.PodClaim, nic.Prefix, nic.PodsPerClaim = "nic", "berth.res.second-nic", 1
	nic.Devices[0].Device, nic.Devices[0].Pool = "nic-0", "a-pool"
	second.Claims = append(second.Claims, nic)
	res.Spec.PodSets = append(res.Spec.PodSets, second)
	updates := adaptkueue.Updates(res)
	if len(updates) != 2 || updates[1].Name != "second" || updates[1].Annotations["claim.berth.dev/nic"] != "berth.res.second-nic/1" {
		t.Errorf("%+v", updates)
	}
	if got, want := adaptkueue.Slice(res), "main: tpu-4x4-00 (pod-a) on h0, h1, h4, h5; second: pod-a/tpu-4x4-00, a-pool/nic-0 on a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p and 4 more"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestDemandFor(t *testing.T) {
	job := kueuetest.NewJob("train", "tpu-4x4", 4)
	all := func(wl kueuetest.Workload) string {
		res := kueuetest.NewReservation("res", workload(), job, "d", "h0")
		res.Spec.Epoch = adaptkueue.Epoch(workload().Workload, kueuetest.Check)
		d := adaptkueue.DemandFor(res, wl.Workload)
		var is []string
		for word, yes := range map[string]bool{
			"gone": d.Gone, "deleting": d.Deleting, "orphaned": d.Orphaned, "finished": d.Finished, "evicted": d.Evicted,
			"quota": d.Quota, "admitted": d.Admitted, "active": d.Active, "current": d.Current, "named": d.Named,
		} {
			if yes {
				is = append(is, word)
			}
		}
		return strings.Join(slices.Sorted(slices.Values(is)), " ") + " " + string(d.Check)
	}
	for _, row := range []struct {
		name string
		wl   kueuetest.Workload
		want string
	}{
		{"gone", kueuetest.Workload{}, "gone "},
		{"pending", workload(), "active current quota Pending"},
		{"Ready for it", workload().Named("res"), "active current named quota Ready"},
		{"Ready for another", workload().Named("other"), "active current quota Ready"},
		{"Ready for nobody", workload().State(kueue.CheckStateReady), "active current quota Ready"},
		{"admitted", workload().Admitted(), "active admitted current quota Pending"},
		{"all true", workload().Admitted().Evicted(), "active admitted current evicted quota Pending"},
		{"finished", workload().Finished(), "active current finished quota Pending"},
		{"no quota", workload().Condition(kueue.WorkloadQuotaReserved, false, kueuetest.Start), "active Pending"},
		{"admitted anew", workload().QuotaReserved(later), "active quota Pending"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := all(row.wl); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
	successor := workload()
	successor.UID = "successor"
	elsewhere := workload()
	elsewhere.Status.AdmissionChecks[0].Name = "another"
	inactive, going, orphan := workload(), workload(), workload()
	inactive.Spec.Active = new(bool)
	going.DeletionTimestamp = &metav1.Time{Time: later}
	orphan.OwnerReferences = nil
	for want, wl := range map[string]kueuetest.Workload{
		"gone ": successor, "active current quota ": elsewhere, "current quota Pending": inactive, "active current deleting quota Pending": going, "active current orphaned quota Pending": orphan,
	} {
		if got := all(wl); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A check that leaves the ClusterQueue and comes back begins to count anew; the admission is the same. A check that still
// counts tells two admissions apart.
func TestDemandForACheckThatWasTakenOff(t *testing.T) {
	job := kueuetest.NewJob("train", "tpu-4x4", 4)
	counted := func(count int32) kueuetest.Workload {
		wl := workload().Admitted()
		wl.Status.AdmissionChecks[0].RetryCount = &count
		return wl
	}
	res := kueuetest.NewReservation("res", workload(), job, "d", "h0")
	res.Spec.Epoch = adaptkueue.Epoch(counted(3).Workload, kueuetest.Check)
	off := workload().Admitted()
	off.Status.AdmissionChecks = nil
	waits, evicted, again := workload(), off.DeepCopy(), off.DeepCopy()
	waits.Status.AdmissionChecks = nil
	evicted.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: "a", Count: 1}}}
	again.Status.Conditions[0].LastTransitionTime = metav1.NewTime(later)
	for _, row := range []struct {
		name             string
		wl               *kueue.Workload
		current, unasked bool
	}{
		{"as it was", counted(3).Workload, true, false},
		{"off", off.Workload, true, true},
		{"off before it was admitted", waits.Workload, true, false},
		{"on again", workload().Admitted().Workload, true, false},
		{"on again and Ready", workload().Admitted().Named("res").Workload, true, false},
		{"taken back since", counted(4).Workload, false, false},
		{"off, and evicted and admitted anew", evicted, false, false},
		{"off, and admitted anew later", again, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if d := adaptkueue.DemandFor(res, row.wl); d.Current != row.current || d.Unasked() != row.unasked {
				t.Errorf("%+v", d)
			}
		})
	}
	for _, epoch := range []string{"", "0", res.Spec.Epoch[:8]} {
		res.Spec.Epoch = epoch
		if adaptkueue.DemandFor(res, off.Workload).Current {
			t.Errorf("%q is an epoch", epoch)
		}
	}
	res.Spec.Epoch = ""
	if adaptkueue.DemandFor(res, workload().Condition(kueue.WorkloadQuotaReserved, false, later).Workload).Current {
		t.Error("no quota and no epoch are taken for the same admission")
	}
}

func TestChecks(t *testing.T) {
	foreign := kueuetest.NewCheck("foreign")
	foreign.Spec.ControllerName = "other"
	checks := adaptkueue.OurChecks([]*kueue.AdmissionCheck{foreign, kueuetest.NewCheck("berth"), kueuetest.NewCheck("second")})
	wl := workload()
	wl.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "foreign"}, {Name: "second"}, {Name: "berth"}}
	if got := checks.Of(wl.Workload); got == nil || got.Name != "second" {
		t.Errorf("of two of ours the first counts, not %v", got)
	}
	wl.Status.AdmissionChecks = wl.Status.AdmissionChecks[:1]
	if got := checks.Of(wl.Workload); got != nil {
		t.Errorf("another's check: %v", got)
	}
}

func TestWants(t *testing.T) {
	inactive, going := workload(), workload()
	inactive.Spec.Active = new(bool)
	going.DeletionTimestamp = &metav1.Time{Time: later}
	for name, row := range map[string]struct {
		wl   kueuetest.Workload
		want bool
	}{
		"quota reserved": {workload(), true}, "admitted": {workload().Admitted(), true}, "evicted": {workload().Evicted(), false},
		"finished": {workload().Finished(), false}, "inactive": {inactive, false}, "going": {going, false},
		"no quota": {workload().Condition(kueue.WorkloadQuotaReserved, false, later), false},
	} {
		if got := adaptkueue.Wants(row.wl.Workload, &row.wl.Status.AdmissionChecks[0]); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if adaptkueue.Wants(workload().Workload, nil) {
		t.Error("without our check nobody wants our answer")
	}
}

// Beyond what makes an admission another one: an epoch does not depend on what Kueue restates or on the order of maps.
func TestEpochIsStable(t *testing.T) {
	want := adaptkueue.Epoch(workload().Admitted().Workload, kueuetest.Check)
	for range 20 {
		wl := workload().Admitted().Named("res")
		wl.Status.Admission.PodSetAssignments[0].ResourceUsage = corev1.ResourceList{}
		wl.ResourceVersion, wl.Generation = "7", 9
		wl.Labels = map[string]string{"a": "b"}
		if got := adaptkueue.Epoch(wl.Workload, kueuetest.Check); got != want {
			t.Fatalf("%s, before %s", got, want)
		}
	}
	zone := workload()
	zone.Status.Conditions[0].LastTransitionTime = metav1.NewTime(kueuetest.Start.In(time.FixedZone("x", 3600)))
	if got := adaptkueue.Epoch(zone.Workload, kueuetest.Check); got != want {
		t.Errorf("in another time zone it is %s, before %s", got, want)
	}
	for name, change := range map[string]func(*kueue.Workload){
		"another flavor":  func(wl *kueue.Workload) { wl.Status.Admission.PodSetAssignments[0].Flavors["cpu"] = "other" },
		"another pod set": func(wl *kueue.Workload) { wl.Status.Admission.PodSetAssignments[0].Name = "other" },
		"no admission":    func(wl *kueue.Workload) { wl.Status.Admission = nil },
		"evicted for two reasons": func(wl *kueue.Workload) {
			wl.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: "a", Count: 1}, {Reason: "b", Count: 2}}}
		},
	} {
		wl := workload().Workload
		change(wl)
		if adaptkueue.Epoch(wl, kueuetest.Check) == want {
			t.Errorf("%s: the epoch is the same", name)
		}
	}
}

// Whatever is said on one of Berth's checks, the others stay part of what is applied: a server-side apply without them
// would take their state away.
func TestOtherChecksOfBerth(t *testing.T) {
	wl := workload().Workload
	second := kueue.AdmissionCheckState{Name: "berth2", State: kueue.CheckStatePending, Message: "said before", LastTransitionTime: metav1.NewTime(kueuetest.Start)}
	foreign := kueue.AdmissionCheckState{Name: "other", State: kueue.CheckStatePending}
	wl.Status.AdmissionChecks = append(wl.Status.AdmissionChecks, second, foreign)
	a := ready()
	a.Beside = []kueue.AdmissionCheckReference{"berth2", "gone"}
	got := sent(t, wl.DeepCopy(), a).Status.AdmissionChecks
	if len(got) != 2 || got[0].Name != kueuetest.Check || got[0].State != kueue.CheckStateReady {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff(second, got[1]); diff != "" {
		t.Error(diff)
	}
	all := adaptkueue.Refused(kueuetest.Check, kueue.CheckStatePending, &reason.Refusal{Code: reason.TooManyChecks, Message: "both"})
	all.Beside, all.ForAll = []kueue.AdmissionCheckReference{"berth2"}, true
	if all.Given(wl) {
		t.Error("given before it was written")
	}
	said := say(t, wl, all)
	for _, state := range said.Status.AdmissionChecks {
		if state.Message != "both" || state.State != kueue.CheckStatePending || !state.LastTransitionTime.Time.Equal(kueuetest.Start) {
			t.Errorf("%+v", state)
		}
	}
	if len(said.Status.AdmissionChecks) != 2 || !all.Given(said) {
		t.Errorf("it does not count as given: %+v", said.Status.AdmissionChecks)
	}
	said.Status.AdmissionChecks[1].Message = "something else"
	if all.Given(said) {
		t.Error("given although one check says something else")
	}
}
