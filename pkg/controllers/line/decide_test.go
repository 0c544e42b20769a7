package line

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reason"
)

func TestReserve(t *testing.T) {
	s := newSite()
	w := s.waits("a")
	got := s.pass()
	if len(got.reserve) != 1 || len(got.answers) > 0 || len(got.waiting) > 0 || got.again != 0 {
		t.Fatal(got.tell())
	}
	epoch := adaptkueue.Epoch(w.Workload, kueuetest.Check)
	hosts := []string{"pod-a-0", "pod-a-1", "pod-a-2", "pod-a-3"}
	want := &berth.GangReservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "job-a-" + epoch, Finalizers: []string{"berth.dev/reservation"}},
		Spec: berth.GangReservationSpec{
			WorkloadRef: berth.WorkloadReference{Name: "job-a", UID: "wl-a"},
			Owner:       berth.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "a", UID: "a"},
			Check:       "berth", Flavor: "tpu-v5e", Epoch: epoch, QueuedAt: metav1.NewTime(kueuetest.Start),
			PodSets: []berth.ReservedPodSet{{
				Name: "main", Count: 4, Hosts: hosts,
				Claims: []berth.ReservedClaim{{
					PodClaim: "tpu", Template: &berth.TemplateReference{Name: "tpu-4x4", UID: "template-tpu-4x4"},
					Prefix: "berth.job-a-" + epoch + ".main.tpu", PodsPerClaim: 4,
					Devices: []berth.ReservedDevice{{
						Request: "slice", Driver: driver, Pool: "pod-a", Generation: 1, Device: "tpu-4x4-00", Hosts: hosts, Charge: []berth.CounterCharge{},
					}},
				}},
			}},
		},
	}
	if diff := cmp.Diff(want, got.reserve[0]); diff != "" {
		t.Error(diff)
	}
}

// A reservation says in which domains its devices stand, and so does the Workload once it is Ready.
func TestDomainsAreRecorded(t *testing.T) {
	s := newSite()
	s.AcceleratorPools[0].Spec.Interconnect = &berth.Interconnect{NodeLabel: "example.com/rack"}
	for i, n := range s.Nodes {
		n.Labels["example.com/rack"] = fmt.Sprint("r", i/4)
	}
	two := func(j *batchv1.Job) {
		j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](8), ptr.To[int32](8)
		j.Spec.Template.Annotations = map[string]string{berth.AnnotationSlices: "2"}
	}
	s.waits("a")
	s.waits("b", two)
	got := s.pass().reserve
	if len(got) != 2 {
		t.Fatalf("%d reservations", len(got))
	}
	for i, want := range []string{"[r0] false", "[r1 r2] true"} {
		ps := got[i].Spec.PodSets[0]
		if text := strings.ReplaceAll(fmt.Sprint(ps.Domains, " ", ps.Across), "rack ", ""); text != want {
			t.Errorf("%s, want %s", text, want)
		}
	}
	if want := "pod-a/tpu-4x4-01, pod-b/tpu-4x4-00 on pod-a-4, pod-a-5, pod-a-6, pod-a-7, pod-b-0, pod-b-1, pod-b-2, pod-b-3 across rack r1, rack r2"; adaptkueue.Slice(got[1]) != want {
		t.Errorf("got %s, want %s", adaptkueue.Slice(got[1]), want)
	}
	required := func(j *batchv1.Job) {
		two(j)
		j.Spec.Template.Annotations[berth.AnnotationInterconnect] = berth.InterconnectRequired
	}
	s = newSite()
	s.AcceleratorPools[0].Spec.Interconnect = &berth.Interconnect{NodeLabel: "example.com/rack"}
	for i, n := range s.Nodes {
		n.Labels["example.com/rack"] = fmt.Sprint("r", i/4)
	}
	s.waits("c", required)
	s.passes(t, "c Pending NoFreeSlice: 2 tpu-4x4 are needed in one rack, and the largest, r0, has 1 in all")
}

func TestHostsAreNamedByTheirLabel(t *testing.T) {
	s := newSite()
	s.waits("a")
	s.Nodes[2].Name = "machine-7" // its label still says pod-a-2
	got := s.pass().reserve[0].Spec.PodSets[0]
	if diff := cmp.Diff([]string{"machine-7", "pod-a-0", "pod-a-1", "pod-a-3"}, got.Claims[0].Devices[0].Hosts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"pod-a-2", "pod-a-0", "pod-a-1", "pod-a-3"}, got.Hosts); diff != "" {
		t.Error(diff)
	}
}

