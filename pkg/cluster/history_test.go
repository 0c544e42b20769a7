package cluster_test

import (
	"encoding/json"
	"errors"
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

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/snapshot"
	"github.com/berth-dev/berth/test/race"
)

// history changes a snapshot as the API server's clients do: objects are replaced, never written to.
type history struct {
	t    *testing.T
	rng  *rand.Rand
	s    *snapshot.Snapshot
	kept *cluster.Cluster
	// versions: objects have a resourceVersion, as all but those from files do.
	versions bool
	number   int
	original *snapshot.Snapshot
}

// stamp gives a changed object a version of its own.
func (h *history) stamp(obj metav1.Object) {
	h.number++
	if obj.GetUID() == "" {
		obj.SetUID(types.UID(fmt.Sprint("uid-", h.number)))
	}
	if h.versions {
		obj.SetResourceVersion(fmt.Sprint(h.number))
	}
}

func add[P metav1.Object](h *history, list *[]P, obj P) {
	h.stamp(obj)
	at := 0
	if len(*list) > 0 {
		at = h.rng.IntN(len(*list) + 1)
	}
	*list = slices.Insert(slices.Clone(*list), at, obj)
}

// change replaces one object of a list by a copy that do has changed.
func change[T any, P interface {
	*T
	metav1.Object
	DeepCopy() P
}](h *history, list *[]P, do func(P)) {
	if len(*list) == 0 {
		return
	}
	*list = slices.Clone(*list)
	i := h.rng.IntN(len(*list))
	obj := (*list)[i].DeepCopy()
	do(obj)
	h.stamp(obj)
	(*list)[i] = obj
}

func remove[P any](h *history, list *[]P) {
	if len(*list) == 0 {
		return
	}
	i := h.rng.IntN(len(*list))
	*list = slices.Delete(slices.Clone(*list), i, i+1)
}

func (h *history) node() string { return fmt.Sprint("node-", h.rng.IntN(18)) }

func (h *history) reservation() *berth.GangReservation {
	if len(h.s.Reservations) == 0 {
		return &berth.GangReservation{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "none"}}
	}
	return h.s.Reservations[h.rng.IntN(len(h.s.Reservations))]
}

// moves are what can happen, most of it several times as often as the rest.
var moves = []func(*history){
	(*history).newPod, (*history).newPod, (*history).newPod, (*history).newRankedPod, (*history).newRankedPod, (*history).changePod, (*history).changePod, (*history).changePod,
	func(h *history) { remove(h, &h.s.Pods) },
	(*history).newForeignClaim, (*history).newClaim, (*history).newClaim, (*history).newClaim,
	func(h *history) { remove(h, &h.s.ResourceClaims) },
	func(h *history) {
		change(h, &h.s.ResourceClaims, func(c *resourcev1.ResourceClaim) {
			if h.rng.IntN(3) == 0 {
				c.Status.Allocation = nil
			}
		})
	},
	(*history).reserve, (*history).reserve, (*history).reserve, (*history).reserve, (*history).changeReservation, (*history).changeReservation,
	func(h *history) { remove(h, &h.s.Reservations) },
	(*history).changeWorkload,
	func(h *history) { remove(h, &h.s.Workloads) },
	(*history).changeNode, (*history).changeNode,
	(*history).changeSlice, (*history).nextGeneration,
	(*history).changeHardware,
	(*history).reorder,
}

func (h *history) newPod() {
	p := pod(fmt.Sprint("p", h.number), h.node(), fmt.Sprint(h.rng.IntN(4)))
	switch h.rng.IntN(6) {
	case 0:
		p.Spec.NodeName = ""
	case 1, 2, 3:
		r := h.reservation()
		p.Labels = map[string]string{berth.LabelReservation: r.Name}
		if len(r.Spec.PodSets) > 0 && len(r.Spec.PodSets[0].Hosts) > 0 {
			p.Spec.NodeName = r.Spec.PodSets[0].Hosts[h.rng.IntN(len(r.Spec.PodSets[0].Hosts))]
		}
		p.Labels["kueue.x-k8s.io/podset"] = []string{"main", "other"}[h.rng.IntN(2)]
	}
	add(h, &h.s.Pods, p)
}

// newRankedPod is one that the pod policy has pinned to the place of its rank.
func (h *history) newRankedPod() {
	r := h.reservation()
	if len(r.Spec.PodSets) == 0 {
		return
	}
	rank := h.rng.IntN(len(r.Spec.PodSets[0].Hosts))
	p := kueuetest.NewPod(r, rank)
	p.Name, p.UID = fmt.Sprint("p", h.number), ""
	p.Spec.Containers = pod("x", "", fmt.Sprint(h.rng.IntN(4))).Spec.Containers
	if h.rng.IntN(3) == 0 {
		p.Spec.NodeName = r.Spec.PodSets[0].Hosts[rank]
	}
	add(h, &h.s.Pods, p)
}

