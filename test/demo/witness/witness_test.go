package witness_test

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/demo/witness"
)

const (
	driver = "tpu.example.com"
	team   = "team"
)

func device(name string, hosts ...string) resourcev1.Device {
	return resourcev1.Device{Name: name, NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts}},
	}}}}
}

func owner(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
}

func allocated(name string) *resourcev1.AllocationResult {
	return &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "slice", Driver: driver, Pool: "pod-a", Device: name},
	}}}
}

// running is a gang of two, "train", that runs whole on hosts h1 and h2, which are the nodes n1 and n2. n3 is free, and
// the claim and the pod "shortcut" have nothing.
func running() *witness.Observation {
	o := &witness.Observation{
		Slices: []resourcev1.ResourceSlice{{Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, Pool: resourcev1.ResourcePool{Name: "pod-a"},
			Devices: []resourcev1.Device{device("pair", "h1", "h2"), device("one", "h1"), device("three", "h3")},
		}}},
		Jobs: []batchv1.Job{{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "train", UID: "train"},
			Spec:       batchv1.JobSpec{Parallelism: ptr.To[int32](2)},
		}},
		Workloads: []kueue.Workload{{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "job-train", UID: "job-train", OwnerReferences: owner("Job", "train")},
			Status: kueue.WorkloadStatus{Conditions: []metav1.Condition{{
				Type: berth.ConditionGangReserved, Status: metav1.ConditionTrue, Reason: "Reserved", Message: "pair",
			}}},
		}},
		Reservations: []berth.GangReservation{{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "job-train-1"},
			Spec: berth.GangReservationSpec{
				WorkloadRef: berth.WorkloadReference{Name: "job-train", UID: "job-train"},
				PodSets: []berth.ReservedPodSet{{Name: "main", Count: 2, Hosts: []string{"h1", "h2"}, Claims: []berth.ReservedClaim{{
					PodClaim: "tpu", Prefix: "berth.train", PodsPerClaim: 2,
					Devices: []berth.ReservedDevice{{Request: "slice", Driver: driver, Pool: "pod-a", Device: "pair"}},
				}}}},
			},
			Status: berth.GangReservationStatus{Phase: berth.PhaseHandedOver},
		}},
		Claims: []resourcev1.ResourceClaim{
			{
				ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "berth.train-0", Labels: map[string]string{berth.LabelReservation: "job-train-1"}},
				Status: resourcev1.ResourceClaimStatus{Allocation: allocated("pair"), ReservedFor: []resourcev1.ResourceClaimConsumerReference{
					{Resource: "workloads", UID: "job-train"}, {Resource: "pods", UID: "train-0"}, {Resource: "pods", UID: "train-1"},
				}},
			},
			{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "shortcut"}},
		},
		Pods: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "shortcut"}}},
	}
	for i := range 3 {
		o.Nodes = append(o.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("n%d", i+1), Labels: map[string]string{corev1.LabelHostname: fmt.Sprintf("h%d", i+1)},
		}})
	}
	for rank := range 2 {
		name := fmt.Sprintf("train-%d", rank)
		o.Pods = append(o.Pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: team, Name: name, UID: types.UID(name), OwnerReferences: owner("Job", "train"),
				Labels: map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(rank)},
			},
			Spec: corev1.PodSpec{
				NodeName:       fmt.Sprintf("n%d", rank+1),
				ResourceClaims: []corev1.PodResourceClaim{{Name: "tpu", ResourceClaimName: ptr.To("berth.train-0")}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		})
	}
	return o
}

// done is running after the end of "train".
func done() *witness.Observation {
	o := running()
	o.Jobs[0].Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	for i := range o.Pods[1:] {
		o.Pods[1+i].Status.Phase = corev1.PodSucceeded
	}
	o.Reservations, o.Claims = nil, o.Claims[1:]
	return o
}