// Scenario 23: the template is another one than the one that was charged for. Nothing is reserved for what nobody paid, and
// Kueue charges anew.
func TestTemplateReplacedAfterTheCharge(t *testing.T) {
	s := newSite()
	s.waits("a")
	s.ResourceClaimTemplates[0] = s.ResourceClaimTemplates[0].DeepCopy()
	s.ResourceClaimTemplates[0].CreationTimestamp = metav1.NewTime(kueuetest.Start.Add(time.Second))
	s.passes(t, "a Retry TemplateReplaced: ResourceClaimTemplate tpu-4x4 of pod claim tpu was created after Kueue had charged for another one of that name")
	// A new admission is charged for what is there.
	for i := range s.Workloads[0].Status.Conditions {
		s.Workloads[0].Status.Conditions[i].LastTransitionTime = metav1.NewTime(kueuetest.Start.Add(time.Second))
	}
	s.passes(t, "a reserves pod-a/tpu-4x4-00")
}

// What one gang got the next does not get, and who comes too late is told who has it.
func TestPassChargesAsItGoes(t *testing.T) {
	s := newSite()
	s.takes("pod-a", "tpu-4x4-00")
	for _, name := range []string{"a", "b", "c", "d"} {
		s.waits(name)
	}
	s.passes(t,
		"a reserves pod-a/tpu-4x4-01", "b reserves pod-b/tpu-4x4-00", "c reserves pod-b/tpu-4x4-01",
		"d Pending NoFreeSlice: no tpu-4x4 is free: 4 of 4 are held by "+
			"ml/job-a-"+epochOf(s, 0)+", ml/job-b-"+epochOf(s, 1)+", ml/job-c-"+epochOf(s, 2)+", x/pod-a-tpu-4x4-00"+
			"; waits for pod-a/tpu-4x4-01: drains when ml/job-a-"+epochOf(s, 0)+" ends",
		"d keeps pod-a/tpu-4x4-01",
	)
	if got := s.pass().waiting; len(got) != 1 || got["NoFreeSlice"] != 1 {
		t.Errorf("waiting %v", got)
	}
}

func epochOf(s *site, i int) string { return adaptkueue.Epoch(s.Workloads[i], kueuetest.Check) }

func TestOrder(t *testing.T) {
	s := newSite()
	for _, device := range []string{"tpu-4x4-00", "tpu-4x4-01"} {
		s.takes("pod-a", device)
	}
	s.takes("pod-b", "tpu-4x4-00")
	s.waits("first")
	s.waits("urgent").Priority(7).Queued(now)
	if got := s.pass().tell(); !strings.Contains(got, "urgent reserves") || strings.Contains(got, "first reserves") {
		t.Errorf("priority: %s", got)
	}
	// A queue that holds nothing comes before one that does, whatever the priority.
	s.waits("poor").In("poor").Queued(now)
	holder := s.waits("holder")
	s.Reservations = append(s.Reservations, kueuetest.NewReservation("held", holder, s.Jobs[3], "tpu-4x4-00", "pod-a-0", "pod-a-1", "pod-a-2", "pod-a-3"))
	if got := s.pass().tell(); !strings.Contains(got, "poor reserves") {
		t.Errorf("fair share: %s", got)
	}
}

