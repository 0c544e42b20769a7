package placement

import (
	"hash/maphash"
	"math"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Demand is how much each device class is asked for, by class name: any positive numbers, of which only the proportions
// matter. Nil means that all classes are asked for alike.
type Demand map[string]float64

// DemandFloor is the least weight of a class as a share of the greatest: what nobody asked for lately may be asked for next.
const DemandFloor = 1.0 / 64

// Weights are whole numbers, so that sums do not depend on their order and equal losses are equal: one host of a class in
// full demand weighs oneHost. A million hosts of a hundred classes stay below 2^63.
const oneHost = 1 << 24

// share of the greatest demand, between DemandFloor and 1.
func (m Demand) share(class string, greatest float64) float64 {
	if m == nil || greatest <= 0 {
		return 1
	}
	share := m[class] / greatest
	if !(share > DemandFloor) { // Also when it is no number.
		return DemandFloor
	}
	return min(share, 1)
}

func (m Demand) greatest() float64 {
	top := 0.0
	for _, d := range m {
		if d > top && !math.IsInf(d, 1) {
			top = d
		}
	}
	return top
}

type demandKey struct {
	class  string
	demand float64
}

// print is a fingerprint: equal for equal demand within one process.
func (m Demand) print() uint64 {
	var sum uint64
	for class, d := range m {
		if d == d {
			sum += maphash.Comparable(seed, demandKey{class, d})
		}
	}
	return sum
}

var seed = maphash.MakeSeed()

// crowding is by how many times the devices of one class and span, all together, exceed a counter that they consume:
// 1 where they can all be held at once. A window of an overlapping family counts as one over the crowding of what it
// consumes, so that a shape weighs what of it can stand together and not how many places it could stand in.
func crowding(pl *inventory.Plan, members []int32, asked []int64) {
	for _, d := range members {
		for _, u := range pl.Uses(int(d)) {
			asked[u.Counter] = inventory.Add(asked[u.Counter], u.Milli)
		}
	}
}

// weigh adds what each device of a class is worth to weight: hosts × demand, divided by the crowding of its counters.
// asked is scratch of one number per counter and must be zero; it is left zero.
func weigh(pl *inventory.Plan, m *inventory.Members, demand float64, asked, weight []int64) {
	crowding(pl, m.Devices, asked)
	for _, d := range m.Devices {
		worth := float64(m.Span) * demand
		if uses := pl.Uses(int(d)); len(uses) > 0 {
			sum := 0.0
			for _, u := range uses {
				sum += min(1, float64(pl.Total(int(u.Counter)))/float64(asked[u.Counter]))
			}
			worth *= sum / float64(len(uses))
		}
		weight[d] += int64(worth * oneHost)
	}
	for _, d := range m.Devices {
		for _, u := range pl.Uses(int(d)) {
			asked[u.Counter] = 0
		}
	}
}