func TestWhole(t *testing.T) {
	seating, err := running().Whole("train")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seating.Nodes, []string{"n1", "n2"}) || !slices.Equal(seating.Devices, []string{"pair"}) {
		t.Errorf("seated as %+v", seating)
	}

	type world = witness.Observation
	for _, test := range []struct {
		name   string
		change func(*world)
		want   string
	}{
		{"a pod is elsewhere", func(o *world) { o.Pods[2].Spec.NodeName = "n3" },
			"pod train-1 of rank 1 is on n3, its host in GangReservation job-train-1 is n2"},
		{"two pods have changed places", func(o *world) { o.Pods[1].Spec.NodeName, o.Pods[2].Spec.NodeName = "n2", "n1" },
			"pod train-0 of rank 0 is on n2, its host in GangReservation job-train-1 is n1\n" +
				"pod train-1 of rank 1 is on n1, its host in GangReservation job-train-1 is n2"},
		{"both pods are on one host", func(o *world) {
			o.Pods[2].Spec.NodeName = "n1"
			o.Reservations[0].Spec.PodSets[0].Hosts[1] = "h1"
		}, "ranks 0 and 1 of GangReservation job-train-1 share host h1\n" +
			"device pair of pool pod-a (driver tpu.example.com) spans [n1 n2], GangReservation job-train-1 says [n1 n1]"},
		{"a pod is not bound", func(o *world) {
			o.Pods[2].Spec.NodeName = ""
			o.Pods[2].Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: berth.GateSeating}}
			o.Pods[2].Status.Phase = corev1.PodPending
			o.Pods[2].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "gated"}}
		}, "pod train-1 of rank 1 is Pending, gated by berth.dev/seating: gated"},
		{"a pod is missing", func(o *world) { o.Pods = o.Pods[:2] }, "Job train has no pod of rank 1"},
		{"a pod is being deleted", func(o *world) { o.Pods[1].DeletionTimestamp = &metav1.Time{} }, "Job train has no pod of rank 0"},
		{"two pods of one rank", func(o *world) {
			o.Pods = append(o.Pods, *o.Pods[2].DeepCopy())
			o.Pods[3].Name = "again"
		}, "pods train-1 and again of Job train are both of rank 1"},
		{"a rank beyond the gang", func(o *world) { o.Pods[2].Labels[batchv1.JobCompletionIndexAnnotation] = "2" },
			"pod train-1 of Job train has no rank below 2\nJob train has no pod of rank 1"},
		{"the claim holds another device", func(o *world) { o.Claims[0].Status.Allocation = allocated("three") },
			"ResourceClaim berth.train-0 holds [three of pool pod-a (driver tpu.example.com)], " +
				"GangReservation job-train-1 says pair of pool pod-a (driver tpu.example.com)"},
		{"the claim holds nothing", func(o *world) { o.Claims[0].Status.Allocation = nil },
			"ResourceClaim berth.train-0 holds [], GangReservation job-train-1 says pair of pool pod-a (driver tpu.example.com)"},
		{"the claim is gone", func(o *world) { o.Claims = o.Claims[1:] }, "ResourceClaim berth.train-0 does not exist"},
		{"the claim is not reserved for a pod", func(o *world) { o.Claims[0].Status.ReservedFor = o.Claims[0].Status.ReservedFor[:2] },
			"ResourceClaim berth.train-0 is not reserved for pod train-1"},
		{"a pod names another claim", func(o *world) { o.Pods[1].Spec.ResourceClaims[0].ResourceClaimName = ptr.To("shortcut") },
			"pod train-0 does not name ResourceClaim berth.train-0"},
		{"another claim holds one of the hosts", func(o *world) { o.Claims[1].Status.Allocation = allocated("one") },
			"ResourceClaim shortcut holds host n1, which is one of GangReservation job-train-1"},
		{"a host is no node", func(o *world) { o.Nodes = o.Nodes[:1] },
			"host h2 of rank 1 is no node"},
		{"fewer hosts than pods", func(o *world) { o.Jobs[0].Spec.Parallelism = ptr.To[int32](3) },
			"GangReservation job-train-1 has 2 hosts, Job train 3 pods"},
		{"it is only planned", func(o *world) { o.Reservations[0].Status.Phase = berth.PhasePlanned },
			"GangReservation job-train-1 of Job train is Planned"},
		{"the user is told otherwise", func(o *world) {
			o.Workloads[0].Status.Conditions[0] = metav1.Condition{Type: berth.ConditionGangReserved, Status: metav1.ConditionFalse, Reason: "NoFreeSlice", Message: "none"}
		}, "Workload job-train of Job train does not say GangReserved: False NoFreeSlice: none"},
		{"the user is told nothing", func(o *world) { o.Workloads[0].Status.Conditions = nil },
			"Workload job-train of Job train does not say GangReserved: no condition GangReserved; "},
		{"two reservations", func(o *world) { o.Reservations = append(o.Reservations, o.Reservations[0]) },
			"Workload job-train of Job train has 2 GangReservations: True Reserved: pair"},
		{"no Workload", func(o *world) { o.Workloads = nil }, "Job train has no Workload"},
		{"no Job", func(o *world) { o.Jobs = nil }, "Job train does not exist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := running()
			test.change(o)
			_, err := o.Whole("train")
			says(t, err, test.want)
		})
	}
}

