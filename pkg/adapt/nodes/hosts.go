package nodes

import (
	"fmt"
	"hash/maphash"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// Hosts reads every Node. The Rank is the node's name; whoever knows the AcceleratorPool ranks by its label.
func Hosts(nodes []*corev1.Node) []inventory.Host {
	sameName := map[string]int{}
	for _, n := range nodes {
		sameName[n.Labels[corev1.LabelHostname]]++
	}
	hosts := make([]inventory.Host, 0, len(nodes))
	for _, n := range nodes {
		h := inventory.Host{
			Name: n.Name, Hostname: n.Labels[corev1.LabelHostname], Rank: n.Name,
			Allocatable: Amounts(n.Status.Allocatable),
		}
		code, why := usable(n, sameName[h.Hostname])
		if why != "" {
			h.Blocked = &reason.Evidence{Kind: reason.KindHost, Name: n.Name, Code: code, Detail: why}
		}
		hosts = append(hosts, h)
	}
	return hosts
}

// usable says why no gang may use the node now; first what only its owner can repair.
func usable(n *corev1.Node, sameName int) (reason.Code, string) {
	hostname, labelled := n.Labels[corev1.LabelHostname]
	switch {
	case !labelled || hostname == "":
		return reason.HostNameUnusable, "lacks the label " + corev1.LabelHostname
	case sameName > 1:
		return reason.HostNameUnusable, fmt.Sprintf("shares its label %s=%s with another node", corev1.LabelHostname, hostname)
	case n.DeletionTimestamp != nil:
		return reason.HostUnusable, "is being deleted"
	case !Ready(n):
		return reason.HostUnusable, "is not Ready"
	case OutOfService(n):
		return reason.HostUnusable, "is out of service"
	case n.Spec.Unschedulable:
		return reason.HostUnusable, "is cordoned"
	}
	return "", ""
}

// Ready reports whether the kubelet says that the node is Ready.
func Ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// OutOfService reports whether an administrator has declared that the node runs nothing any more.
func OutOfService(n *corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeOutOfService {
			return true
		}
	}
	return false
}

// Doubtful reports whether a pod whose object is gone may still run on the node: it is not Ready, so its kubelet may not
// have heard of it, and nobody has declared that everything on it has ended.
func Doubtful(n *corev1.Node) bool { return !Ready(n) && !OutOfService(n) }

// Amounts turns quantities into thousandths, at most math.MaxInt64. What is negative is nothing: a pod makes no room.
func Amounts(list corev1.ResourceList) map[string]int64 {
	out := make(map[string]int64, len(list))
	for name, q := range list {
		out[string(name)] = milli(q)
	}
	return out
}

var seed = maphash.MakeSeed()

// Fingerprint is equal for equal amounts, within one process.
func Fingerprint(amounts map[string]int64) uint64 {
	type amount struct {
		name  string
		milli int64
	}
	var sum uint64
	for name, milli := range amounts {
		sum += maphash.Comparable(seed, amount{name, milli})
	}
	return sum
}

func milli(q resource.Quantity) int64 {
	if q.Sign() < 0 {
		return 0
	}
	// Quantity.Value is no help here: it is 0 for what exceeds an int64.
	if q.CmpInt64(math.MaxInt64/1000) > 0 {
		return math.MaxInt64
	}
	return q.MilliValue()
}
