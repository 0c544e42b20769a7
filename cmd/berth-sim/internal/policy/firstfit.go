package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
)

// firstFit models kube-scheduler's allocator. That tries, for one node, the pools in order of their names as bytes, in a pool
// the slices likewise, in a slice the devices as listed, and takes the first that is selected, free and for that node. The
// nodes are tried in natural order. kube-scheduler itself scores the nodes and picks among equals at random; what it does
// lies between this and random.
type firstFit struct {
	hardware *hardware.Hardware
	order    map[*inventory.Class][]ranked
}

var _ placement.Placer = (*firstFit)(nil)

func newFirstFit(h *hardware.Hardware) *firstFit {
	return &firstFit{hardware: h, order: map[*inventory.Class][]ranked{}}
}

// ranked is a device of a class together with when its turn comes.
type ranked struct {
	candidate
	span int
	// node is the position of its first host; place is where it stands among what the pool's driver lists.
	node, place int
	pool        inventory.PoolID
}

// Place implements placement.Placer.
func (f *firstFit) Place(g gang.Gang, w placement.World) placement.Decision {
	class, span, refusal := asked(g, w)
	if refusal != nil {
		return *refusal
	}
	order, known := f.order[class]
	if !known {
		order = f.sort(class)
		f.order[class] = order
	}
	for i := range order {
		if r := &order[i]; r.span == span && suits(w, r.candidate.pool, r.device, &g.PodSets[0]) {
			return decide(g, w, r.candidate)
		}
	}
	return none(class.Name)
}

// sort puts the devices into the order in which they would be found: at the first node of each, and there in the
// allocator's order. What a node offers and is free would have been found there, so no later node matters.
func (f *firstFit) sort(class *inventory.Class) []ranked {
	node := map[string]int{}
	for i, name := range f.hardware.Inventory.Hosts() {
		node[name] = i
	}
	var out []ranked
	for _, m := range class.Members {
		p := f.hardware.Inventory.Pools()[m.Pool]
		for _, d := range m.Devices {
			r := ranked{candidate: candidate{m.Pool, d}, span: m.Span, node: len(node), pool: p.ID}
			r.place = f.hardware.Published[inventory.DeviceName{Pool: p.ID, Name: p.Devices[d].Name}]
			for _, host := range p.Devices[d].Hosts {
				r.node = min(r.node, node[host])
			}
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.node, b.node), strings.Compare(a.pool.Driver, b.pool.Driver),
			strings.Compare(a.pool.Name, b.pool.Name), cmp.Compare(a.place, b.place))
	})
	return out
}
