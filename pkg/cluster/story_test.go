package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/snapshot"
)

const (
	driver = "tpu.example.com"
	pool   = "pod-a"
)

// tpu is the pool of KEP-4815: 16 hosts in a 4x4 grid, as 2x2, 4x4, 4x8 and 8x8 devices.
func tpu(t testing.TB) *snapshot.Snapshot {
	s := dratest.Load(t, "../../test/testdata/kep4815-multihost.yaml")
	s.AcceleratorPools = []*berth.AcceleratorPool{dratest.Pool(driver)}
	return s
}

// ask is a gang of pods with one claim for one device each.
func ask(class string, pods int, cpu int64) gang.Gang {
	return gang.Gang{Key: gang.Key{Namespace: "ml", Name: "a"}, PodSets: []gang.PodSet{{
		Name: "main", Count: pods, Requests: map[string]int64{"cpu": cpu * 1000, "pods": 1000},
		Claims: []gang.Claim{{PodClaim: "tpu", Requests: []gang.Request{{Name: "r", Class: class, Count: 1}}}},
	}}}
}

func pod(name, node, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
}

// reserve records a decision as the controller does.
func reserve(name string, d placement.Decision) *berth.GangReservation {
	return kueuetest.Record("ml", name, d)
}

func workload(name string, pods int32, cpu string) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "wl-" + name, UID: types.UID("wl-uid-" + name)},
		Spec:       kueue.WorkloadSpec{PodSets: []kueue.PodSet{{Name: "main", Count: pods, Template: corev1.PodTemplateSpec{Spec: pod("x", "", cpu).Spec}}}},
	}
}

func devices(d placement.Decision) []string {
	var names []string
	for _, ps := range d.PodSets {
		for _, c := range ps.Claims {
			for _, in := range c.Instances {
				for _, dev := range in.Devices {
					names = append(names, dev.Name)
				}
			}
		}
	}
	return names
}

func TestOneHostShortOfCPU(t *testing.T) { // Scenario 1.
	s := tpu(t)
	s.Pods = []*corev1.Pod{pod("x", "node-1", "31")}
	c := cluster.New()
	d := placement.FirstFit{}.Place(ask("tpu-4x4", 4, 4), c.World(s))
	if !d.Fits() {
		t.Fatal(d.Refusal)
	}
	if got := devices(d); slices.Contains(got, "tpu-4x4-00") || len(got) != 1 {
		t.Errorf("took %v", got)
	}
	if len(d.PodSets[0].Hosts) != 4 || slices.Contains(d.PodSets[0].Hosts, "node-1") {
		t.Errorf("hosts %v", d.PodSets[0].Hosts)
	}

	for _, n := range s.Nodes {
		if n.Name != "node-1" {
			s.Pods = append(s.Pods, pod("on-"+n.Name, n.Name, "29"))
		}
	}
	d = placement.FirstFit{}.Place(ask("tpu-8x8", 16, 4), c.World(s))
	want := "HostsBusy: no tpu-8x8 is free: 1 of 1 has no room: host node-0 needs 4 cpu, has 3 (pod ml/on-node-0), " +
		"host node-1 needs 4 cpu, has 1 (pod ml/x), host node-2 needs 4 cpu, has 3 (pod ml/on-node-2), " +
		"too little room also on node-3, node-4, node-5, node-6, node-7 and 8 more"
	if d.Fits() || d.Refusal.Error() != want || !d.Proved {
		t.Errorf("got  %v\nwant %s", d.Refusal, want)
	}
	evidence := []reason.Evidence{
		{Kind: "host", Name: "node-0", Code: reason.HostsBusy, Detail: "needs 4 cpu, has 3"},
		{Kind: "pod", Name: "ml/on-node-0", Code: reason.HostsBusy, Detail: "on host node-0"},
		{Kind: "host", Name: "node-1", Code: reason.HostsBusy, Detail: "needs 4 cpu, has 1"},
		{Kind: "pod", Name: "ml/x", Code: reason.HostsBusy, Detail: "on host node-1"},
	}
	if diff := cmp.Diff(evidence, d.Refusal.Evidence[:4]); diff != "" || len(d.Refusal.Evidence) != 16 {
		t.Errorf("%d pieces of evidence, of the first: %s", len(d.Refusal.Evidence), diff)
	}
}

