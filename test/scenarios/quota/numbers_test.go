package quota

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// ways in which hardware breaks.
type way int

const (
	silent way = iota
	cordoned
	deleted
	tainted
	invalid
	held
	ways
)

func (w way) String() string {
	return [...]string{"a host is not Ready", "a host is cordoned", "a Node is deleted", "a device is tainted", "the pool is invalid", "somebody else holds a device"}[w]
}

// numbers are shares in modes Physical and Live.
type numbers struct{ physical, live int64 }

func same(n int64) numbers { return numbers{n, n} }

// row is hardware under one fold and what quota it should give.
type row struct {
	name    string
	pools   []*pool
	classes []string
	// The host, device and pool that break, and the device that somebody else takes.
	host, device, taken string
	of                  *pool
	whole               numbers
	broken              [ways]numbers
	tiling              string
	fold                *berth.CapacityFold
}

const tiles = "True Tiles: …"

// table is the fleet. What each number is made of stands beside it.
func table(kep *pool) []*row {
	rack0, rack1 := newPool("nvl", "nvl-0", 18).whole("nvl72", 18, 0).whole("nvl36", 9, 0, 9), newPool("nvl", "nvl-1", 18).whole("nvl72", 18, 0).whole("nvl36", 9, 0, 9)
	large, small := newPool("mixed", "mixed-0", 8).whole("mixed-8", 8, 0).whole("mixed-4", 4, 0, 4), newPool("mixed", "mixed-1", 4).whole("mixed-4", 4, 0)
	odd := newPool("odd", "odd-0", 8).whole("odd-3", 3, 0, 3).whole("odd-4", 4, 0, 4)
	singly := newPool("gpus", "gpus-0", 4).parts("gpu")
	racks := newPool("gpuracks", "gpuracks-0", 4).whole("gpu-rack", 4, 0)
	return []*row{
		{
			name: "kep", pools: []*pool{kep}, classes: []string{"tpu-4x4", "tpu-8x8"},
			host: "node-5", device: "tpu-2x2-11", taken: "tpu-2x2-11", of: kep, tiling: tiles,
			whole:  same(16),
			broken: [ways]numbers{same(12), same(12), same(12), same(12), same(0), {16, 12}}, // one 4x4 less, whoever breaks it
		},
		{
			name: "nvl", pools: []*pool{rack0, rack1}, classes: []string{"nvl72", "nvl36"},
			host: "nvl-0-3", device: "nvl36-0", taken: "nvl36-0", of: rack0, tiling: tiles,
			whole:  same(36),
			broken: [ways]numbers{same(27), same(27), same(27), same(27), same(18), {36, 27}}, // half a rack, or a rack
		},
		{
			name: "mixed", pools: []*pool{large, small}, classes: []string{"mixed-8", "mixed-4"},
			host: "mixed-0-7", device: "mixed-4-1", taken: "mixed-4-1", of: large,
			tiling: "False NotTiling: mixed-8 fills 0 of 4 shares of pool mixed-1",
			whole:  same(12),
			broken: [ways]numbers{same(8), same(8), same(8), same(8), same(4), {12, 8}},
		},
		{
			name: "odd", pools: []*pool{odd}, classes: []string{"odd-3", "odd-4"},
			host: "odd-0-7", device: "odd-3-0", taken: "odd-4-1", of: odd,
			tiling: "False NotTiling: odd-3 fills 6 of 8 shares of pool odd-0",
			whole:  numbers{8, 6}, // two fours; free are two threes, the smallest class
			broken: [ways]numbers{
				silent: same(6), cordoned: same(6), deleted: same(6), // two threes, in mode Live as well
				tainted: {4, 3}, // the first four contains the tainted three; left are a four or a three that overlap
				invalid: same(0),
				held:    {8, 3}, // the second three stands on a host of the second four
			},
		},
		{
			name: "gpus", pools: []*pool{singly}, classes: []string{"gpu"},
			host: "gpus-0-2", device: "gpu-1-0", taken: "gpu-1-0", of: singly, tiling: tiles,
			whole:  same(16),
			broken: [ways]numbers{same(12), same(12), same(12), same(15), same(0), {16, 15}},
		},
		{
			name: "gpuracks", pools: []*pool{racks}, classes: []string{"gpu-rack"},
			host: "gpuracks-0-2", device: "gpu-rack-0", taken: "gpu-rack-0", of: racks, tiling: tiles,
			whole:  same(4),
			broken: [ways]numbers{same(0), same(0), same(0), same(0), same(0), {4, 0}},
		},
	}
}

