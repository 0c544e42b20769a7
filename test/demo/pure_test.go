package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/demo/witness"
)

const sentence = "no tpu-8x8 is free: 1 of 1 is held by "

// midway is the middle of a small story: train-a holds "left" (node-0, node-10) and its rank 1 runs; train-b waits for it;
// train-c is new.
func midway() *witness.Observation {
	o := &witness.Observation{
		Slices: []resourcev1.ResourceSlice{{Spec: resourcev1.ResourceSliceSpec{
			Driver: "d", Pool: resourcev1.ResourcePool{Name: "p"},
			Devices: []resourcev1.Device{spanning("left", "node-0", "node-10"), spanning("single", "node-2"), spanning("lost", "node-99")},
		}}},
		Claims: []resourcev1.ResourceClaim{
			{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "berth.a-0", Labels: map[string]string{berth.LabelReservation: "ra"}},
				Status:     resourcev1.ResourceClaimStatus{Allocation: holding("left")},
			},
			{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: intruder}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: berthNamespace, Name: "berth.probe"}},
		},
		Reservations: []berth.GangReservation{{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ra"},
			Spec:       berth.GangReservationSpec{Owner: berth.OwnerReference{Name: first, UID: first}},
		}},
	}
	for _, name := range []string{"node-10", "node-0", "node-2", "node-1"} {
		o.Nodes = append(o.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}})
	}
	for _, name := range []string{second, first, large} { // the last one is not there yet
		job := gang(name, "tpu-4x4", 2)
		job.UID = types.UID(name)
		o.Jobs = append(o.Jobs, *job)
	}
	for rank, node := range []string{"", "node-10"} {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, OwnerReferences: []metav1.OwnerReference{{UID: first, Controller: ptr.To(true)}},
			Labels: map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(rank)},
		}}
		pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodPending
		if node != "" {
			pod.Status.Phase = corev1.PodRunning
		}
		o.Pods = append(o.Pods, pod)
	}
	message := sentence + namespace + "/ra"
	o.Workloads = []kueue.Workload{{
		ObjectMeta: metav1.ObjectMeta{Name: "wb", OwnerReferences: []metav1.OwnerReference{{UID: large, Controller: ptr.To(true)}}},
		Status: kueue.WorkloadStatus{
			Conditions: []metav1.Condition{
				{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue},
				{Type: berth.ConditionGangReserved, Status: metav1.ConditionFalse, Reason: "NoFreeSlice", Message: message},
			},
			AdmissionChecks: []kueue.AdmissionCheckState{{Name: checkName, State: kueue.CheckStatePending, Message: message}},
		},
	}}
	return o
}

func spanning(name string, hosts ...string) resourcev1.Device {
	return resourcev1.Device{Name: name, NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts}},
	}}}}
}

func holding(device string) *resourcev1.AllocationResult {
	return &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Driver: "d", Pool: "p", Device: device},
	}}}
}