func TestFinished(t *testing.T) {
	type world = witness.Observation
	seating := witness.Seating{Job: "train", Nodes: []string{"n1", "n2"}}
	for _, test := range []struct {
		name   string
		change func(*world)
		want   string
	}{
		{"as it should", func(*world) {}, ""},
		{"a pod ran elsewhere", func(o *world) { o.Pods[2].Spec.NodeName = "n3" }, "pod train-1 of rank 1 ran on n3, its host was n2"},
		{"a pod runs on", func(o *world) { o.Pods[1].Status.Phase = corev1.PodRunning }, "pod train-0 of rank 0 is Running"},
		{"a pod is gone", func(o *world) { o.Pods = o.Pods[:2] }, "Job train has no pod of rank 1"},
		{"not complete", func(o *world) { o.Jobs[0].Status.Conditions = nil }, "Job train is not complete"},
		{"no Job", func(o *world) { o.Jobs = nil }, "Job train does not exist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := done()
			test.change(o)
			says(t, o.Finished(seating), test.want)
		})
	}
}

func TestNoTrace(t *testing.T) {
	says(t, done().NoTrace("berth-system"), "")
	o := running()
	says(t, o.NoTrace("berth-system"), "GangReservation job-train-1 is left (HandedOver)\nResourceClaim berth.train-0 is left")
	o.Reservations = nil
	says(t, o.NoTrace(team), "")
	o.Claims[0].Name, o.Claims[0].Finalizers = "renamed", []string{berth.FinalizerHold}
	says(t, o.NoTrace("berth-system"), "ResourceClaim renamed is left")
}

func TestNothing(t *testing.T) {
	type world = witness.Observation
	for _, test := range []struct {
		name   string
		change func(*world)
		want   string
	}{
		{"as it should", func(*world) {}, ""},
		{"the claim got a device", func(o *world) { o.Claims[1].Status.Allocation = allocated("three") }, "ResourceClaim shortcut holds [n3]"},
		{"the pod is bound", func(o *world) { o.Pods[0].Spec.NodeName = "n3" }, "pod shortcut is on n3"},
		{"no claim", func(o *world) { o.Claims = o.Claims[:1] }, "ResourceClaim shortcut does not exist"},
		{"no pod", func(o *world) { o.Pods = o.Pods[1:] }, "pod shortcut does not exist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := running()
			test.change(o)
			says(t, o.Nothing(team, "shortcut", "shortcut"), test.want)
		})
	}
}

func says(t *testing.T, err error, want string) {
	t.Helper()
	have := ""
	if err != nil {
		have = err.Error()
	}
	if have != want {
		t.Errorf("it says\n%s\nand should say\n%s", have, want)
	}
}
