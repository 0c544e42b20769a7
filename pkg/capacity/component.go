package capacity

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// component is one connected component: devices, counters and hosts numbered anew.
type component struct {
	uses [][]use
	left []int64
	// worth of a device is the number of its hosts.
	worth []int
	// cells are hosts that the same devices stand on, taken as one.
	cells []cell
	// under are the cells of each device.
	under [][]int32
	// exclusive is true when no two devices that share a cell can be held together. Then no cell is served twice.
	exclusive bool
	// grain divides the worth of every device.
	grain int
	// near are the other devices that exclude a device by what is left of one counter.
	near [][]int32
}

type use struct {
	counter int32
	milli   int64
}

type cell struct {
	hosts   int
	devices []int32
}

func newComponent(plan *inventory.Plan, devices []int32, used []int64) *component {
	s := &component{under: make([][]int32, len(devices)), near: make([][]int32, len(devices))}
	number := map[int32]int32{}
	on := map[int32][]int32{}
	var hosts []int32
	for i, d := range devices {
		var uses []use
		for _, u := range plan.Uses(int(d)) {
			n, seen := number[u.Counter]
			if !seen {
				n = int32(len(s.left))
				number[u.Counter] = n
				s.left = append(s.left, left(plan, u.Counter, used))
			}
			uses = append(uses, use{n, u.Milli})
		}
		s.uses = append(s.uses, uses)
		s.worth = append(s.worth, len(plan.Under(int(d))))
		s.grain = gcd(s.grain, len(plan.Under(int(d))))
		for _, h := range plan.Under(int(d)) {
			if on[h] == nil {
				hosts = append(hosts, h)
			}
			on[h] = append(on[h], int32(i))
		}
	}
	at := map[string]int{}
	for _, h := range hosts {
		key := make([]byte, 0, 4*len(on[h]))
		for _, d := range on[h] {
			key = binary.LittleEndian.AppendUint32(key, uint32(d))
		}
		i, seen := at[string(key)]
		if !seen {
			i = len(s.cells)
			at[string(key)] = i
			s.cells = append(s.cells, cell{devices: on[h]})
			for _, d := range on[h] {
				s.under[d] = append(s.under[d], int32(i))
			}
		}
		s.cells[i].hosts++
	}
	s.exclude()
	return s
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// exclude finds the pairs that what is left of one counter does not suffice for.
func (s *component) exclude() {
	type user struct {
		device int32
		milli  int64
	}
	users := make([][]user, len(s.left))
	for d, uses := range s.uses {
		for _, u := range uses {
			users[u.counter] = append(users[u.counter], user{int32(d), u.milli})
		}
	}
	for _, list := range users {
		slices.SortFunc(list, func(a, b user) int { return cmp.Compare(b.milli, a.milli) })
	}
	seen := make([]int32, len(s.uses))
	s.exclusive = true
	for d := range s.uses {
		mark := int32(d) + 1
		seen[d] = mark
		for _, u := range s.uses[d] {
			for _, o := range users[u.counter] {
				if inventory.Add(u.milli, o.milli) <= s.left[u.counter] {
					break
				}
				if seen[o.device] != mark {
					seen[o.device] = mark
					s.near[d] = append(s.near[d], o.device)
				}
			}
		}
		for _, c := range s.under[d] {
			for _, o := range s.cells[c].devices {
				s.exclusive = s.exclusive && seen[o] == mark
			}
		}
	}
}

type memoKey [sha256.Size]byte

// key stands for everything that a solution depends on.
func (s *component) key(budget int) memoKey {
	h := sha256.New()
	var buf []byte
	put := func(n int64) { buf = binary.AppendVarint(buf, n) }
	put(int64(budget))
	put(int64(len(s.left)))
	for _, milli := range s.left {
		put(milli)
	}
	for d, uses := range s.uses {
		put(int64(len(uses)))
		for _, u := range uses {
			put(int64(u.counter))
			put(u.milli)
		}
		put(int64(len(s.under[d])))
		for _, c := range s.under[d] {
			put(int64(c))
		}
		h.Write(buf)
		buf = buf[:0]
	}
	for _, c := range s.cells {
		put(int64(c.hosts))
	}
	h.Write(buf)
	return memoKey(h.Sum(nil))
}