// TestNumbers: what quota hardware gives when it is sound, broken in six ways, and mended, in both modes. All rows break at
// once, so that the longest wait, for hosts to count as silent, is waited for once.
func TestNumbers(t *testing.T) {
	s, _ := play(t)
	s.observe()
	kep := &pool{driver: "tpu.example.com", name: "pod-a"}
	rows := table(kep)
	var pools []*pool
	for _, r := range rows[1:] {
		pools = append(pools, r.pools...)
	}
	s.build(pools...)
	for _, r := range rows {
		r.fold = newFold("n-"+r.name, "n-"+r.name, berth.FoldPhysical, r.classes...)
		r.fold.Spec.PoolSelector = &berth.PoolSelector{}
		for _, p := range r.pools {
			r.fold.Spec.PoolSelector.Names = append(r.fold.Spec.PoolSelector.Names, p.name)
		}
		s.fold(r.fold)
	}
	for _, r := range rows {
		s.awaitQuota(r.fold, r.whole.physical)
		s.awaitCondition(r.fold, berth.FoldReady, "True Folded: …")
		s.awaitCondition(r.fold, berth.FoldTiling, r.tiling)
		s.awaitCondition(r.fold, berth.FoldFollowing, "True Following: …")
	}
	mode := berth.FoldPhysical
	weight := int32(1)
	switched := func() {
		mode = map[berth.FoldMode]berth.FoldMode{berth.FoldPhysical: berth.FoldLive, berth.FoldLive: berth.FoldPhysical}[mode]
		// A number falls at the second look. The second edit is one: the weight of an only target changes nothing.
		for range 2 {
			weight++
			for _, r := range rows {
				change(s, r.fold, func(f *berth.CapacityFold) { f.Spec.Mode, f.Spec.Targets[0].Weight = mode, ptr.To(weight) })
			}
			for _, r := range rows {
				s.Eventually("a look at "+r.fold.Name, func(ctx context.Context) error {
					_, err := s.lookedAt(ctx, r.fold.Name)
					return err
				})
			}
		}
	}
	check := func(what string, of func(*row) numbers) {
		for _, r := range rows {
			s.Eventually(fmt.Sprintf("%s, %s, mode %s", r.name, what, mode), func(ctx context.Context) error { return s.follows(ctx, r.fold.Name, of(r)) })
		}
	}
	for w := range ways {
		mend := make([]func(), len(rows))
		for i, r := range rows {
			mend[i] = s.breaks(w, r)
		}
		of := func(r *row) numbers { return r.broken[w] }
		check(w.String(), of)
		if w == silent {
			s.awaitEvent(rows[0].fold, "CapacityFell", "12 berth.dev/shares of flavor n-kep, 16 before: node-5 is not Ready (HostUnusable)")
		}
		switched()
		check(w.String(), of)
		for _, m := range mend {
			m()
		}
		check("mended after "+w.String(), func(r *row) numbers { return r.whole })
	}
}

// lookedAt is a fold whose status is of the spec as it is now; an error while it is not.
func (s *stage) lookedAt(ctx context.Context, name string) (*berth.CapacityFold, error) {
	f := &berth.CapacityFold{ObjectMeta: named(name)}
	if err := s.Client.Get(ctx, keyOf(f), f); err != nil {
		return nil, err
	}
	if f.Status.ObservedGeneration != f.Generation {
		return nil, fmt.Errorf("the status is of generation %d, the spec of %d", f.Status.ObservedGeneration, f.Generation)
	}
	return f, nil
}

// follows reports what keeps a fold that no gang holds anything of from following hardware of these numbers. Where a number
// is the one from before, the target says the same whether Berth has looked or not: so the status has to say what it saw.
func (s *stage) follows(ctx context.Context, name string, hardware numbers) error {
	f, err := s.lookedAt(ctx, name)
	if err != nil {
		return err
	}
	want := hardware.physical
	if f.Spec.Mode == berth.FoldLive {
		want = hardware.live
	}
	if seen := f.Status.Observed; int64(seen.Usable) != hardware.physical || int64(seen.Free) != hardware.live || int64(f.Status.Shares) != want {
		return fmt.Errorf("%d should be usable, %d free and %d the number; %s", hardware.physical, hardware.live, want, s.story(ctx, name))
	}
	if c := apimeta.FindStatusCondition(f.Status.Conditions, berth.FoldFollowing); c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != f.Generation {
		return fmt.Errorf("it does not follow: %v", c)
	}
	return s.stands(ctx, f, want)
}

