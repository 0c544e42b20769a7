package dra

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/snapshot"
)

const cached = "tpu.example.com"

// racks is a snapshot of n pools, each one slice of 32 devices on two hosts, and two classes.
func racks(n int) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		AcceleratorPools: []*berth.AcceleratorPool{dratest.Pool(cached)},
		DeviceClasses:    []*resourcev1.DeviceClass{dratest.ByTopology("even", cached, "0"), dratest.ByTopology("odd", cached, "1")},
	}
	for p := range n {
		a, b := fmt.Sprintf("node-%d-a", p), fmt.Sprintf("node-%d-b", p)
		s.Nodes = append(s.Nodes, dratest.Node(a), dratest.Node(b))
		slice := dratest.NewSlice(fmt.Sprintf("slice-%d", p), cached, fmt.Sprintf("pool-%d", p))
		for d := range 32 {
			slice = slice.Device(dratest.NewDevice(fmt.Sprintf("d-%d", d), strconv.Itoa(d%2)).On(a, b))
		}
		slice.UID, slice.ResourceVersion = types.UID(slice.Name), "1"
		s.ResourceSlices = append(s.ResourceSlices, slice.ResourceSlice)
	}
	return s
}

// listed is what the next list from an informer looks like: equal items, all of them somewhere else.
func listed(s *snapshot.Snapshot) *snapshot.Snapshot {
	next := *s
	next.Nodes, next.ResourceSlices, next.DeviceClasses = elsewhere(s.Nodes), elsewhere(s.ResourceSlices), elsewhere(s.DeviceClasses)
	return &next
}

func elsewhere[T any](in []*T) []*T {
	items := make([]T, len(in))
	out := make([]*T, len(in))
	for i := range in {
		items[i] = *in[i]
		out[i] = &items[i]
	}
	return out
}

func pool(v *View, n int) *inventory.Pool {
	return v.Inventory.Pool(inventory.PoolID{Driver: cached, Name: fmt.Sprintf("pool-%d", n)})
}

func TestCacheReadsNoPoolTwice(t *testing.T) {
	c := NewCache()
	s := racks(3)
	first := c.Read(s)
	again := c.Read(listed(s))
	for n := range 3 {
		if pool(first, n) != pool(again, n) {
			t.Errorf("pool-%d did not change and was read again", n)
		}
	}

	next := listed(s)
	next.ResourceSlices[1] = next.ResourceSlices[1].DeepCopy()
	next.ResourceSlices[1].ResourceVersion = "2"
	next.ResourceSlices[1].Spec.Devices[0].Name = "renamed"
	changed := c.Read(next)
	for n := range 3 {
		if same := pool(first, n) == pool(changed, n); same != (n != 1) {
			t.Errorf("after a change of pool-1, pool-%d is the one of before: %v", n, same)
		}
	}
	if pool(changed, 1).Device("renamed") == nil {
		t.Error("the new name is not there")
	}

	// The same name and version, but another object: an API server that was restored from a backup counts anew.
	next.ResourceSlices[1] = next.ResourceSlices[1].DeepCopy()
	next.ResourceSlices[1].UID = "successor"
	if pool(c.Read(next), 1) == pool(changed, 1) {
		t.Error("a successor was taken for its predecessor")
	}
}

func TestCacheTellsUnversionedSlicesApart(t *testing.T) {
	c := NewCache()
	s := racks(1)
	s.ResourceSlices[0].UID, s.ResourceSlices[0].ResourceVersion = "", ""
	first := c.Read(s)
	if pool(c.Read(s), 0) != pool(first, 0) {
		t.Error("the very same object was read again")
	}
	s.ResourceSlices[0] = s.ResourceSlices[0].DeepCopy()
	s.ResourceSlices[0].Spec.Devices[0].Name = "renamed"
	if pool(c.Read(s), 0).Device("renamed") == nil {
		t.Error("an object from another file was taken for the one before")
	}
}

// A change without a new version is not seen, which shows that classes are not evaluated again either.
func TestCacheJudgesNoSliceTwice(t *testing.T) {
	c := NewCache()
	s := racks(2)
	before := c.Read(s).Inventory.Class("odd")
	next := listed(s)
	next.ResourceSlices[0].Spec.Devices = nil // A lie: an API server would have given it another version.
	if after := c.Read(next).Inventory.Class("odd"); len(after.Devices) != len(before.Devices) || len(after.Devices) != 32 {
		t.Errorf("%d devices, before %d", len(after.Devices), len(before.Devices))
	}
}

func TestCacheKeepsOnlyTheLastRead(t *testing.T) {
	c := NewCache()
	s := racks(4)
	for round := range 5 {
		next := listed(s)
		for _, sl := range next.ResourceSlices {
			sl.ResourceVersion = strconv.Itoa(round)
		}
		c.Read(next)
	}
	if len(c.pools) != 4 || len(c.verdicts) != 4 {
		t.Errorf("%d pools and %d verdicts are kept of 4 slices", len(c.pools), len(c.verdicts))
	}
	s.ResourceSlices = s.ResourceSlices[:1]
	c.Read(s)
	if len(c.pools) != 1 || len(c.verdicts) != 1 {
		t.Errorf("%d pools and %d verdicts are kept of 1 slice", len(c.pools), len(c.verdicts))
	}
	s.AcceleratorPools, s.DeviceClasses = nil, nil
	c.Read(s)
	if len(c.pools) != 0 || len(c.verdicts) != 0 {
		t.Errorf("%d pools and %d verdicts are kept of nothing", len(c.pools), len(c.verdicts))
	}
}

// What a Read costs when nothing changed does not depend on what a pool or an expression costs to read.
func TestSecondReadAllocatesLittle(t *testing.T) {
	s := racks(64)
	cold := testing.AllocsPerRun(3, func() { NewCache().Read(listed(s)) })
	c := NewCache()
	c.Read(s)
	warm := testing.AllocsPerRun(3, func() { c.Read(listed(s)) })
	if warm*20 > cold {
		t.Errorf("a Read allocates %.0f times when nothing changed, and %.0f times from nothing", warm, cold)
	}
	t.Logf("cold %.0f, warm %.0f", cold, warm)
}

func BenchmarkRead(b *testing.B) {
	s := racks(64)
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			NewCache().Read(s)
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		c := NewCache()
		c.Read(s)
		b.ReportAllocs()
		for b.Loop() {
			c.Read(listed(s))
		}
	})
	b.Run("one of 64 pools changed", func(b *testing.B) {
		c := NewCache()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			next := listed(s)
			next.ResourceSlices[7].ResourceVersion = strconv.Itoa(i)
			c.Read(next)
		}
	})
	b.Run("a node label changed", func(b *testing.B) {
		c := NewCache()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			next := listed(s)
			next.Nodes[0].Labels = map[string]string{corev1.LabelHostname: next.Nodes[0].Name, "i": strconv.Itoa(i)}
			c.Read(next)
		}
	})
}