func (h *history) changePod() {
	change(h, &h.s.Pods, func(p *corev1.Pod) {
		switch h.rng.IntN(6) {
		case 0:
			p.Status.Phase = corev1.PodSucceeded
		case 1:
			p.Spec.NodeName = h.node()
		case 2:
			p.Labels = map[string]string{berth.LabelReservation: h.reservation().Name}
		case 3:
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
		case 4:
			now := metav1.Now()
			p.DeletionTimestamp = &now
		}
	})
}

func (h *history) newForeignClaim() {
	result := dratest.Result(driver, pool, []string{"tpu-4x4-00", "tpu-2x2-11", "tpu-4x8-0", "vanished", "gone"}[h.rng.IntN(5)])
	switch h.rng.IntN(6) {
	case 0:
		result.Pool = "no-pool"
	case 1:
		result.AdminAccess = ptr(true)
	}
	c := dratest.Claim("x", fmt.Sprint("c", h.number), result)
	requirement := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{h.node(), h.node()}}
	switch h.rng.IntN(3) {
	case 0:
		requirement = corev1.NodeSelectorRequirement{Key: "rack", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}
	case 1:
		add(h, &h.s.ResourceClaims, c)
		return
	}
	c.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{requirement}}}}
	add(h, &h.s.ResourceClaims, c)
}

// newClaim allocates a claim of a reservation, with or without its story.
func (h *history) newClaim() {
	r := h.reservation()
	if len(r.Spec.PodSets) == 0 {
		return
	}
	devices := r.Spec.PodSets[0].Claims[0].Devices
	d := devices[h.rng.IntN(len(devices))]
	c := dratest.Claim("ml", fmt.Sprint("berth.", r.Name, "-", h.number), dratest.Result(d.Driver, d.Pool, d.Device))
	c.Annotations = map[string]string{berth.AnnotationReservationUID: string(r.UID)}
	c.Labels = map[string]string{berth.LabelReservation: r.Name}
	if h.rng.IntN(3) > 0 {
		story, err := json.Marshal(devices)
		if err != nil {
			h.t.Fatal(err)
		}
		c.Annotations[berth.AnnotationDevices] = string(story)
	}
	add(h, &h.s.ResourceClaims, c)
}

func (h *history) reserve() {
	w := h.kept.World(h.s)
	d := placement.FirstFit{}.Place(ask([]string{"tpu-4x4", "tpu-2x2"}[h.rng.IntN(2)], 4, 1), w)
	if !d.Fits() {
		return
	}
	name := fmt.Sprint("r", h.number)
	r := reserve(name, d)
	r.Spec.Target = h.rng.IntN(8) == 0
	r.Spec.Owner = berth.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: types.UID("job-" + name)}
	add(h, &h.s.Reservations, r)
	if h.rng.IntN(4) > 0 {
		add(h, &h.s.Workloads, workload(name, 4, "2"))
	}
}

func (h *history) changeReservation() {
	change(h, &h.s.Reservations, func(r *berth.GangReservation) {
		switch h.rng.IntN(4) {
		case 0:
			r.Status.Phase = berth.PhaseReleasing
		case 1:
			r.Status.Phase = berth.PhaseHandedOver
		case 2:
			r.Status.Quarantine = append(r.Status.Quarantine, berth.QuarantinedShare{Node: h.node(), Driver: driver, Pool: pool})
		case 3:
			r.Status.Quarantine = nil
		}
	})
}

func (h *history) changeWorkload() {
	change(h, &h.s.Workloads, func(w *kueue.Workload) {
		if h.rng.IntN(2) == 0 {
			w.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(fmt.Sprint(1 + h.rng.IntN(3)))
		}
	})
}

func (h *history) changeNode() {
	switch h.rng.IntN(8) {
	case 0:
		remove(h, &h.s.Nodes)
		return
	case 1:
		if name := h.node(); !slices.ContainsFunc(h.s.Nodes, func(n *corev1.Node) bool { return n.Name == name }) {
			add(h, &h.s.Nodes, dratest.Node(name))
		}
		return
	}
	change(h, &h.s.Nodes, func(n *corev1.Node) {
		switch h.rng.IntN(7) {
		case 0:
			n.Status.Conditions[0].Status = corev1.ConditionFalse
		case 1:
			n.Status.Conditions[0].Status = corev1.ConditionTrue
		case 2:
			n.Spec.Unschedulable = !n.Spec.Unschedulable
		case 3:
			n.Labels[corev1.LabelHostname] = h.node()
		case 4:
			n.Labels["rack"] = []string{"a", "b"}[h.rng.IntN(2)]
		case 5:
			n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse(fmt.Sprint(8 + h.rng.IntN(8)))
		case 6:
			n.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
		}
	})
}

