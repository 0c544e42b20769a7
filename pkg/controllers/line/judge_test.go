package line

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/adapt/kueue/kueuetest"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
)

// judged is a gang with its reservation on pod-a/tpu-4x4-00, judged after a change.
type judged struct {
	*site
	res   *berth.GangReservation
	claim *resourcev1.ResourceClaim
}

func newJudged(t *testing.T) *judged {
	s := newSite()
	s.waits("a")
	j := &judged{site: s, res: s.gives(t, berth.PhaseReserved)}
	j.claim = ours(j.res)
	j.claim.Spec = s.ResourceClaimTemplates[0].Spec.Spec
	s.ResourceClaims = append(s.ResourceClaims, j.claim)
	return j
}

func (j *judged) verdict() string {
	r := &reconciler{Options: Options{Board: verdict.NewBoard()}}
	r.judge(j.view())
	if lost := r.Board.Lost(types.NamespacedName{Namespace: j.res.Namespace, Name: j.res.Name}); lost != nil {
		return lost.Error()
	}
	return ""
}

func (j *judged) taint(effect resourcev1.DeviceTaintEffect) {
	d := &j.ResourceSlices[0].Spec.Devices[0]
	d.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: effect}}
}

func (j *judged) notReady(host int) {
	j.Nodes[host].Status.Conditions[0].Status = corev1.ConditionUnknown
}

func (j *judged) taintHost(host int, effect corev1.TaintEffect) {
	j.Nodes[host].Spec.Taints = []corev1.Taint{{Key: "repair", Value: "true", Effect: effect}}
}

// pod adds the pod of a rank, bound to a node unless that is empty.
func (j *judged) pod(rank int, node string) *corev1.Pod {
	p := kueuetest.NewPod(j.res, rank)
	p.Spec.NodeName, p.Spec.SchedulingGates = node, nil
	p.Spec.Containers = j.Jobs[0].Spec.Template.Spec.DeepCopy().Containers
	j.Pods = append(j.Pods, p)
	return p
}

func unschedulablePod(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
}