func TestPicture(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*witness.Observation)
		want   string
	}{
		{"midway", func(*witness.Observation) {}, `
+-------------+-------------+
| node-0   a- | node-1    . |
| node-2    . | node-10  a1 |
+-------------+-------------+
a  train-a   2 pods, tpu-4x4    holds left; 1 of 2 pods run
b  train-b   2 pods, tpu-4x4    waits: no tpu-8x8 is free: 1 of 1 is held by team/ra
c  train-c   2 pods, tpu-4x4    is in the queue
x  shortcut  an ordinary claim  holds nothing
`},
		{"what must not be shows", func(o *witness.Observation) {
			o.Claims[1].Status.Allocation = holding("single")
			o.Pods[1].Spec.NodeName = "node-2"
		}, `
+----------------+----------------+
| node-0      a- | node-1       . |
| node-2  a1?+x- | node-10     a- |
+----------------+----------------+
a  train-a   2 pods, tpu-4x4    holds left; 1 of 2 pods run
b  train-b   2 pods, tpu-4x4    waits: no tpu-8x8 is free: 1 of 1 is held by team/ra
c  train-c   2 pods, tpu-4x4    is in the queue
x  shortcut  an ordinary claim  holds single
`},
		{"the end", func(o *witness.Observation) {
			o.Jobs[1].Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
			o.Pods[1].Status.Phase = corev1.PodSucceeded
			o.Jobs = o.Jobs[1:2]
		}, `
+-------------+-------------+
| node-0   a- | node-1    . |
| node-2    . | node-10  a- |
+-------------+-------------+
a  train-a   2 pods, tpu-4x4    has finished, gives back left
x  shortcut  an ordinary claim  holds nothing
`},
		{"a device on an unknown host", func(o *witness.Observation) {
			o.Claims, o.Reservations, o.Jobs = o.Claims[1:2], nil, nil
			o.Claims[0].Status.Allocation = holding("lost")
		}, `
+-------------+-------------+
| node-0    . | node-1    . |
| node-2    . | node-10   . |
+-------------+-------------+
x  shortcut  an ordinary claim  holds lost
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := midway()
			test.change(o)
			if have := "\n" + picture(o).Text(false); have != test.want {
				t.Errorf("drawn:%s\nwanted:%s", have, test.want)
			}
		})
	}
}

func TestWaits(t *testing.T) {
	message := sentence + namespace + "/ra"
	for _, test := range []struct {
		name   string
		change func(*witness.Observation)
		want   string
	}{
		{"as it should", func(*witness.Observation) {}, ""},
		{"no quota", func(o *witness.Observation) { o.Workloads[0].Status.Conditions[0].Status = metav1.ConditionFalse },
			"Workload wb has no quota: False NoFreeSlice: " + message},
		{"another reason", func(o *witness.Observation) { o.Workloads[0].Status.Conditions[1].Reason = "WaitingTurn" },
			"GangReserved of Workload wb reads\n  False WaitingTurn: " + message + "\nand should read\n  False NoFreeSlice: " + message},
		{"the check says something else", func(o *witness.Observation) { o.Workloads[0].Status.AdmissionChecks[0].Message = "wait" },
			"check berth of Workload wb should be Pending with the same sentence"},
		{"the check is Ready", func(o *witness.Observation) { o.Workloads[0].Status.AdmissionChecks[0].State = kueue.CheckStateReady },
			"check berth of Workload wb should be Pending with the same sentence"},
		{"it has a pod", func(o *witness.Observation) { o.Pods[0].OwnerReferences[0].UID = large },
			"Job train-b has 1 pods although it waits"},
		{"no Workload", func(o *witness.Observation) { o.Workloads = nil }, "Job train-b has no Workload"},
		{"no Job", func(o *witness.Observation) { o.Jobs = nil }, "Job train-b does not exist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := midway()
			test.change(o)
			err := waits(o, large, "NoFreeSlice", message)
			if (err == nil) != (test.want == "") || (err != nil && !strings.HasPrefix(err.Error(), test.want)) {
				t.Errorf("it says %v and should say %q", err, test.want)
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	denied := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "resourceclaims"}, intruder, errors.New(why))
	}
	fence := "ValidatingAdmissionPolicy 'berth-claim-status' with binding 'berth-claim-status' denied request: device d is Berth's."
	have, err := refusal(denied(fence))
	if err != nil || have != "device d is Berth's." {
		t.Errorf("refusal is %q, %v", have, err)
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"accepted":       {nil, "the write around Berth was accepted"},
		"access rights":  {denied("User cannot update"), "not at policy berth-claim-status"},
		"another policy": {denied("ValidatingAdmissionPolicy 'other' denied request: no"), "not at policy berth-claim-status"},
		"conflict":       {apierrors.NewConflict(schema.GroupResource{}, intruder, errors.New(fence)), "not at policy berth-claim-status"},
	} {
		if _, err := refusal(test.err); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v does not say %q", name, err, test.want)
		}
	}
}

func TestFreeHost(t *testing.T) {
	o := midway()
	got, err := freeHost(o)
	if err != nil || got.Device != "single" {
		t.Errorf("free is %+v, %v", got, err)
	}
	o.Claims[1].Status.Allocation = holding("single")
	o.Slices[0].Spec.Devices = o.Slices[0].Spec.Devices[:2]
	if got, err := freeHost(o); err == nil {
		t.Errorf("%s is said to be free", got.Device)
	}
}

func TestWrap(t *testing.T) {
	long := strings.Repeat("word ", 30)
	for _, test := range [][2]string{
		{"  short ", "  short\n"},
		{"", "\n"},
		{"  " + long, "  " + strings.TrimSpace(strings.Repeat("word ", 21)) + "\n      " + strings.TrimSpace(strings.Repeat("word ", 9)) + "\n"},
		{"  " + strings.Repeat("x", 200), "  " + strings.Repeat("x", 200) + "\n"},
		{" a " + strings.Repeat("x", 200), " a " + strings.Repeat("x", 200) + "\n"},
	} {
		if have := wrap(test[0]); have != test[1] {
			t.Errorf("%q becomes\n%q, not\n%q", test[0], have, test[1])
		}
	}
}

func TestDrains(t *testing.T) {
	o := midway()
	o.Reservations = append(o.Reservations, berth.GangReservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "target"},
		Spec:       berth.GangReservationSpec{Target: true, Owner: berth.OwnerReference{Name: first, UID: first}},
	})
	want := "no tpu-8x8 is free: 1 of 1 is held by team/ra; waits for pod-a/tpu-8x8: drains when team/ra ends"
	if got := drains(o, first); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
