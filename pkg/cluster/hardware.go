package cluster

import (
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// known is the hardware of the last snapshot. Most of what happens in a cluster is none of its business: heartbeats of
// nodes and statuses of AcceleratorPools leave the inventory as it is.
type known struct {
	cache *dra.Cache
	view  *dra.View

	pools   list[*berth.AcceleratorPool]
	slices  list[*resourcev1.ResourceSlice]
	classes list[*resourcev1.DeviceClass]
	rules   list[*resourcev1.DeviceTaintRule]
	nodes   list[*corev1.Node]
}

// moves says what changed beside the content of pools.
type moves struct {
	// managed: which pools are managed may have changed.
	managed bool
	// nodes: names or labels of nodes may have changed.
	nodes bool
}

func (k *known) read(s *snapshot.Snapshot) (*dra.View, moves) {
	first := k.view == nil
	moved := moves{managed: poolsChanged(k.pools.follow(s.AcceleratorPools)) || first}
	labels, health := nodesChanged(k.nodes.follow(s.Nodes))
	moved.nodes = labels || first
	changed := moved.managed || moved.nodes || health
	changed = some(k.slices.follow(s.ResourceSlices)) || changed
	changed = some(k.classes.follow(s.DeviceClasses)) || changed
	changed = some(k.rules.follow(s.DeviceTaintRules)) || changed
	if changed {
		k.view = k.cache.Read(s)
	}
	return k.view, moved
}

func some[P object](gone, come []P) bool { return len(gone) > 0 || len(come) > 0 }

func poolsChanged(gone, come []*berth.AcceleratorPool) bool {
	return unlike(gone, come, func(was, now *berth.AcceleratorPool) bool {
		// Of two that select the same hardware the older counts.
		return was.CreationTimestamp.Equal(&now.CreationTimestamp) && equality.Semantic.DeepEqual(was.Spec, now.Spec)
	})
}

// nodesChanged looks at what Hosts and node selectors read of a node.
func nodesChanged(gone, come []*corev1.Node) (labels, health bool) {
	labels = unlike(gone, come, func(was, now *corev1.Node) bool { return maps.Equal(was.Labels, now.Labels) })
	health = labels || unlike(gone, come, func(was, now *corev1.Node) bool {
		return reflect.DeepEqual(nodes.Hosts([]*corev1.Node{was}), nodes.Hosts([]*corev1.Node{now}))
	})
	return labels, health
}

// unlike reports whether there is an object that came or went, or that is not like its former self of the same name.
func unlike[P object](gone, come []P, like func(was, now P) bool) bool {
	if len(gone) != len(come) {
		return true
	}
	was := make(map[string]P, len(gone))
	for _, obj := range gone {
		was[obj.GetName()] = obj
	}
	for _, obj := range come {
		if old, known := was[obj.GetName()]; !known || !like(old, obj) {
			return true
		}
		delete(was, obj.GetName())
	}
	return len(was) > 0
}