func TestAnswers(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*site)
		want   []string
	}{
		{"nobody", func(*site) {}, []string{""}},
		{"no quota", func(s *site) { s.waits("a").Condition(kueue.WorkloadQuotaReserved, false, now) }, []string{""}},
		{"evicted", func(s *site) { s.waits("a").Evicted() }, []string{""}},
		{"another's check", func(s *site) { s.waits("a"); s.AdmissionChecks[0].Spec.ControllerName = "other" }, []string{""}},
		{"told to retry", func(s *site) { s.waits("a").State(kueue.CheckStateRetry) }, []string{""}},
		{"rejected", func(s *site) { s.waits("a").State(kueue.CheckStateRejected) }, []string{""}},
		{"nothing managed", func(s *site) { s.waits("a", unclaimed) }, []string{"a Ready : the gang asks for no device that Berth manages"}},
		{"nothing managed, although nothing is fenced", func(s *site) {
			s.waits("a", unclaimed)
			s.notFenced = &reason.Refusal{Code: reason.NotFenced, Message: "no"}
		}, []string{"a Ready : the gang asks for no device that Berth manages"}},

		{"all pods have succeeded", func(s *site) {
			w := s.waits("a")
			w.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](0)
			w.Condition(berth.ConditionGangReserved, false, now)
			w.Status.Conditions[len(w.Status.Conditions)-1].Reason = adaptkueue.ReasonReleased
		}, []string{"a Ready NothingManaged: the pods of the gang have all succeeded, and none comes any more"}},

		{"final", func(s *site) { s.waits("a", func(j *batchv1.Job) { j.Spec.CompletionMode = nil }) }, []string{"a Rejected Unsupported: the pods have no rank: set spec.completionMode to Indexed"}},
		{"final in placement", func(s *site) {
			s.waits("a", func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](5), ptr.To[int32](5) })
		}, []string{"a Rejected NotDivisible: 5 pods cannot fill slices of 4 hosts (tpu-4x4)"}},
		{"final, although nothing is fenced", func(s *site) {
			s.waits("a").Workload.Spec.PodSets[0].MinCount = ptr.To[int32](1)
			s.notFenced = &reason.Refusal{Code: reason.NotFenced, Message: "no"}
		}, []string{"a Rejected CountMismatch: pod set main may run with fewer pods (minCount): a slice is whole, so leave minCount out"}},
		{"not final", func(s *site) { s.waits("a", template("missing")) }, []string{"a Pending ClaimMissing: ResourceClaimTemplate missing of pod claim tpu does not exist"}},
		{"final for gangs of Berth's, and not known to be one", func(s *site) {
			s.waits("a", template("unknown"), func(j *batchv1.Job) { j.Spec.CompletionMode = nil })
		}, []string{"a Pending ShapeUnknown: there is no DeviceClass unknown"}},
		{"not final in placement", func(s *site) { s.waits("a", template("unknown")) }, []string{"a Pending ShapeUnknown: there is no DeviceClass unknown"}},
		{"not final, because devices may be published", func(s *site) {
			s.waits("a", func(j *batchv1.Job) {
				claims := &j.Spec.Template.Spec.ResourceClaims
				*claims = append(*claims, corev1.PodResourceClaim{Name: "more", ResourceClaimTemplateName: ptr.To("tpu-4x4")})
			})
		}, []string{"a Pending HostSetsDiffer: claim tpu (tpu-4x4) and claim more (tpu-4x4) exclude each other: " +
			"no set of hosts offers a pod both, even with nothing taken"}},

		{"not fenced", func(s *site) {
			s.waits("a")
			s.notFenced = &reason.Refusal{Code: reason.NotFenced, Message: "the admission policies are not in force"}
		}, []string{"a Pending NotFenced: the admission policies are not in force"}},
		{"not fenced, and not known to be for a gang of Berth's", func(s *site) {
			s.waits("a", template("unknown"))
			s.notFenced = &reason.Refusal{Code: reason.NotFenced, Message: "the admission policies are not in force"}
		}, []string{"a Pending ShapeUnknown: there is no DeviceClass unknown"}},
		{"a pool is not fenced", func(s *site) {
			s.waits("a")
			s.unfenced["pod-a"] = &reason.Refusal{Code: reason.NotFenced, Message: "pod-a is not fenced"}
		}, []string{"a reserves pod-b/tpu-4x4-00"}},
		{"a pool is not fenced and the other is taken", func(s *site) {
			s.waits("a")
			s.unfenced["pod-a"] = &reason.Refusal{Code: reason.NotFenced, Message: "pod-a is not fenced"}
			s.takes("pod-b", "tpu-4x4-00")
			s.takes("pod-b", "tpu-4x4-01")
		}, []string{"a Pending NotFenced: pod-a is not fenced"}},
		{"no pool is fenced", func(s *site) {
			s.waits("a")
			for _, pool := range []string{"pod-a", "pod-b"} {
				s.unfenced[pool] = &reason.Refusal{Code: reason.NotFenced, Message: pool + " is not fenced"}
			}
		}, []string{"a Pending NotFenced: pod-a is not fenced"}},

		{"backoff", func(s *site) { s.waits("a"); s.waits("b"); s.backoff["wl-a"] = 2 * time.Second }, []string{"a Pending ReservationFailed: it failed before", "b reserves pod-a/tpu-4x4-00", "again in 2s"}},
		{"two that wait", func(s *site) {
			s.waits("a")
			s.waits("b")
			s.backoff["wl-a"], s.backoff["wl-b"] = 9*time.Second, 4*time.Second
		}, []string{"a Pending ReservationFailed: it failed before", "b Pending ReservationFailed: it failed before", "again in 4s"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSite()
			row.change(s)
			s.passes(t, row.want...)
		})
	}
}

