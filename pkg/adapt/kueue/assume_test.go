package kueue_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
)

// TestAssumedCount: one pod set counts min(parallelism, completions) pods for each of its Jobs.
func TestAssumedCount(t *testing.T) {
	for name, row := range map[string]struct {
		parallelism, completions *int32
		jobs, want               int32
	}{
		"both":            {ptr.To[int32](4), ptr.To[int32](8), 1, 4},
		"the other way":   {ptr.To[int32](8), ptr.To[int32](4), 1, 4},
		"no completions":  {ptr.To[int32](8), nil, 1, 8},
		"no parallelism":  {nil, ptr.To[int32](8), 1, 1},
		"neither":         {nil, nil, 1, 1},
		"several Jobs":    {ptr.To[int32](4), ptr.To[int32](4), 3, 12},
		"more than int32": {ptr.To[int32](math.MaxInt32), ptr.To[int32](math.MaxInt32), math.MaxInt32, math.MaxInt32},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &batchv1.JobSpec{Parallelism: row.parallelism, Completions: row.completions}
			wl := adaptkueue.Assume(&metav1.ObjectMeta{Name: "j"}, metav1.GroupVersionKind{}, adaptkueue.AssumedPodSet{Name: "main", Jobs: row.jobs, Spec: spec})
			if got := wl.Spec.PodSets[0].Count; got != row.want {
				t.Errorf("%d pods, want %d", got, row.want)
			}
		})
	}
}

// TestAdmit takes the first flavor of each group that exists, and leaves a real admission alone.
func TestAdmit(t *testing.T) {
	cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq"}}
	cq.Spec.ResourceGroups = []kueue.ResourceGroup{
		{CoveredResources: []corev1.ResourceName{"berth.dev/shares"}, Flavors: []kueue.FlavorQuotas{{Name: "gone"}, {Name: "tpu"}}},
		{CoveredResources: []corev1.ResourceName{"cpu", "memory"}, Flavors: []kueue.FlavorQuotas{{Name: "gone"}}},
	}
	lq := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: kueuetest.Namespace, Name: "lq"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}}
	q := adaptkueue.NewQueues([]*kueue.LocalQueue{lq}, []*kueue.ClusterQueue{cq}, []*kueue.ResourceFlavor{kueuetest.NewFlavor("tpu")}, nil, nil)

	wl := kueuetest.NewWorkload(kueuetest.NewJob("j", "tpu-4x4", 4))
	wl.Spec.QueueName = "lq"
	admitted := q.Admit(wl.Workload)
	want := &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{
		Name: kueuetest.PodSet, Count: ptr.To[int32](4), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"berth.dev/shares": "tpu"},
	}}}
	if diff := cmp.Diff(want, admitted.Status.Admission); diff != "" {
		t.Error(diff)
	}
	if wl.Status.Admission != nil {
		t.Error("the Workload itself was changed")
	}
	wl.QuotaReserved(kueuetest.Start)
	if got := q.Admit(wl.Workload); got != wl.Workload || q.QueueOf(got) != kueuetest.Queue {
		t.Error("an admission was replaced")
	}
}

// TestPriorityOf: the Workload's own, then its class, of either kind.
func TestPriorityOf(t *testing.T) {
	q := adaptkueue.NewQueues(nil, nil, nil,
		[]*kueue.WorkloadPriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 10}},
		[]*schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 20}})
	for name, row := range map[string]struct {
		priority *int32
		ref      *kueue.PriorityClassRef
		want     int32
	}{
		"nothing":        {nil, nil, 0},
		"its own":        {ptr.To[int32](5), kueue.NewWorkloadPriorityClassRef("high"), 5},
		"Workload class": {nil, kueue.NewWorkloadPriorityClassRef("high"), 10},
		"Pod class":      {nil, kueue.NewPodPriorityClassRef("high"), 20},
		"no such class":  {nil, kueue.NewPodPriorityClassRef("low"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			wl := &kueue.Workload{Spec: kueue.WorkloadSpec{Priority: row.priority, PriorityClassRef: row.ref}}
			if got := q.PriorityOf(wl); got != row.want {
				t.Errorf("priority %d, want %d", got, row.want)
			}
		})
	}
}

// TestSlice: what a reservation holds, in one sentence, with the instances of a claim apart.
func TestSlice(t *testing.T) {
	job := kueuetest.NewJob("j", "tpu-4x4", 2)
	res := kueuetest.NewReservation("r", kueuetest.NewWorkload(job), job, "dev-0", "h0", "h1")
	if got, want := adaptkueue.Slice(res), "dev-0 (pod-a) on h0, h1"; got != want {
		t.Errorf("got %s", got)
	}
	c := &res.Spec.PodSets[0].Claims[0]
	c.PodsPerClaim = 1
	second := c.Devices[0]
	second.Instance, second.Device = 1, "dev-1"
	c.Devices = append(c.Devices, second)
	sets := adaptkueue.Reserved(res)
	if claims := sets[0].Claims; len(claims) != 2 || claims[1].Instance != 1 || claims[1].Devices[0].Device != "dev-1" {
		t.Errorf("claims %+v", claims)
	}
}
