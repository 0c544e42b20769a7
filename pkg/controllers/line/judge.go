package line

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/jobs"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers/verdict"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// judge looks at every reservation that is served and posts whether its slice can still be used. It returns when that may
// change although nothing else does, zero for never.
func (r *reconciler) judge(v *view) time.Duration {
	nodesByName := map[string]*corev1.Node{}
	for _, n := range v.snapshot.Nodes {
		nodesByName[n.Name] = n
	}
	pods := map[types.NamespacedName][]*corev1.Pod{}
	for _, p := range v.pinned {
		key := types.NamespacedName{Namespace: p.Namespace, Name: p.Labels[berth.LabelReservation]}
		pods[key] = append(pods[key], p)
	}
	workloads := map[types.UID]*kueue.Workload{}
	for _, wl := range v.snapshot.Workloads {
		workloads[wl.UID] = wl
	}
	r.unplaced = r.unplaced.among(v.pinned, v.now)
	var s steps
	for key, res := range v.reservations {
		if res.Status.Phase == berth.PhaseReleasing {
			continue
		}
		lost := v.unclearFor(res, workloads)
		j := newJudgement(v, res, nodesByName, pods[key])
		if lost == nil {
			lost = j.lost()
		}
		if lost == nil {
			var left time.Duration
			if lost, left = j.unscheduled(r.unplaced); left > 0 {
				s.due(left)
			}
		}
		r.Board.Set(key, verdict.Hardware, lost)
	}
	return s.again
}

// judgement is about one reservation.
type judgement struct {
	*view
	res   *berth.GangReservation
	nodes map[string]*corev1.Node
	// pods is the pod of each seat that counts, see succeeds.
	pods map[seat]*corev1.Pod
	// over are the ranks that need neither pod nor host any more.
	over jobs.Indexes
}

type seat struct {
	podSet string
	rank   int
}

func newJudgement(v *view, res *berth.GangReservation, nodes map[string]*corev1.Node, pods []*corev1.Pod) judgement {
	j := judgement{
		view: v, res: res, nodes: nodes, pods: map[seat]*corev1.Pod{},
		over: jobs.Over(res.Spec.Owner, v.lookup.Job(res.Namespace, res.Spec.Owner.Name)),
	}
	for _, p := range pods {
		at, err := jobs.SeatOf(res, p)
		if err != nil {
			continue
		}
		key := seat{at.PodSet, at.Rank}
		if have := j.pods[key]; have == nil || succeeds(p, have) {
			j.pods[key] = p
		}
	}
	return j
}

// succeeds reports whether p came after other, of the same seat. A creation time counts seconds; of two pods of one second
// the one that goes is the older one.
func succeeds(p, other *corev1.Pod) bool {
	if !p.CreationTimestamp.Equal(&other.CreationTimestamp) {
		return other.CreationTimestamp.Before(&p.CreationTimestamp)
	}
	goes := func(p *corev1.Pod) bool { return jobs.Ended(p) || p.DeletionTimestamp != nil }
	return goes(other) && !goes(p)
}

func (j judgement) lost() *reason.Refusal {
	for _, ps := range j.res.Spec.PodSets {
		for _, c := range ps.Claims {
			for _, d := range c.Devices {
				if why := j.device(c, d); why != nil {
					return why
				}
			}
		}
		for rank, node := range jobs.NodesOf(ps) {
			// The pod of a rank that is over may be gone, and may never have been one of this reservation's.
			if j.over.Has(rank) {
				continue
			}
			if why := j.rank(rank, j.pods[seat{ps.Name, rank}], node); why != nil {
				return why
			}
		}
	}
	return nil
}

// device asks for a NoExecute taint that the claim does not bear. A device that is no longer published is no reason: the
// driver may be restarting, and the gang holds what it holds. Neither is a claim that is still to be created: whether it bears
// the taint is asked when it is there.
func (j judgement) device(c berth.ReservedClaim, d berth.ReservedDevice) *reason.Refusal {
	published := j.world.Inventory.Device(inventory.PoolID{Driver: d.Driver, Name: d.Pool}, d.Device)
	if published == nil {
		return nil
	}
	claim := j.lookup.Claim(j.res.Namespace, jobs.ClaimName(c.Prefix, int(d.Instance)))
	if claim == nil && (j.res.Status.Phase == "" || j.res.Status.Phase == berth.PhasePlanned) {
		return nil
	}
	for _, t := range published.Taints {
		if t.Effect == string(resourcev1.DeviceTaintEffectNoExecute) && !j.bears(claim, d.Request, t) {
			return &reason.Refusal{Code: reason.DeviceTainted, Message: fmt.Sprintf(
				"device %s in pool %s carries the taint %s:NoExecute", d.Device, d.Pool, t.Key)}
		}
	}
	return nil
}

// bears reports whether the request of a claim tolerates a device taint.
func (j judgement) bears(claim *resourcev1.ResourceClaim, request string, t inventory.Taint) bool {
	if claim == nil {
		return false
	}
	read, _, _ := dra.Claim(&claim.Spec, claim.Name, j.world.Inventory)
	for _, r := range read.Requests {
		if r.Name == request {
			return placement.Tolerated(t, r.Tolerations)
		}
	}
	return false
}

// rank asks whether the pod of one rank, nil if there is none, can still run on its host.
func (j judgement) rank(rank int, pod *corev1.Pod, name string) *reason.Refusal {
	if name == "" || (pod != nil && jobs.Ended(pod)) {
		return nil
	}
	node := j.nodes[name]
	switch {
	case node == nil:
		return &reason.Refusal{Code: reason.HostMissing, Message: fmt.Sprintf("host %s is gone", name)}
	case nodes.OutOfService(node):
		return &reason.Refusal{Code: reason.SliceLost, Message: fmt.Sprintf("host %s is out of service", name)}
	}
	// A pod that runs on a host that is not Ready may run on: the pod's tolerations decide when it is given up, and then
	// it is deleted. Only a rank without a running pod cannot wait.
	settled := pod != nil && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil
	if !nodes.Ready(node) && !settled {
		return &reason.Refusal{Code: reason.SliceLost, Message: fmt.Sprintf("host %s is not Ready", name)}
	}
	// Where a pod runs it may stay: a cordon or a taint of NoSchedule is about those who come. But who is not bound there, or
	// has to leave and would be followed, finds no other host, and the others of the gang wait for it. A rank whose next pod
	// has not been created yet is judged by that one: only a pod says what it tolerates.
	if pod != nil && !settled {
		if why := nodes.Bars(node, pod); why != "" {
			return &reason.Refusal{Code: reason.HostUnusable, Message: fmt.Sprintf(
				"rank %d has no running pod, and its host %s %s", rank, name, why)}
		}
	}
	// The ledger keeps room for every rank that is not bound yet, so a host that is promised more than it has was filled
	// by others. The scheduler's word is awaited: pods that leave make room again.
	if pod != nil && pod.Spec.NodeName == "" && failure(pod) == corev1.PodReasonUnschedulable && j.world.Ledger.Overcommitted(name, nodes.Used(pod)) {
		return &reason.Refusal{Code: reason.HostsBusy, Message: fmt.Sprintf(
			"the room that was kept for the gang on host %s is taken", name)}
	}
	return nil
}