// What the Workload says already is not said again, but counts as waiting.
func TestAnswersAreGivenOnce(t *testing.T) {
	s := newSite()
	w := s.waits("a", template("missing"))
	a := s.pass().answers[0].answer
	w.Status.AdmissionChecks[0].Message = a.Message
	w.Condition(berth.ConditionGangReserved, false, now)
	w.Status.Conditions[1].Reason, w.Status.Conditions[1].Message = a.Reason, a.Message
	s.passes(t, "")
	if got := s.pass().waiting["ClaimMissing"]; got != 1 {
		t.Errorf("%d wait", got)
	}
}

func TestFormerReservation(t *testing.T) {
	for _, phase := range []berth.ReservationPhase{"", berth.PhasePlanned, berth.PhaseReserved, berth.PhaseHandedOver} {
		s := newSite()
		s.waits("a")
		s.gives(t, phase)
		s.passes(t, "")
	}
	// A check that was taken off and put on again has lost its count; the reservation is still for this admission.
	s := newSite()
	w := s.waits("a")
	w.Status.AdmissionChecks[0].RetryCount = ptr.To[int32](2)
	s.gives(t, berth.PhaseHandedOver)
	w.Status.AdmissionChecks[0].RetryCount = nil
	s.passes(t, "")

	s = newSite()
	w = s.waits("a")
	s.gives(t, berth.PhaseReleasing)
	s.passes(t, "a Pending WaitingTurn: the gang's former slice is being released first")
	s.backoff["wl-a"] = time.Second
	s.passes(t, "a Pending ReservationFailed: it failed before", "again in 1s")
	// Another epoch has another reservation. What the former one holds still is not given out.
	s.backoff = nil
	s.ResourceClaims = append(s.ResourceClaims, ours(s.Reservations[0]))
	w.QuotaReserved(now)
	s.passes(t, "a reserves pod-a/tpu-4x4-01")
}

func TestStaleReady(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*site, kueuetest.Workload)
		want   string
	}{
		{"its reservation is there", func(s *site, w kueuetest.Workload) { w.Named(s.Reservations[0].Name) }, ""},
		{"its reservation is gone", func(_ *site, w kueuetest.Workload) { w.Named("gone") }, "a Pending SliceLost: reservation gone is gone"},
		{"its reservation is gone, admitted", func(_ *site, w kueuetest.Workload) { w.Named("gone").Admitted() }, "a Retry SliceLost: reservation gone is gone"},
		{"its reservation is gone and quota too", func(_ *site, w kueuetest.Workload) {
			w.Named("gone").Condition(kueue.WorkloadQuotaReserved, false, now)
		}, "a Pending SliceLost: reservation gone is gone"},
		{"another namespace has one of that name", func(s *site, w kueuetest.Workload) {
			w.Named(s.Reservations[0].Name)
			s.Reservations[0].Namespace = "other"
		}, "a Pending SliceLost: reservation NAME is gone"},
		{"evicted", func(_ *site, w kueuetest.Workload) { w.Named("gone").Admitted().Evicted() }, ""},
		{"finished", func(_ *site, w kueuetest.Workload) { w.Named("gone").Admitted().Finished() }, ""},
		{"going", func(_ *site, w kueuetest.Workload) { w.Named("gone").DeletionTimestamp = &metav1.Time{Time: now} }, ""},
		{"nothing managed", func(_ *site, w kueuetest.Workload) { w.State(kueue.CheckStateReady).Admitted() }, ""},
		{"pending, which names nobody", func(_ *site, w kueuetest.Workload) {
			w.Named("gone").Status.AdmissionChecks[0].State = kueue.CheckStatePending
		}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSite()
			w := s.waits("a")
			res := s.gives(t, berth.PhaseReserved)
			row.change(s, w)
			if row.want = strings.ReplaceAll(row.want, "NAME", res.Name); s.pass().tell() != row.want {
				t.Errorf("got %s, want %s", s.pass().tell(), row.want)
			}
		})
	}
}