// changeSlice changes the content of a slice without a new generation, as some drivers do.
func (h *history) changeSlice() {
	change(h, &h.s.ResourceSlices, func(s *resourcev1.ResourceSlice) {
		if len(s.Spec.Devices) == 0 {
			return
		}
		i := h.rng.IntN(len(s.Spec.Devices))
		switch h.rng.IntN(3) {
		case 0:
			s.Spec.Devices = slices.Delete(s.Spec.Devices, i, i+1)
		case 1:
			s.Spec.Devices[i].Taints = append(s.Spec.Devices[i].Taints, resourcev1.DeviceTaint{Key: "broken", Effect: "NoExecute"})
		case 2:
			s.Spec.Devices[i].Name = fmt.Sprint("renamed-", h.number)
		}
	})
}

// nextGeneration publishes one slice, or all that there were at first, at a new generation.
func (h *history) nextGeneration() {
	if h.rng.IntN(2) == 0 {
		change(h, &h.s.ResourceSlices, func(s *resourcev1.ResourceSlice) { s.Spec.Pool.Generation++ })
		return
	}
	h.s.ResourceSlices = nil
	for _, s := range h.original.ResourceSlices {
		s = s.DeepCopy()
		s.Spec.Pool.Generation = int64(100 + h.number)
		if h.rng.IntN(3) == 0 && len(s.Spec.Devices) > 0 {
			s.Spec.Devices = s.Spec.Devices[:h.rng.IntN(len(s.Spec.Devices))]
		}
		h.stamp(s)
		h.s.ResourceSlices = append(h.s.ResourceSlices, s)
	}
}

func (h *history) changeHardware() {
	switch h.rng.IntN(8) {
	case 0:
		remove(h, &h.s.AcceleratorPools)
	case 1, 2:
		// Of two that select the same the older counts, and then the name.
		p := dratest.Pool(driver)
		p.Name = fmt.Sprint("fleet-", h.rng.IntN(3))
		p.Spec.RankLabel = []string{"", "rack"}[h.rng.IntN(2)]
		p.CreationTimestamp = metav1.Unix(int64(h.rng.IntN(3)), 0)
		if len(h.s.AcceleratorPools) < 2 && !slices.ContainsFunc(h.s.AcceleratorPools, func(o *berth.AcceleratorPool) bool { return o.Name == p.Name }) {
			add(h, &h.s.AcceleratorPools, p)
		} else {
			change(h, &h.s.AcceleratorPools, func(o *berth.AcceleratorPool) { o.CreationTimestamp, o.UID = p.CreationTimestamp, "" })
		}
	case 3:
		change(h, &h.s.AcceleratorPools, func(p *berth.AcceleratorPool) { p.Status.Hosts.Total++ })
	case 4:
		change(h, &h.s.AcceleratorPools, func(p *berth.AcceleratorPool) { p.Spec.RankLabel = []string{"", "rack"}[h.rng.IntN(2)] })
	case 5:
		change(h, &h.s.AcceleratorPools, func(p *berth.AcceleratorPool) {
			p.Spec.PoolSelector = &berth.PoolSelector{Names: []string{pool, "no-pool"}[h.rng.IntN(2):]}
		})
	case 6:
		if len(h.s.DeviceClasses) > 2 {
			remove(h, &h.s.DeviceClasses)
		} else {
			h.s.DeviceClasses = slices.Clone(h.original.DeviceClasses)
		}
	case 7:
		if len(h.s.DeviceTaintRules) > 0 {
			remove(h, &h.s.DeviceTaintRules)
			break
		}
		add(h, &h.s.DeviceTaintRules, &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "rule"}, Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1.DeviceTaintSelector{Device: ptr("tpu-2x2-11")}, Taint: resourcev1.DeviceTaint{Key: "b", Effect: "NoExecute"},
		}})
	}
}

// reorder has the same objects at other places, or at other addresses, as a list from the API server has them.
func (h *history) reorder() {
	moved := func(n int, swap func(i, j int)) {
		if h.rng.IntN(2) == 0 {
			h.rng.Shuffle(n, swap)
		}
	}
	again(h, &h.s.Pods, moved)
	again(h, &h.s.ResourceClaims, moved)
	again(h, &h.s.Reservations, moved)
	again(h, &h.s.Workloads, moved)
	again(h, &h.s.Nodes, moved)
	again(h, &h.s.ResourceSlices, moved)
	again(h, &h.s.AcceleratorPools, moved)
}

