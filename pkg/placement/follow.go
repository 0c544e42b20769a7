package placement

import "github.com/berth-dev/berth/pkg/ledger"

// follower keeps what stands over each member of a ranking from one ledger to the next. In overlapping families everything
// excludes hundreds of windows, and adding all of them up again for each candidate is most of a decision; but a gang that
// comes or goes changes the worth of the few that it stands in.
type follower struct {
	// stood is the number of holders that each device of the pool had when over was made.
	stood []int32
	// over is the worth of all that stand over each member, by its place in the ranking's members.
	over []int64
	// below are the members that a device stands over: places from[d] to from[d+1] of places.
	from, places []int32
	// changed is scratch.
	changed []int32
}

func (sh *shelf) follower(members []int32) *follower {
	n := len(sh.weight)
	f := &follower{stood: make([]int32, n), over: make([]int64, len(members)), from: make([]int32, n+1)}
	for _, d := range members {
		sh.near.Above(int(d), func(a int32) { f.from[a+1]++ })
	}
	for a := range n {
		f.from[a+1] += f.from[a]
	}
	f.places = make([]int32, f.from[n])
	next := append([]int32(nil), f.from[:n]...)
	for i, d := range members {
		sh.near.Above(int(d), func(a int32) {
			f.places[next[a]] = int32(i)
			next[a]++
			f.over[i] += sh.weight[a] // Nobody stands anywhere yet.
		})
	}
	return f
}

// follow brings over up to date. It costs a look at every device, and as much as those that changed stand over.
func (f *follower) follow(sh *shelf, occ *ledger.Occupied) {
	f.changed = f.changed[:0]
	if occ.Standing == nil {
		for d, was := range f.stood {
			if was != 0 {
				f.changed = append(f.changed, int32(d))
			}
		}
	} else {
		for d, was := range f.stood {
			if occ.Standing[d] != was {
				f.changed = append(f.changed, int32(d))
			}
		}
	}
	for _, d := range f.changed {
		before := halved(sh.weight[d], f.stood[d])
		f.stood[d] = 0
		if occ.Standing != nil {
			f.stood[d] = occ.Standing[d]
		}
		by := halved(sh.weight[d], f.stood[d]) - before
		if by == 0 {
			continue
		}
		for _, place := range f.places[f.from[d]:f.from[d+1]] {
			f.over[place] += by
		}
	}
}

// halved is a weight, halved for every holder.
func halved(weight int64, holders int32) int64 {
	if holders < 63 {
		return weight >> uint(holders)
	}
	return 0
}