func TestNoFitTimeout(t *testing.T) {
	site := func(seconds *int32, reserved time.Time) *site {
		s := newSite()
		s.AdmissionChecks[0].Spec.Parameters = &kueue.AdmissionCheckParametersReference{APIGroup: "berth.dev", Kind: "GangReservationConfig", Name: "config"}
		s.Configs = []*berth.GangReservationConfig{{ObjectMeta: metav1.ObjectMeta{Name: "config"}, Spec: berth.GangReservationConfigSpec{NoFit: berth.NoFitPolicy{TimeoutSeconds: seconds}}}}
		s.waits("a", template("unknown")).QuotaReserved(reserved)
		return s
	}
	const waits = "ShapeUnknown: there is no DeviceClass unknown"
	site(nil, now.Add(-time.Hour)).passes(t, "a Pending "+waits)
	site(ptr.To[int32](600), now).passes(t, "a Pending "+waits, "again in 10m0s")
	site(ptr.To[int32](600), now.Add(-9*time.Minute)).passes(t, "a Pending "+waits, "again in 1m0s")
	site(ptr.To[int32](600), now.Add(-10*time.Minute)).passes(t, "a Retry "+waits)
	site(ptr.To[int32](600), now.Add(-time.Hour)).passes(t, "a Retry "+waits)
	// What can never be is rejected, not retried.
	s := site(ptr.To[int32](600), now.Add(-time.Hour))
	s.Workloads[0].Spec.PodSets[0].Template.Spec.ResourceClaims[0].ResourceClaimTemplateName = ptr.To("tpu-4x4")
	s.Jobs[0].Spec.CompletionMode = nil
	s.passes(t, "a Rejected Unsupported: the pods have no rank: set spec.completionMode to Indexed")
	// Parameters that do not exist limit nothing; the check says so itself.
	s = site(ptr.To[int32](600), now.Add(-time.Hour))
	s.Configs = nil
	s.passes(t, "a Pending "+waits)
}

// A pass depends on what there is, not on the order in which it was listed.
func TestDecideIsReproducible(t *testing.T) {
	s := newSite()
	for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
		s.waits(name).Priority(int32(i % 2)).In([]string{"x", "y"}[i%2])
	}
	s.takes("pod-a", "tpu-4x4-01")
	want := s.pass().tell()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		rng.Shuffle(len(s.Workloads), func(i, j int) { s.Workloads[i], s.Workloads[j] = s.Workloads[j], s.Workloads[i] })
		rng.Shuffle(len(s.Nodes), func(i, j int) { s.Nodes[i], s.Nodes[j] = s.Nodes[j], s.Nodes[i] })
		rng.Shuffle(len(s.ResourceSlices), func(i, j int) { s.ResourceSlices[i], s.ResourceSlices[j] = s.ResourceSlices[j], s.ResourceSlices[i] })
		if got := s.pass().tell(); got != want {
			t.Fatalf("got\n%s\nbefore\n%s", got, want)
		}
	}
}

// Names must fit a label, tell two gangs apart whose names begin alike, and be names.
func TestReservationName(t *testing.T) {
	const epoch = "0123456789"
	long := strings.Repeat("w", 51)
	for workload, want := range map[string]string{
		"job-a":               "job-a-0123456789",
		"job-a.b":             "job-a.b-0123456789",
		long + "z":            long + "z-0123456789",
		long + "zz":           long + "z-0123456789",
		long + "-z":           long + "-0123456789",
		long[:49] + "-.-tail": long[:49] + "-0123456789",
	} {
		got := reservationName(workload, epoch)
		if got != want || len(got) > 63 {
			t.Errorf("%s: got %s, want %s", workload, got, want)
		}
	}
	s := newSite()
	a, b := s.waits("a-"+long+"-one"), s.waits("a-"+long+"-two")
	got := s.pass().reserve
	if len(got) != 2 || got[0].Name == got[1].Name || got[0].Name[:52] != got[1].Name[:52] {
		t.Errorf("%s and %s", got[0].Name, got[1].Name)
	}
	for i, w := range []kueuetest.Workload{a, b} {
		if name := got[i].Spec.PodSets[0].Claims[0].Prefix + "-9999"; len(name) > 253 || got[i].Spec.WorkloadRef.Name != w.Name {
			t.Errorf("%s for %s", name, w.Name)
		}
	}
}