func again[P interface{ DeepCopy() P }](h *history, list *[]P, moved func(int, func(i, j int))) {
	*list = slices.Clone(*list)
	moved(len(*list), func(i, j int) { (*list)[i], (*list)[j] = (*list)[j], (*list)[i] })
	if h.rng.IntN(2) == 0 {
		for i, obj := range *list {
			(*list)[i] = obj.DeepCopy()
		}
	}
}

// Invariant 5: whatever happened before, a World is what it is for somebody who has read nothing before.
func TestKeptUpEqualsBuiltAnew(t *testing.T) {
	var holdings, seats, vanished, back int
	seeds := 12
	if race.Enabled {
		seeds = 2 // One of each kind of versions.
	}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 17))
		kept := cluster.New()
		kept.Breached(func(err error) { t.Fatalf("seed %d: %v", seed, err) })
		h := &history{t: t, rng: rng, s: tpu(t), kept: kept, versions: seed%2 == 0, original: tpu(t)}
		former := *h.s
		for step := range 120 {
			for range 1 + rng.IntN(3) {
				moves[rng.IntN(len(moves))](h)
			}
			s := h.s
			if rng.IntN(12) == 0 {
				s = &former // Two who look at the same time may have looked at different times.
				back++
			}
			fail := func(what, diff string) {
				if diff != "" {
					t.Fatalf("seed %d, step %d: %s: kept up and built anew: %s", seed, step, what, diff)
				}
			}
			got, want := kept.World(s), cluster.Scratch(s)
			fail("inventory", cluster.DifferInventories(got.Inventory, want.Inventory))
			fail("ledger", ledger.Differ(got.Ledger, want.Ledger))
			for _, held := range got.Ledger.Holdings() {
				holdings++
				if got.Inventory.Device(held.Pool, held.Device) == nil {
					vanished++
				}
			}
			for _, name := range got.Inventory.Hosts() {
				for _, p := range got.Ledger.Blockers(name) {
					if p[len(p)-1] == ']' {
						seats++
					}
				}
			}
			without := []types.NamespacedName{{Namespace: "ml", Name: h.reservation().Name}, {Namespace: "ml", Name: h.reservation().Name}}
			got, want = kept.WorldWithout(s, without...), cluster.Scratch(s, without...)
			fail("without "+without[0].Name, ledger.Differ(got.Ledger, want.Ledger))
			// A World is the caller's own.
			got.Ledger.Use("node-1", "x/mine", map[string]int64{"cpu": 1})
			got.Ledger.Quarantine(inventory.PoolID{Driver: driver, Name: pool}, "node-2")
			if step%10 == 0 {
				former = *h.s
			}
		}
		if err := kept.Audit(); err != nil {
			t.Fatal(err)
		}
	}
	if holdings < 80*seeds || seats < 40*seeds || vanished < 4*seeds || back < 4*seeds {
		t.Errorf("too little variety: %d holdings, %d seats, %d vanished devices, %d times an older snapshot", holdings, seats, vanished, back)
	}
}

func TestAuditFindsABreach(t *testing.T) {
	s := tpu(t)
	c := cluster.New()
	var breaches []error
	c.Breached(func(err error) { breaches = append(breaches, err) })
	if err := c.Audit(); err != nil {
		t.Error("nothing was read yet:", err)
	}
	s.ResourceClaims = []*resourcev1.ResourceClaim{dratest.Claim("x", "a", dratest.Result(driver, pool, "tpu-4x4-00"))}
	c.World(s)
	if err := c.Audit(); err != nil || len(breaches) != 0 {
		t.Fatal(err, breaches)
	}
	c.Spoil()
	if got := len(c.World(s).Ledger.Holdings()); got != 0 {
		t.Fatalf("%d holdings in a spoiled ledger", got)
	}
	if err := c.Audit(); err == nil || len(breaches) != 1 || !errors.Is(breaches[0], err) {
		t.Fatal(err, breaches)
	}
	if got := len(c.World(s).Ledger.Holdings()); got != 1 {
		t.Errorf("%d holdings after the breach was found", got)
	}

	// What cannot be given back is noticed at once, and the World is right all the same.
	c.Spoil()
	s.ResourceClaims = nil
	if got := c.World(s); ledger.Differ(got.Ledger, cluster.Scratch(s).Ledger) != "" || len(breaches) != 2 {
		t.Error(breaches)
	}
	want := "device " + driver + "/" + pool + "/tpu-4x4-00 is to be given back by x/a, which does not hold it"
	if got := breaches[1].Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
