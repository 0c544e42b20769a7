package placement

import (
	"cmp"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// shelf is what Scored keeps of one pool from decision to decision. Everything here follows from the key, and each ranking
// from the key and what is taken, so keeping it changes no answer.
type shelf struct {
	key  shelfKey
	plan *inventory.Plan
	near *inventory.Neighbours
	// weight of each device in parts of oneHost; zero for devices that are out of use.
	weight []int64
	// own[d] is the sum of weights of the device's parts, or -1 when not yet computed.
	own []int64
	// classes of each device, as indexes of names.
	classes [][]int32
	names   []string
	ranked  map[rankKey]*ranking

	through []through
	now     uint32
	taken   uint64
	// gone[d] == marked: scratch of destroyed and loss.
	gone   []uint32
	marked uint32
	// taking by counter and victims by class are scratch of destroyed, zero between calls.
	taking  []int64
	victims []int
	// room[h] is twice Scored.visit when the host is known to have no room for the pods of that call, one more when it has.
	room []uint64
}

// through is of one device.
type through struct {
	// worth of the device and of what stands above it, valid where seen is the shelf's now.
	worth int64
	seen  uint32
	// only is the device's link where nothing else stands above it than the link and what is above that, else -1.
	only int32
}

type shelfKey struct {
	plan                *inventory.Plan
	classes, off, wants uint64
}

type rankKey struct {
	class string
	span  int
}

// ranking is the free devices of one class and span in one pool with what it would cost to take each.
type ranking struct {
	fresh bool
	taken uint64
	all   []candidate
	// sorted is how many of all, from the first on, are in order and not above the rest.
	sorted int
	// lists is how long the lists of all members are together; follower is set where they are long.
	lists    int
	follower *follower
	// lineup is where the ranking stands as a leaf, if it does.
	lineup *lineup
	leaf   int32
}

// candidate is a free device. Less is lost with a smaller loss; of equal losses the first by name counts.
type candidate struct {
	loss   int64
	device int32
}

func (c candidate) compare(o candidate) int {
	return cmp.Or(cmp.Compare(c.loss, o.loss), cmp.Compare(c.device, o.device))
}

// foremost is how many candidates are put in order at first: the chosen one, the runners-up, and some that may not suit the pod.
const foremost = 8

func newShelf(inv *inventory.Inventory, classes []*inventory.Class, pool int, key shelfKey, demand Demand) *shelf {
	n := key.plan.Devices()
	sh := &shelf{
		key: key, plan: key.plan, near: key.plan.Neighbours(), ranked: map[rankKey]*ranking{},
		weight: make([]int64, n), own: make([]int64, n), classes: make([][]int32, n),
		through: make([]through, n), gone: make([]uint32, n),
		taking: make([]int64, len(inv.Pools()[pool].Counters)), room: make([]uint64, len(key.plan.Hosts())),
	}
	greatest := demand.greatest()
	asked := sh.taking
	for _, c := range classes {
		first, _ := slices.BinarySearchFunc(c.Members, pool, func(m inventory.Members, pool int) int { return cmp.Compare(m.Pool, pool) })
		for i := first; i < len(c.Members) && c.Members[i].Pool == pool; i++ {
			m := &c.Members[i]
			weigh(sh.plan, m, demand.share(c.Name, greatest), asked, sh.weight)
			for _, d := range m.Devices {
				sh.classes[d] = append(sh.classes[d], int32(len(sh.names)))
			}
			sh.names = append(sh.names, c.Name)
			sh.victims = append(sh.victims, 0)
		}
	}
	for d, off := range inv.State(pool).Off {
		if off {
			sh.weight[d] = 0
		}
		sh.own[d] = -1
	}
	for d := range sh.through {
		sh.through[d].only = -1
		if sh.near.Complete && len(sh.near.Extra(d)) == 0 {
			sh.through[d].only = sh.near.Link[d]
		}
	}
	return sh
}

// ranking of the class's members, kept with the shelf.
func (sh *shelf) ranking(class string, m *inventory.Members) *ranking {
	key := rankKey{class, m.Span}
	r := sh.ranked[key]
	if r == nil {
		r = &ranking{}
		for _, d := range m.Devices {
			if sh.near.Complete {
				r.lists += len(sh.near.Extra(int(d)))
			}
		}
		sh.ranked[key] = r
	}
	return r
}

// value is what a device is worth now: its weight, halved for every holder that stands in it.
func (sh *shelf) value(d int32, occ *ledger.Occupied) int64 {
	if occ.Standing == nil {
		return sh.weight[d]
	}
	return halved(sh.weight[d], occ.Standing[d])
}

// parts is the worth of everything in a free device. Nobody stands in it, unless something irregular is held.
func (sh *shelf) parts(d int32, occ *ledger.Occupied) int64 {
	if !occ.Irregular && sh.own[d] >= 0 {
		return sh.own[d]
	}
	var sum int64
	for _, part := range sh.near.Parts(int(d)) {
		if occ.Irregular {
			sum += sh.value(part, occ)
		} else {
			sum += sh.weight[part]
		}
	}
	if !occ.Irregular {
		sh.own[d] = sum
	}
	return sum
}

// begin forgets what stood above each device when something else is taken than at the last call.
func (sh *shelf) begin(occ *ledger.Occupied) {
	if sh.now == 0 || sh.taken != occ.Fingerprint {
		sh.now++
		sh.taken = occ.Fingerprint
		if sh.now == 0 { // Wrapped around after four thousand million changes.
			for d := range sh.through {
				sh.through[d].seen = 0
			}
			sh.now = 1
		}
	}
}

// over is the worth of what stands above the device.
func (sh *shelf) over(d int32, occ *ledger.Occupied) int64 {
	// Most devices of a forest have only their link above them.
	if only := sh.through[d].only; only >= 0 {
		return sh.passing(only, occ)
	}
	var sum int64
	for _, a := range sh.near.Extra(int(d)) {
		sum += sh.value(a, occ)
	}
	if link := sh.near.Link[d]; link >= 0 {
		sum += sh.passing(link, occ)
	}
	return sum
}

// passing is the worth of a link and of what stands above it. Many devices link to the same one, so it is kept.
func (sh *shelf) passing(link int32, occ *ledger.Occupied) int64 {
	t := &sh.through[link]
	if t.seen != sh.now {
		t.worth, t.seen = sh.value(link, occ)+sh.over(link, occ), sh.now
	}
	return t.worth
}

// loss is twice what taking the free device costs: with one more holder, everything that it excludes is worth half.
func (sh *shelf) loss(d int32, occ *ledger.Occupied) int64 {
	if !sh.near.Complete {
		return sh.weight[d] // own stays unknown.
	}
	return sh.parts(d, occ) + sh.over(d, occ)
}

// rank scores the free devices among members. It allocates only until r has grown to the size of the class.
func (sh *shelf) rank(r *ranking, members []int32, occ *ledger.Occupied) {
	if r.fresh && r.taken == occ.Fingerprint {
		return
	}
	sh.begin(occ)
	r.fresh, r.taken, r.sorted, r.all = true, occ.Fingerprint, 0, r.all[:0]
	// A class with long lists is followed, where that is less than adding them up.
	if r.follower == nil && sh.near.Complete && r.lists > 2*len(sh.weight) {
		r.follower = sh.follower(members)
	}
	if r.follower != nil {
		r.follower.follow(sh, occ)
	}
	var top [foremost]int // positions in all
	n := 0
	for i, d := range members {
		if occ.Short != nil && (occ.Short[d] != 0 || occ.Shut[d] != 0) {
			continue
		}
		c := candidate{device: d}
		switch own := sh.own[d]; {
		case r.follower != nil:
			c.loss = sh.parts(d, occ) + r.follower.over[i]
		case own >= 0 && !occ.Irregular:
			c.loss = own + sh.over(d, occ)
		default:
			c.loss = sh.loss(d, occ)
		}
		r.all = append(r.all, c)
		// Equal losses stay in order of names, because members are.
		if n == foremost && c.loss >= r.all[top[n-1]].loss {
			continue
		}
		n = min(n+1, foremost)
		at := n - 1
		for at > 0 && r.all[top[at-1]].loss > c.loss {
			top[at] = top[at-1]
			at--
		}
		top[at] = len(r.all) - 1
	}
	r.first(top[:n])
}

// first moves the candidates at these positions to the front.
func (r *ranking) first(top []int) {
	for i, at := range top {
		r.all[i], r.all[at] = r.all[at], r.all[i]
		for j := i + 1; j < len(top); j++ {
			if top[j] == i {
				top[j] = at
			}
		}
	}
	r.sorted = len(top)
}

// at is the candidate at a place in order, or false behind the last.
func (r *ranking) at(i int) (candidate, bool) {
	if i >= len(r.all) {
		return candidate{}, false
	}
	if i >= r.sorted {
		slices.SortFunc(r.all[r.sorted:], candidate.compare)
		r.sorted = len(r.all)
	}
	return r.all[i], true
}

// next is at, or in no order at all when order does not matter: then nothing is sorted.
func (r *ranking) next(i int, ordered bool) (candidate, bool) {
	if ordered || i >= len(r.all) {
		return r.at(i)
	}
	return r.all[i], true
}