func TestReservationAndItsClaimsTakeOnce(t *testing.T) {
	s := tpu(t)
	c := cluster.New()
	d := placement.FirstFit{}.Place(ask("tpu-4x4", 4, 1), c.World(s))
	r := reserve("a", d)
	s.Reservations = []*berth.GangReservation{r}
	dev := r.Spec.PodSets[0].Claims[0].Devices[0]
	claim := dratest.Claim("ml", "berth.a-0", dratest.Result(driver, pool, dev.Device))
	claim.Annotations = map[string]string{berth.AnnotationReservationUID: "uid-a"}
	s.ResourceClaims = []*resourcev1.ResourceClaim{claim}
	w := c.World(s)
	if len(w.Ledger.Holdings()) != 1 || len(w.Ledger.Overdrawn()) != 0 {
		t.Errorf("holdings %v, overdrawn %v", w.Ledger.Holdings(), w.Ledger.Overdrawn())
	}

	// The reservation is released when it says so and no claim is left, not earlier.
	r = r.DeepCopy()
	r.Status.Phase = berth.PhaseReleasing
	s.Reservations = []*berth.GangReservation{r}
	if got := len(c.World(s).Ledger.Holdings()); got != 1 {
		t.Errorf("%d holdings while the claim exists", got)
	}
	s.ResourceClaims = nil
	if got := len(c.World(s).Ledger.Holdings()); got != 0 {
		t.Errorf("%d holdings after release", got)
	}
	// A claim outlives its reservation.
	s.Reservations, s.ResourceClaims = nil, []*resourcev1.ResourceClaim{claim}
	if got := len(c.World(s).Ledger.Holdings()); got != 1 {
		t.Errorf("%d holdings of a claim without reservation", got)
	}
}

func TestSeatsCountUntilPodsAreBound(t *testing.T) {
	s := tpu(t)
	c := cluster.New()
	d := placement.FirstFit{}.Place(ask("tpu-4x4", 4, 20), c.World(s))
	s.Reservations = []*berth.GangReservation{reserve("a", d)}
	s.Workloads = []*kueue.Workload{workload("a", 4, "20")}
	host := d.PodSets[0].Hosts[0]
	room := func(w placement.World) int { return w.Ledger.Room(host, map[string]int64{"cpu": 1000}) }
	if got := room(c.World(s)); got != 12 {
		t.Errorf("room beside a reserved seat is %d", got)
	}
	bound := pod("a-0", host, "20")
	bound.Labels = map[string]string{berth.LabelReservation: "a"}
	s.Pods = []*corev1.Pod{bound}
	if got := room(c.World(s)); got != 12 {
		t.Errorf("room beside a bound pod is %d", got)
	}
	without := c.WorldWithout(s, types.NamespacedName{Namespace: "ml", Name: "a"})
	if got := room(without); got != 32 {
		t.Errorf("room without the gang is %d", got)
	}
	if r := placement.Recheck(ask("tpu-4x4", 4, 20), d, without); r != nil {
		t.Error(r)
	}
	s.Pods = append(s.Pods, pod("stranger", host, "20"))
	r := placement.Recheck(ask("tpu-4x4", 4, 20), d, c.WorldWithout(s, types.NamespacedName{Namespace: "ml", Name: "a"}))
	if want := "SliceLost: host node-0 needs 20 cpu, has 12 (pod ml/stranger)"; r == nil || r.Error() != want {
		t.Errorf("got %v, want %s", r, want)
	}
}

