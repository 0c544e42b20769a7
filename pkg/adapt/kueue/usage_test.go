package kueue_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
)

func TestUsage(t *testing.T) {
	gang := func(change func(kueuetest.Workload)) *kueue.Workload {
		w := kueuetest.NewWorkload(kueuetest.NewJob("a", "tpu-4x4", 4)).QuotaReserved(kueuetest.Start)
		w.Status.Admission.PodSetAssignments[0].ResourceUsage = corev1.ResourceList{
			"berth.dev/shares": resource.MustParse("4"), corev1.ResourceCPU: resource.MustParse("6"),
		}
		change(w)
		return w.Workload
	}
	succeeded := func(pods int32) func(kueuetest.Workload) {
		return func(w kueuetest.Workload) {
			w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: kueuetest.PodSet, Count: pods}}
		}
	}
	share := adaptkueue.Quota{Flavor: kueuetest.Flavor, Resource: "berth.dev/shares"}
	cpu := adaptkueue.Quota{Flavor: kueuetest.Flavor, Resource: "cpu"}
	for name, row := range map[string]struct {
		wl   *kueue.Workload
		want map[adaptkueue.Quota]int64
	}{
		"all":                {gang(func(kueuetest.Workload) {}), map[adaptkueue.Quota]int64{share: 4, cpu: 6}},
		"one pod succeeded":  {gang(succeeded(1)), map[adaptkueue.Quota]int64{share: 3, cpu: 5}},
		"all pods succeeded": {gang(succeeded(4)), map[adaptkueue.Quota]int64{share: 0, cpu: 0}},
		"more than all":      {gang(succeeded(9)), map[adaptkueue.Quota]int64{share: 0, cpu: 0}},
		"no pod is admitted, and more than none succeeded": {gang(func(w kueuetest.Workload) {
			succeeded(9)(w)
			w.Spec.PodSets[0].Count = 0
			w.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](0)
		}), map[adaptkueue.Quota]int64{share: 4, cpu: 6}},
		"less than none": {gang(succeeded(-1)), map[adaptkueue.Quota]int64{share: 4, cpu: 6}},
		"admitted again with the three that are left": {gang(func(w kueuetest.Workload) {
			succeeded(1)(w)
			w.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](3)
			w.Status.Admission.PodSetAssignments[0].ResourceUsage["berth.dev/shares"] = resource.MustParse("3")
		}), map[adaptkueue.Quota]int64{share: 3, cpu: 6}},
		"an unknown pod set succeeded": {gang(func(w kueuetest.Workload) {
			w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "gone", Count: 1}}
		}), map[adaptkueue.Quota]int64{share: 4, cpu: 6}},
		"evicted, with quota still": {gang(func(w kueuetest.Workload) { w.Evicted() }), map[adaptkueue.Quota]int64{share: 4, cpu: 6}},
		"finished":                  {gang(func(w kueuetest.Workload) { w.Finished() }), nil},
		"quota unset": {gang(func(w kueuetest.Workload) {
			w.Condition(kueue.WorkloadQuotaReserved, false, kueuetest.Start)
		}), nil},
		"no admission": {gang(func(w kueuetest.Workload) { w.Status.Admission = nil }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := adaptkueue.Usage(row.wl); !maps.Equal(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestRunning(t *testing.T) {
	quota := func() kueuetest.Workload {
		return kueuetest.NewWorkload(kueuetest.NewJob("a", "tpu-4x4", 4)).QuotaReserved(kueuetest.Start)
	}
	for name, row := range map[string]struct {
		wl   kueuetest.Workload
		want bool
	}{
		"no quota": {kueuetest.NewWorkload(kueuetest.NewJob("a", "tpu-4x4", 4)), false},
		"quota":    {quota(), true},
		"admitted": {quota().Admitted(), true},
		"evicted":  {quota().Admitted().Evicted(), false},
		"finished": {quota().Admitted().Finished(), false},
	} {
		if got := adaptkueue.Running(row.wl.Workload); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