func TestJudge(t *testing.T) {
	asks := func(name corev1.ResourceName, amount string) []corev1.Container {
		return []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(amount)}}}}
	}
	takes := func(j *judged, name corev1.ResourceName, amount string) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "stranger"}}
		p.Spec.NodeName, p.Spec.Containers = "pod-a-1", asks(name, amount)
		j.Pods = append(j.Pods, p)
	}
	stranger := func(j *judged) { takes(j, corev1.ResourceCPU, "32") }
	for _, row := range []struct {
		name   string
		change func(*judged)
		want   string
	}{
		{"all is well", func(*judged) {}, ""},
		{"all is well with its pods", func(j *judged) { j.pod(0, "pod-a-0"); j.pod(3, "") }, ""},
		{"its release has begun", func(j *judged) { j.Nodes = j.Nodes[1:]; j.res.Status.Phase = berth.PhaseReleasing }, ""},

		{"a taint that evicts", func(j *judged) { j.taint(resourcev1.DeviceTaintEffectNoExecute) }, "DeviceTainted: device tpu-4x4-00 in pool pod-a carries the taint broken:NoExecute"},
		{"a taint that only keeps away", func(j *judged) { j.taint(resourcev1.DeviceTaintEffectNoSchedule) }, ""},
		{"a taint that the claim bears", func(j *judged) {
			j.taint(resourcev1.DeviceTaintEffectNoExecute)
			j.claim.Spec = *j.claim.Spec.DeepCopy()
			j.claim.Spec.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{{Key: "broken", Operator: resourcev1.DeviceTolerationOpExists}}
		}, ""},
		{"a taint, and the claim is not there to bear it", func(j *judged) { j.taint(resourcev1.DeviceTaintEffectNoExecute); j.ResourceClaims = nil }, "DeviceTainted: device tpu-4x4-00 in pool pod-a carries the taint broken:NoExecute"},
		{"a taint, and the claim is still to be created", func(j *judged) {
			j.taint(resourcev1.DeviceTaintEffectNoExecute)
			j.ResourceClaims, j.res.Status.Phase = nil, berth.PhasePlanned
		}, ""},
		{"a taint, and the claim was created that does not bear it", func(j *judged) {
			j.taint(resourcev1.DeviceTaintEffectNoExecute)
			j.res.Status.Phase = berth.PhasePlanned
		}, "DeviceTainted: device tpu-4x4-00 in pool pod-a carries the taint broken:NoExecute"},
		{"the device is no longer published", func(j *judged) { j.ResourceSlices = j.ResourceSlices[1:] }, ""},

		{"a host is gone", func(j *judged) { j.Nodes = j.Nodes[1:] }, "HostMissing: host pod-a-0 is gone"},
		{"a host is gone whose pod runs", func(j *judged) { j.pod(0, "pod-a-0"); j.Nodes = j.Nodes[1:] }, "HostMissing: host pod-a-0 is gone"},
		{"a host is gone whose pod has ended", func(j *judged) { j.pod(0, "pod-a-0").Status.Phase = corev1.PodSucceeded; j.Nodes = j.Nodes[1:] }, ""},
		{"a host is gone whose rank succeeded, and so is its pod", func(j *judged) { j.Jobs[0].Status.CompletedIndexes = "0"; j.Nodes = j.Nodes[1:] }, ""},
		{"a host is gone whose rank has succeeded before, in another Job of that name", func(j *judged) {
			j.Jobs[0].UID, j.Jobs[0].Status.CompletedIndexes = "another", "0-3"
			j.Nodes = j.Nodes[1:]
		}, "HostMissing: host pod-a-0 is gone"},
		{"a host of another slice is gone", func(j *judged) { j.Nodes = j.Nodes[:7] }, ""},
		{"a host is out of service", func(j *judged) {
			j.pod(0, "pod-a-0")
			j.Nodes[0].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
		}, "SliceLost: host pod-a-0 is out of service"},

		{"a host is not Ready", func(j *judged) { j.notReady(2) }, "SliceLost: host pod-a-2 is not Ready"},
		{"a host is not Ready whose pod is not bound", func(j *judged) { j.pod(2, ""); j.notReady(2) }, "SliceLost: host pod-a-2 is not Ready"},
		{"a host is not Ready whose rank succeeded under a former reservation", func(j *judged) { j.Jobs[0].Status.CompletedIndexes = "2-3"; j.notReady(2) }, ""},
		{"a host is not Ready whose rank failed for good", func(j *judged) { j.Jobs[0].Status.FailedIndexes = ptr.To("2"); j.notReady(2) }, ""},
		{"a host is not Ready and the other ranks succeeded", func(j *judged) { j.Jobs[0].Status.CompletedIndexes = "0,1,3"; j.notReady(2) }, "SliceLost: host pod-a-2 is not Ready"},
		{"a host is not Ready whose pod runs", func(j *judged) { j.pod(2, "pod-a-2"); j.notReady(2) }, ""},
		{"a host is not Ready whose pod was given up", func(j *judged) { j.pod(2, "pod-a-2").DeletionTimestamp = &metav1.Time{Time: now}; j.notReady(2) }, "SliceLost: host pod-a-2 is not Ready"},
		{"a host is not Ready whose pod has a successor", func(j *judged) {
			j.pod(2, "pod-a-2")
			successor := j.pod(2, "")
			successor.UID, successor.Name, successor.CreationTimestamp = "successor", "successor", metav1.Time{Time: now}
			j.notReady(2)
		}, "SliceLost: host pod-a-2 is not Ready"},
		{"a stranger's pod on a host that is not Ready counts for nobody", func(j *judged) { j.pod(2, "pod-a-2").OwnerReferences = nil; j.notReady(2) }, "SliceLost: host pod-a-2 is not Ready"},

		{"a cordoned host, and nobody has come yet", func(j *judged) { j.Nodes[2].Spec.Unschedulable = true }, ""},
		{"a cordoned host whose pod runs", func(j *judged) { j.pod(2, "pod-a-2"); j.Nodes[2].Spec.Unschedulable = true }, ""},
		{"a cordoned host whose pod has ended", func(j *judged) {
			j.pod(2, "pod-a-2").Status.Phase = corev1.PodSucceeded
			j.Nodes[2].Spec.Unschedulable = true
		}, ""},
		{"a cordoned host whose pod is not bound", func(j *judged) { j.pod(2, ""); j.Nodes[2].Spec.Unschedulable = true }, "HostUnusable: rank 2 has no running pod, and its host pod-a-2 is cordoned"},
		{"a cordoned host whose pod waits behind its gate", func(j *judged) {
			j.pod(2, "").Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: berth.GateSeating}}
			j.Nodes[2].Spec.Unschedulable = true
		}, "HostUnusable: rank 2 has no running pod, and its host pod-a-2 is cordoned"},
		{"a cordoned host whose pod was evicted", func(j *judged) {
			j.pod(2, "pod-a-2").DeletionTimestamp = &metav1.Time{Time: now}
			j.Nodes[2].Spec.Unschedulable = true
		}, "HostUnusable: rank 2 has no running pod, and its host pod-a-2 is cordoned"},
		{"a cordoned host whose pod bears that", func(j *judged) {
			j.pod(2, "").Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
			j.Nodes[2].Spec.Unschedulable = true
		}, ""},
		{"a cordoned host whose pod failed and has a successor of the same second", func(j *judged) {
			j.pod(2, "pod-a-2").Status.Phase = corev1.PodFailed
			successor := j.pod(2, "")
			successor.UID, successor.Name = "successor", "successor"
			j.Nodes[2].Spec.Unschedulable = true
		}, "HostUnusable: rank 2 has no running pod, and its host pod-a-2 is cordoned"},
		{"a cordoned host whose pod runs and followed one of the same second", func(j *judged) {
			j.pod(2, "pod-a-2")
			predecessor := j.pod(2, "pod-a-2")
			predecessor.UID, predecessor.Name, predecessor.DeletionTimestamp = "predecessor", "predecessor", &metav1.Time{Time: now}
			j.Nodes[2].Spec.Unschedulable = true
		}, ""},
		{"a tainted host whose pod runs", func(j *judged) { j.pod(2, "pod-a-2"); j.taintHost(2, corev1.TaintEffectNoExecute) }, ""},
		{"a tainted host whose pod is not bound", func(j *judged) { j.pod(2, ""); j.taintHost(2, corev1.TaintEffectNoExecute) }, "HostUnusable: rank 2 has no running pod, and its host pod-a-2 has the taint repair=true:NoExecute, which the pods do not tolerate"},
		{"a host that is tainted for those who come", func(j *judged) { j.pod(2, ""); j.taintHost(2, corev1.TaintEffectNoSchedule) }, "HostUnusable: rank 2 has no running pod, and its host pod-a-2 has the taint repair=true:NoSchedule, which the pods do not tolerate"},
		{"a host that is better avoided", func(j *judged) { j.pod(2, ""); j.taintHost(2, corev1.TaintEffectPreferNoSchedule) }, ""},
		{"a tainted host whose pod bears that", func(j *judged) {
			j.pod(2, "").Spec.Tolerations = []corev1.Toleration{{Key: "repair", Operator: corev1.TolerationOpExists}}
			j.taintHost(2, corev1.TaintEffectNoExecute)
		}, ""},
		{"a host that no longer matches", func(j *judged) { j.pod(2, ""); j.Nodes[2].Labels = map[string]string{} }, "HostUnusable: rank 2 has no running pod, and its host pod-a-2 does not match the pods' node selector or affinity"},
		{"a host that no longer matches, and its pod runs", func(j *judged) { j.pod(2, "pod-a-2"); j.Nodes[2].Labels = map[string]string{} }, ""},

		{"the room is taken", func(j *judged) { stranger(j); unschedulablePod(j.pod(1, "")) }, "HostsBusy: the room that was kept for the gang on host pod-a-1 is taken"},
		{"the room is taken and nobody needs it yet", stranger, ""},
		{"the room is taken and the scheduler has not said so", func(j *judged) { stranger(j); j.pod(1, "") }, ""},
		{"the room is taken that the pod needs beyond its template", func(j *judged) {
			takes(j, corev1.ResourceCPU, "31")
			p := j.pod(1, "")
			p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
			unschedulablePod(p)
		}, "HostsBusy: the room that was kept for the gang on host pod-a-1 is taken"},
		{"the room that is left is enough", func(j *judged) { takes(j, corev1.ResourceCPU, "31"); unschedulablePod(j.pod(1, "")) }, ""},
		{"more is taken than there is of what the pod does not ask for", func(j *judged) { takes(j, "nic.example.com/vf", "1"); unschedulablePod(j.pod(1, "")) }, ""},
		{"the scheduler says so for another reason, and has not for long", func(j *judged) { unschedulablePod(j.pod(1, "")) }, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := newJudged(t)
			row.change(j)
			if got := j.verdict(); got != row.want {
				t.Errorf("\n got %s\nwant %s", got, row.want)
			}
		})
	}
}