func TestSeatsFollowThePodsOfTheirRanks(t *testing.T) {
	s := tpu(t)
	c := cluster.New()
	d := placement.FirstFit{}.Place(ask("tpu-4x4", 4, 20), c.World(s))
	r := reserve("a", d)
	r.Spec.Owner = berth.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "a", UID: "job-a"}
	s.Reservations = []*berth.GangReservation{r}
	s.Workloads = []*kueue.Workload{workload("a", 4, "20")}
	host := d.PodSets[0].Hosts[0]
	made := func(cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
		p := kueuetest.NewPod(r, 0)
		p.Spec.Containers = pod("x", "", cpu).Spec.Containers
		for _, f := range change {
			f(p)
		}
		return p
	}
	bound := func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.SchedulingGates = host, nil }
	succeeded := func(p *corev1.Pod) { bound(p); p.Status.Phase = corev1.PodSucceeded }
	failed := func(p *corev1.Pod) { bound(p); p.Status.Phase = corev1.PodFailed }
	strange := func(p *corev1.Pod) { p.OwnerReferences = nil }
	for _, row := range []struct {
		name string
		pods []*corev1.Pod
		room int
	}{
		{"nobody has come", nil, 12},
		{"its pod waits and takes more than the template", []*corev1.Pod{made("24")}, 8},
		{"its pod waits and takes less than its former one", []*corev1.Pod{made("25"), made("24")}, 7},
		{"its pod waits, and a stranger is bound", []*corev1.Pod{made("21"), made("3", bound, strange)}, 8},
		{"its pod runs", []*corev1.Pod{made("24", bound)}, 8},
		{"its pod runs, and its successor waits", []*corev1.Pod{made("24", bound), made("24")}, 8},
		{"its pod failed", []*corev1.Pod{made("24", failed)}, 12},
		{"its pod failed, and its successor waits", []*corev1.Pod{made("24", failed), made("24")}, 8},
		{"it succeeded", []*corev1.Pod{made("24", succeeded)}, 32},
		{"it succeeded in a former run", []*corev1.Pod{made("24", succeeded), made("24")}, 8},
		{"a stranger waits", []*corev1.Pod{made("24", strange)}, 12},
		{"a stranger succeeded", []*corev1.Pod{made("24", succeeded, strange)}, 12},
	} {
		s.Pods = row.pods
		for name, w := range map[string]placement.World{"kept up": c.World(s), "built anew": cluster.Scratch(s)} {
			if got := w.Ledger.Room(host, map[string]int64{"cpu": 1000}); got != row.room {
				t.Errorf("%s, %s: there is room for %d, not for %d", row.name, name, got, row.room)
			}
		}
		if got := c.WorldWithout(s, types.NamespacedName{Namespace: "ml", Name: "a"}).Ledger.Room(host, map[string]int64{"cpu": 1000}); got != 32 {
			t.Errorf("%s: without the gang there is room for %d", row.name, got)
		}
	}
}

func TestGenerationInProgress(t *testing.T) { // Scenario 6.
	for name, keep := range map[string]int{"devices first": 1, "counters first": 0} {
		s := tpu(t)
		next := s.ResourceSlices[keep].DeepCopy()
		next.Name, next.Spec.Pool.Generation = "next", 2
		s.ResourceSlices = append(s.ResourceSlices, next)
		d := placement.FirstFit{}.Place(ask("tpu-4x4", 4, 1), cluster.New().World(s))
		want := map[string]string{
			"devices first":  "PoolIncomplete: no tpu-4x4 can be given out: pool tpu.example.com/pod-a: 1 of 2 slices of generation 2 are published",
			"counters first": "PoolIncomplete: no tpu-4x4 is published: pool tpu.example.com/pod-a: 1 of 2 slices of generation 2 are published",
		}[name]
		if d.Fits() || d.Refusal.Error() != want {
			t.Errorf("%s: %v", name, d.Refusal)
		}
	}
}

func TestDroppedDeviceStaysCharged(t *testing.T) { // Scenario 5.
	s := tpu(t)
	c := cluster.New()
	d := placement.FirstFit{}.Place(ask("tpu-4x4", 4, 1), c.World(s))
	s.Reservations = []*berth.GangReservation{reserve("a", d)}
	for i, sl := range s.ResourceSlices {
		sl = sl.DeepCopy()
		sl.Spec.Pool.Generation = 2
		sl.Spec.Devices = slices.DeleteFunc(sl.Spec.Devices, func(d resourcev1.Device) bool { return d.Name == "tpu-4x4-00" })
		s.ResourceSlices[i] = sl
	}
	w := c.World(s)
	for _, dev := range w.Inventory.Pool(inventory.PoolID{Driver: driver, Name: pool}).Devices {
		inside := slices.ContainsFunc(dev.Hosts, func(h string) bool { return slices.Contains(d.PodSets[0].Hosts, h) })
		if w.Ledger.Free(dev) == inside {
			t.Errorf("%s on %v: free is %v", dev.Name, dev.Hosts, w.Ledger.Free(dev))
		}
	}
}