// breaks breaks the hardware of a row in one way and returns how it is mended.
func (s *stage) breaks(w way, r *row) (mend func()) {
	s.Helper()
	host := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.host}}
	ok := func(err error) {
		s.Helper()
		if err != nil {
			s.Fatalf("%s, %s: %v", r.name, w, err)
		}
	}
	switch w {
	case silent:
		ok(s.Cluster.SilenceNode(s.Context(), r.host))
		return func() { ok(s.Cluster.ReviveNode(s.Context(), r.host)) }
	case cordoned:
		s.cordon(r.host, true)
		return func() { s.cordon(r.host, false) }
	case deleted:
		s.Get(host)
		ok(s.Client.Delete(s.Context(), host))
		return func() { s.again(host) }
	case tainted:
		rule := &resourcev1.DeviceTaintRule{
			ObjectMeta: metav1.ObjectMeta{Name: "broken-" + r.name},
			Spec: resourcev1.DeviceTaintRuleSpec{
				DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: ptr.To(r.of.driver), Pool: ptr.To(r.of.name), Device: ptr.To(r.device)},
				Taint:          resourcev1.DeviceTaint{Key: "repair", Effect: resourcev1.DeviceTaintEffectNoSchedule},
			},
		}
		s.make(rule)
		return func() { s.drop(rule) }
	case invalid:
		return s.invalidate(r.of)
	case held:
		return s.takes(r)
	}
	s.Fatalf("there is no way %d", w)
	return nil
}

// invalidate takes away a counter that devices of the pool consume.
func (s *stage) invalidate(p *pool) (mend func()) {
	s.Helper()
	slice := &resourcev1.ResourceSlice{}
	s.Eventually("the counters of "+p.name, func(ctx context.Context) error {
		var list resourcev1.ResourceSliceList
		if err := s.Client.List(ctx, &list); err != nil {
			return err
		}
		for i := range list.Items {
			if of := list.Items[i].Spec; of.Pool.Name == p.name && len(of.SharedCounters) > 0 {
				list.Items[i].DeepCopyInto(slice)
				return nil
			}
		}
		return fmt.Errorf("there are none")
	})
	sound := slice.DeepCopy().Spec.SharedCounters
	change(s, slice, func(sl *resourcev1.ResourceSlice) {
		sl.Spec.SharedCounters = sl.Spec.SharedCounters[:1]
		sl.Spec.SharedCounters[0].Name = "renamed"
	})
	return func() { change(s, slice, func(sl *resourcev1.ResourceSlice) { sl.Spec.SharedCounters = sound }) }
}

// takes has somebody else's claim hold a device.
func (s *stage) takes(r *row) (mend func()) {
	s.Helper()
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "taker-" + r.name}, Spec: s.Template(r.classes[0]).Spec.Spec,
	}
	s.make(claim)
	hosts := []string{r.host}
	for _, d := range r.of.devices {
		if d.name == r.taken {
			hosts = d.hosts
		}
	}
	s.Eventually("holding "+r.taken, func(ctx context.Context) error {
		claim.Status.Allocation = &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "slice", Driver: r.of.driver, Pool: r.of.name, Device: r.taken},
			}},
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts}},
			}}},
		}
		return s.Client.Status().Update(ctx, claim) // refused until the fence is off
	})
	return func() { s.drop(claim) }
}

// TestUnits: one GPU of a host and the whole host are no equal shares, and two folds may not count the same hosts. Nothing is
// written then, and the other folds go on.
func TestUnits(t *testing.T) {
	s, _ := play(t)
	both := newPool("both", "both-0", 4).parts("both-gpu").whole("both-rack", 4, 0)
	s.build(both)
	together := s.fold(newFold("u-together", "u-together", berth.FoldPhysical, "both-gpu", "both-rack"))
	s.awaitCondition(together, berth.FoldReady, "False FoldUnitMismatch: on host both-0-0 fit 4 devices of DeviceClass both-gpu or 1 of DeviceClass both-rack: "+
		"their shares are not the same amount of hardware")
	s.awaitCondition(together, berth.FoldFollowing, "False NotReady: …")

	singly := s.fold(newFold("u-singly", "u-singly", berth.FoldPhysical, "both-gpu"))
	s.awaitQuota(singly, 16)
	whole := s.fold(newFold("u-whole", "u-whole", berth.FoldPhysical, "both-rack"))
	s.awaitCondition(whole, berth.FoldReady, "False FoldOverlap: CapacityFold u-singly counts 4 hosts, the first of them both-0-0 already: "+
		"put the classes into one fold, or select pools or classes that share no host")
	for _, name := range []string{"u-together", "u-whole"} {
		var cohort kueue.Cohort
		cohort.Name = name
		if err := s.Client.Get(s.Context(), keyOf(&cohort), &cohort); err == nil {
			t.Errorf("Cohort %s was created for a fold that is not Ready", name)
		}
		var flavor kueue.ResourceFlavor
		flavor.Name = name
		if err := s.Client.Get(s.Context(), keyOf(&flavor), &flavor); err == nil {
			t.Errorf("ResourceFlavor %s was created for a fold that is not Ready", name)
		}
	}
	// The hosts are free for the other one when the first goes; its last value stays.
	s.drop(singly)
	s.awaitQuota(whole, 4)
	s.awaitQuota(singly, 16)
}
