package kueue_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// A fold keeps the hosts of a driver that restarts for as long as it asks for the same.
func TestFoldKeepsHostsWhileItIsTheSame(t *testing.T) {
	const nics = "nic.example.com"
	at := func(name, class string, created int) *berth.CapacityFold {
		f := &berth.CapacityFold{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "a", Generation: 1, CreationTimestamp: metav1.Unix(int64(created), 0)}}
		f.Spec = berth.CapacityFoldSpec{DeviceClasses: []string{class}, Flavor: name, Targets: []berth.FoldTarget{{Kind: berth.FoldCohort, Name: "research"}}}
		return f
	}
	for name, row := range map[string]struct {
		change func(*berth.CapacityFold)
		keeps  bool
	}{
		"nothing but the status": {func(f *berth.CapacityFold) { f.Status.Shares = 1 }, true},
		"the spec":               {func(f *berth.CapacityFold) { f.Generation = 2 }, false},
		"another of that name":   {func(f *berth.CapacityFold) { f.UID = "b" }, false},
		"it is being deleted":    {func(f *berth.CapacityFold) { f.DeletionTimestamp = &metav1.Time{Time: kueuetest.Start} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot.Snapshot{
				AcceleratorPools: []*berth.AcceleratorPool{dratest.Pool(driver), dratest.Pool(nics)},
				DeviceClasses:    []*resourcev1.DeviceClass{dratest.ByTopology("gpu", driver, "1"), dratest.ByTopology("nic", nics, "1")},
				Nodes:            []*corev1.Node{dratest.Node("node-1")},
				ResourceSlices: []*resourcev1.ResourceSlice{
					dratest.NewSlice("g", driver, "g").Device(dratest.NewDevice("g", "1").On("node-1")).ResourceSlice,
					dratest.NewSlice("n", nics, "n").Device(dratest.NewDevice("n", "1").On("node-1")).ResourceSlice,
				},
			}
			old, young := at("old", "gpu", 1), at("young", "nic", 2)
			var compiler adaptkueue.FoldCompiler
			overlaps := func() bool {
				folds := compiler.Compile([]*berth.CapacityFold{young, old}, dra.NewCache().Read(s).Inventory)
				return folds[len(folds)-1].Problem != nil
			}
			if !overlaps() {
				t.Fatal("the younger fold has hosts of the older one")
			}
			s.ResourceSlices[0].Spec.Pool.ResourceSliceCount = 2
			row.change(old)
			if got := overlaps(); got != row.keeps {
				t.Errorf("the older fold keeps its hosts: %v, want %v", got, row.keeps)
			}
		})
	}
}