func TestQuarantine(t *testing.T) { // Scenario 37.
	s := tpu(t)
	r := reserve("a", placement.Decision{})
	r.Status.Phase = berth.PhaseReleasing
	r.Status.Quarantine = []berth.QuarantinedShare{{Node: "node-5", Driver: driver, Pool: pool}}
	s.Reservations = []*berth.GangReservation{r}
	d := placement.FirstFit{}.Place(ask("tpu-8x8", 16, 1), cluster.New().World(s))
	if want := "Quarantined: no tpu-8x8 is free: 1 of 1 is out of use: host node-5 may still run a pod that nobody can see"; d.Fits() || d.Refusal.Error() != want {
		t.Error(d.Refusal)
	}
	d = placement.FirstFit{}.Place(ask("tpu-2x2", 15, 1), cluster.New().World(s))
	if !d.Fits() || slices.Contains(d.PodSets[0].Hosts, "node-5") {
		t.Error(d)
	}
}

// print is everything that matters of a world.
func print(w placement.World) string {
	text := fmt.Sprint(w.Ledger.Holdings(), w.Ledger.Overdrawn(), w.Ledger.HeldHosts())
	for _, h := range w.Inventory.Hosts() {
		host, _ := w.Inventory.Host(h)
		text += fmt.Sprint(host.Name, host.Blocked, w.Ledger.Blockers(h), w.Ledger.Quarantined(h), w.Ledger.Room(h, map[string]int64{"cpu": 1000}), "\n")
	}
	for _, p := range w.Inventory.Pools() {
		text += fmt.Sprint(p.ID, p.Generation, p.Slices, p.Problem, p.Counters, "\n")
		for _, d := range p.Devices {
			text += fmt.Sprint(d.Name, d.Hosts, d.Charge, d.Taints, w.Ledger.Free(d), w.Ledger.Holders(d), "\n")
		}
	}
	for _, c := range w.Inventory.Classes() {
		text += c.Name + c.State.String()
		for _, d := range c.Devices {
			text += " " + d.ID()
		}
	}
	return text
}

func TestWorldDependsOnlyOnTheSnapshot(t *testing.T) {
	s := tpu(t)
	warm := cluster.New()
	for i, class := range []string{"tpu-4x4", "tpu-4x4", "tpu-2x2"} {
		name := fmt.Sprint("r", i)
		pods := map[string]int{"tpu-4x4": 4, "tpu-2x2": 3}[class]
		d := placement.FirstFit{}.Place(ask(class, pods, 3), warm.World(s))
		s.Reservations = append(s.Reservations, reserve(name, d))
		s.Workloads = append(s.Workloads, workload(name, int32(pods), "3"))
		for j, dev := range devices(d) {
			claim := dratest.Claim("ml", fmt.Sprintf("berth.%s-%d", name, j), dratest.Result(driver, pool, dev))
			claim.Annotations = map[string]string{berth.AnnotationReservationUID: "uid-" + name}
			s.ResourceClaims = append(s.ResourceClaims, claim)
		}
	}
	s.ResourceClaims = append(s.ResourceClaims,
		dratest.Claim("x", "gone", dratest.Result(driver, pool, "vanished")),
		dratest.Claim("x", "twice", dratest.Result(driver, pool, "tpu-4x4-00")))
	s.Pods = []*corev1.Pod{pod("p", "node-3", "2"), pod("q", "node-3", "1"), pod("r", "node-9", "7")}
	s.DeviceTaintRules = []*resourcev1.DeviceTaintRule{{Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1.DeviceTaintSelector{Device: ptr("tpu-2x2-11")}, Taint: resourcev1.DeviceTaint{Key: "b", Effect: "NoExecute"},
	}}, {Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1.DeviceTaintSelector{Device: ptr("tpu-2x2-11")}, Taint: resourcev1.DeviceTaint{Key: "a", Effect: "NoSchedule"},
	}}}
	want := print(cluster.New().World(s))
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 1))
		shuffle(rng, s.Nodes)
		shuffle(rng, s.ResourceSlices)
		shuffle(rng, s.DeviceClasses)
		shuffle(rng, s.ResourceClaims)
		shuffle(rng, s.Reservations)
		shuffle(rng, s.Workloads)
		shuffle(rng, s.Pods)
		shuffle(rng, s.DeviceTaintRules)
		if diff := cmp.Diff(want, print(cluster.New().World(s))); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if diff := cmp.Diff(want, print(warm.World(s))); diff != "" {
			t.Fatalf("seed %d, warm: %s", seed, diff)
		}
	}
}

func shuffle[T any](rng *rand.Rand, list []T) {
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

func ptr[T any](v T) *T { return &v }
