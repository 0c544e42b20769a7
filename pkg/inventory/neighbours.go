package inventory

import (
	"cmp"
	"slices"
)

// MaxNeighbours is how many pairs of devices that exclude each other are looked at in one pool. Beyond it a pool is not
// scored (Neighbours.Complete is false): 16 million pairs are 64 MiB while the lists are made.
const MaxNeighbours = 16 << 20

// Neighbours says which devices of a pool exclude each other: two devices whose consumption of one counter exceeds its
// total. The lists are sparse. A device lies in another, is a part of it, when whatever excludes the first excludes the
// second too; so the parts of a free device are free, and only the neighbours above it can differ from one free device to
// the next.
type Neighbours struct {
	// Complete is false when the pool has more than MaxNeighbours pairs; nothing else is set then.
	Complete bool
	// Laminar: of two devices that exclude each other one always lies in the other, so that the pool is a forest.
	Laminar bool
	// Parent of each device in that forest, -1 for a root. Nil when the pool is not laminar.
	Parent []int32
	// Rank of each device in an order in which parts come before what they lie in. Nil when the pool is not laminar.
	Rank []int32
	// Link names a device above whose own list above is part of this one's, or -1. The list above is Extra, the link and
	// the link's list.
	// The devices of a cube share most of what lies above them, and this is why scoring them all is cheap.
	Link []int32

	parts table[int32]
	extra table[int32]
}

// Parts of the device: itself and what lies in it.
func (n *Neighbours) Parts(device int) []int32 { return n.parts.row(device) }

// Extra are the neighbours above the device that are neither its Link nor above that.
func (n *Neighbours) Extra(device int) []int32 { return n.extra.row(device) }

// Above calls each for every neighbour that does not lie in the device.
func (n *Neighbours) Above(device int, each func(int32)) {
	for at := int32(device); ; {
		for _, d := range n.Extra(int(at)) {
			each(d)
		}
		if at = n.Link[at]; at < 0 {
			return
		}
		each(at)
	}
}

// Neighbours are computed at the first call: at most tens of milliseconds for 6,000 overlapping devices.
func (pl *Plan) Neighbours() *Neighbours {
	pl.once.Do(func() { pl.neighbours = newNeighbours(pl) })
	return pl.neighbours
}

type neighbouring struct {
	*Plan
	near  [][]int32
	parts [][]int32
	above [][]int32
	// mark[d] == stamp: d is in the set that is looked at.
	mark  []int32
	stamp int32
	// covered[i] is how many of counter i's users, from the first on, are all in the set; valid where known[i] == stamp.
	covered, known []int32
}

func newNeighbours(pl *Plan) *Neighbours {
	n := pl.Devices()
	b := &neighbouring{Plan: pl, near: make([][]int32, n), parts: make([][]int32, n), above: make([][]int32, n),
		mark: make([]int32, n), covered: make([]int32, len(pl.total)), known: make([]int32, len(pl.total))}
	pairs := 0
	for d := range n {
		b.near[d] = b.excluded(d)
		if pairs += len(b.near[d]); pairs > MaxNeighbours {
			return &Neighbours{}
		}
	}
	out := &Neighbours{Complete: true, Link: make([]int32, n)}
	for d := range n {
		b.split(d)
		out.parts.add(b.parts[d])
	}
	order := b.order()
	for d := range n {
		link := b.link(d)
		out.Link[d] = link
		b.begin(nil)
		if link >= 0 {
			b.begin(b.above[link])
			b.mark[link] = b.stamp
		}
		var extra []int32
		for _, a := range b.above[d] {
			if b.mark[a] != b.stamp {
				extra = append(extra, a)
			}
		}
		out.extra.add(extra)
	}
	out.grow(b, order)
	return out
}

// begin makes members the set that mark tells.
func (b *neighbouring) begin(members []int32) {
	b.stamp++
	for _, d := range members {
		b.mark[d] = b.stamp
	}
}

// excluded is the device itself and all that exclude it, in order.
func (b *neighbouring) excluded(d int) []int32 {
	b.begin([]int32{int32(d)})
	near := []int32{int32(d)}
	for _, u := range b.Uses(d) {
		for _, rival := range b.Users(int(u.Counter))[:u.Rivals] {
			if b.mark[rival.Device] != b.stamp {
				b.mark[rival.Device] = b.stamp
				near = append(near, rival.Device)
			}
		}
	}
	slices.Sort(near)
	return near
}

// split divides what excludes a device into its parts and the rest.
func (b *neighbouring) split(d int) {
	b.begin(b.near[d])
	for _, o := range b.near[d] {
		part := true
		for _, u := range b.Uses(int(o)) {
			part = part && u.Rivals <= b.cover(u.Counter)
		}
		if part || int(o) == d {
			b.parts[d] = append(b.parts[d], o)
		} else {
			b.above[d] = append(b.above[d], o)
		}
	}
}

func (b *neighbouring) cover(counter int32) int32 {
	if b.known[counter] != b.stamp {
		b.known[counter], b.covered[counter] = b.stamp, 0
		for _, u := range b.Users(int(counter)) {
			if b.mark[u.Device] != b.stamp {
				break
			}
			b.covered[counter]++
		}
	}
	return b.covered[counter]
}

// order puts devices with fewer neighbours first: a part never has more than what it lies in.
func (b *neighbouring) order() []int32 {
	order := make([]int32, len(b.near))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int { return cmp.Or(cmp.Compare(len(b.near[x]), len(b.near[y])), cmp.Compare(x, y)) })
	return order
}

// maxLinks is how many devices are tried as a link; the nearest ones share the most.
const maxLinks = 4

func (b *neighbouring) link(d int) int32 {
	var wholes []int32
	for _, a := range b.above[d] {
		if len(b.above[a]) < len(b.above[d]) {
			wholes = append(wholes, a)
		}
	}
	slices.SortFunc(wholes, func(x, y int32) int {
		return cmp.Or(cmp.Compare(len(b.above[y]), len(b.above[x])), cmp.Compare(x, y))
	})
	b.begin(b.above[d])
	for _, w := range wholes[:min(len(wholes), maxLinks)] {
		shared := true
		for _, a := range b.above[w] {
			shared = shared && b.mark[a] == b.stamp
		}
		if shared {
			return w
		}
	}
	return -1
}

// grow makes the forest, and keeps it if it explains every neighbour as an ancestor or a descendant.
func (n *Neighbours) grow(b *neighbouring, order []int32) {
	parent := make([]int32, len(order))
	rank := make([]int32, len(order))
	for i, d := range order {
		parent[d], rank[d] = -1, int32(i)
	}
	for _, whole := range order {
		for _, part := range b.parts[whole] {
			if rank[part] < rank[whole] && parent[part] < 0 {
				parent[part] = whole
			}
		}
	}
	size, depth := make([]int, len(order)), make([]int, len(order))
	for _, d := range order {
		size[d]++
		if p := parent[d]; p >= 0 {
			size[p] += size[d]
		}
	}
	for _, d := range slices.Backward(order) {
		if p := parent[d]; p >= 0 {
			depth[d] = depth[p] + 1
		}
		if size[d]+depth[d] != len(b.near[d]) {
			return
		}
	}
	n.Laminar, n.Parent, n.Rank = true, parent, rank
}