// A verdict is taken back when its cause is.
func TestJudgeTakesBack(t *testing.T) {
	j := newJudged(t)
	r := &reconciler{Options: Options{Board: verdict.NewBoard()}}
	key := types.NamespacedName{Namespace: j.res.Namespace, Name: j.res.Name}
	j.notReady(0)
	r.judge(j.view())
	if r.Board.Lost(key) == nil {
		t.Fatal("not lost")
	}
	j.Nodes[0] = dratest.Node("pod-a-0")
	r.judge(j.view())
	if got := r.Board.Lost(key); got != nil {
		t.Error(got)
	}
}

func TestHostsHeldAndPhases(t *testing.T) {
	s := newSite()
	for i, queue := range []string{"x", "y", "x"} {
		w := s.waits(string(rune('a' + i))).In(queue)
		s.Reservations = append(s.Reservations, kueuetest.NewReservation("r"+queue, w, s.Jobs[i], "d", "h0", "h1"))
	}
	s.Reservations[1].Status.Phase = berth.PhaseHandedOver
	s.Workloads = s.Workloads[:2] // one holder is gone
	v := s.view()
	if got := v.hostsHeld(); len(got) != 3 || got["x"] != 2 || got["y"] != 2 || got[""] != 2 {
		t.Errorf("held %v", got)
	}
	if got := v.phases(); len(got) != 2 || got["Planned"] != 2 || got["HandedOver"] != 1 {
		t.Errorf("phases %v", got)
	}
	// What is on its way out counts until the last claim is gone, and not for as long as the reservation stays.
	s.Reservations[1].Status.Phase = berth.PhaseReleasing
	s.ResourceClaims = []*resourcev1.ResourceClaim{ours(s.Reservations[1])}
	if got := s.view().hostsHeld(); len(got) != 3 || got["y"] != 2 {
		t.Errorf("with its claim it is held %v", got)
	}
	s.ResourceClaims = nil
	if got := s.view().hostsHeld(); len(got) != 2 || got["x"] != 2 || got[""] != 2 {
		t.Errorf("without its claim it is held %v", got)
	}
}
