package shapes

import (
	"fmt"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	resourcev1 "k8s.io/api/resource/v1"
	kueueconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

const rackLabel = "example.com/rack"

// racks are a, b and c, three hosts with a GPU each, tied together by a label of the hosts. A gang has one GPU of rack a
// and another has two of rack b.
func racks(t *testing.T, prefix string) (f *fleet, standing []*batchv1.Job) {
	t.Helper()
	f = begin(t)
	for _, rack := range []string{"a", "b", "c"} {
		for i := range 3 {
			host := fmt.Sprintf("%s-%s%d", prefix, rack, i)
			f.host(host, map[string]string{rackLabel: rack})
			f.local(gpu, host, resourcev1.Device{Name: "gpu-0"})
		}
	}
	f.class(gpu, func(p *berth.AcceleratorPoolSpec) { p.Interconnect = &berth.Interconnect{NodeLabel: rackLabel} })
	f.run()
	one := f.seat(scene.Gang("one", gpu, 1, on(rackLabel, "a")), fmt.Sprintf("gpu-0 (%[1]s-a0) on %[1]s-a0 in rack a", prefix))
	two := f.seat(scene.Gang("two", gpu, 2, on(rackLabel, "b")),
		fmt.Sprintf("%[1]s-b0/gpu-0, %[1]s-b1/gpu-0 on %[1]s-b0, %[1]s-b1 in rack b", prefix))
	return f, []*batchv1.Job{one, two}
}

func TestRequiredInterconnect(t *testing.T) {
	f, standing := racks(t, "need")
	required := asks(berth.AnnotationInterconnect, berth.InterconnectRequired)
	const rackC = "need-c0/gpu-0, need-c1/gpu-0, need-c2/gpu-0 on need-c0, need-c1, need-c2 in rack c"
	// The second gang is kept this rack, because it is the first to end; without that it might be kept another one.
	first := f.seat(scene.Gang("first", gpu, 3, required, ends(600)), rackC)
	second := f.wait(scene.Gang("second", gpu, 3, required),
		"NoFreeSlice: 3 gpu are free, but not together: no rack has 3 (a has 2, b has 1)")
	never := f.wait(scene.Gang("never", gpu, 4, required), "NoFreeSlice: 4 gpu are needed in one rack, and the largest, a, has 3 in all")
	// One that fits beside the two that wait for something else does not wait with them.
	third := f.seat(scene.Gang("third", gpu, 2, required), "need-a1/gpu-0, need-a2/gpu-0 on need-a1, need-a2 in rack a")

	f.Finish(first)
	f.AwaitSeated(second)
	f.AwaitReserved(second, "True Reserved: "+rackC)
	f.DeleteJob(never)
	f.end(append(standing, second, third)...)
}

func TestPreferredInterconnect(t *testing.T) {
	f, standing := racks(t, "like")
	// Six are free, and of three racks two will do.
	five := f.seat(scene.Gang("five", gpu, 5, asks(berth.AnnotationInterconnect, berth.InterconnectPreferred)),
		"like-c0/gpu-0, like-c1/gpu-0, like-c2/gpu-0, like-a1/gpu-0, like-a2/gpu-0 on like-c0, like-c1, like-c2, like-a1, like-a2 across rack a, rack c")
	f.Finish(five)
	f.Eventually("the end of five", f.noneOf(five))
	// One rack has all three. Nothing is said: it is the default.
	three := f.seat(scene.Gang("three", gpu, 3), "like-c0/gpu-0, like-c1/gpu-0, like-c2/gpu-0 on like-c0, like-c1, like-c2 in rack c")
	rest := f.seat(scene.Gang("rest", gpu, 3),
		"like-a1/gpu-0, like-a2/gpu-0, like-b2/gpu-0 on like-a1, like-a2, like-b2 across rack a, rack b")
	f.end(append(standing, three, rest)...)
}

// ends gives the Job's Workload a maximumExecutionTimeSeconds.
func ends(seconds int) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Labels[kueueconstants.MaxExecTimeSecondsLabel] = strconv.Itoa(seconds) }
}

// TestSlicesInOneDomain: two slices of one pod set, tied together by an attribute of the devices.
func TestSlicesInOneDomain(t *testing.T) {
	f := begin(t)
	const label = "example.com/cube"
	cubes := []string{"x", "y", "z"}
	for i := range 12 {
		f.host(fmt.Sprintf("cube-%d", i), map[string]string{label: cubes[i/4]})
	}
	f.pairs("cubes", func(i int, d *resourcev1.Device) {
		d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"cube": {StringValue: &cubes[i/2]}}
	})
	f.class(pair, func(p *berth.AcceleratorPoolSpec) {
		p.Interconnect = &berth.Interconnect{DeviceAttribute: driver(pair) + "/cube"}
	})
	f.run()

	x := f.seat(scene.Gang("x", pair, 2, on(label, "x")), "pair-0 (cubes) on cube-0, cube-1 in cube x")
	y := f.seat(scene.Gang("y", pair, 2, on(label, "y")), "pair-2 (cubes) on cube-4, cube-5 in cube y")
	required := asks(berth.AnnotationSlices, "2", berth.AnnotationInterconnect, berth.InterconnectRequired)
	first := f.seat(scene.Gang("first", pair, 4, required), "pair-4, pair-5 (cubes) on cube-8, cube-9, cube-10, cube-11 in cube z")
	f.equalSlices(first, 2)
	second := f.wait(scene.Gang("second", pair, 4, required), "NoFreeSlice: 2 pair are free, but not together: no cube has 2 (x has 1, y has 1)")
	f.Finish(y)
	f.AwaitSeated(second)
	f.AwaitReserved(second, "True Reserved: pair-2, pair-3 (cubes) on cube-4, cube-5, cube-6, cube-7 in cube y")
	f.end(x, first, second)
}
