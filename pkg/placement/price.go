package placement

import (
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// score turns a loss, which counts twice in parts of oneHost, into hosts.
func score(loss int64) float64 { return float64(loss) / (2 * oneHost) }

// price adds to a decision what it costs and what it destroys. The gang is one holder, however many devices it takes.
func (s *Scored) price(d *Decision, w World) {
	chosen := map[int][]int32{}
	for _, ps := range d.PodSets {
		for _, c := range ps.Claims {
			for _, in := range c.Instances {
				for i := range in.Devices {
					pool, ok := w.Inventory.Position(in.Devices[i].Pool)
					if !ok {
						continue
					}
					p := w.Inventory.Pools()[pool]
					if at, known := p.Plan().Position(p.Device(in.Devices[i].Name)); known {
						chosen[pool] = append(chosen[pool], int32(at))
					}
				}
			}
		}
	}
	loss := s.entering(chosen, w)
	for pool, devices := range chosen {
		sh := s.shelf(pool, w)
		occ := w.Ledger.Occupied(pool)
		loss = inventory.Add(loss, sh.together(devices, &occ))
		d.Destroys = sh.destroyed(devices, &occ, w.Ledger.Used(pool), d.Destroys)
	}
	if d.Destroys == nil {
		d.Destroys = map[string]int{}
	}
	d.Score = score(loss)
}

// entering is twice what it costs that one more holder stands in the domains of the chosen devices.
func (s *Scored) entering(chosen map[int][]int32, w World) int64 {
	if len(s.realms) == 0 {
		return 0
	}
	worth, in, sum := s.worths(w), map[int32]bool{}, int64(0)
	for pool, devices := range chosen {
		state := w.Inventory.State(pool)
		for _, d := range devices {
			if domain := state.DomainOf(d); domain >= 0 && !in[domain] {
				in[domain] = true
				sum = inventory.Add(sum, worth[domain])
			}
		}
	}
	return sum
}

// mark begins a new set of devices in gone.
func (sh *shelf) mark() {
	sh.marked++
	if sh.marked == 0 {
		clear(sh.gone)
		sh.marked = 1
	}
}

// enter adds a device to the set and reports whether it is new.
func (sh *shelf) enter(d int32) bool {
	if sh.gone[d] == sh.marked {
		return false
	}
	sh.gone[d] = sh.marked
	return true
}

// together is twice what one holder's taking all the devices costs: what several of them exclude is halved once.
func (sh *shelf) together(devices []int32, occ *ledger.Occupied) int64 {
	if !sh.near.Complete {
		var sum int64
		for _, d := range devices {
			sum += sh.weight[d]
		}
		return sum
	}
	sh.mark()
	var sum int64
	for _, d := range devices {
		sum += sh.cover(d, occ)
	}
	return sum
}

// cover adds everything that the device excludes to the set and returns what was new in it.
func (sh *shelf) cover(d int32, occ *ledger.Occupied) int64 {
	var sum int64
	for _, part := range sh.near.Parts(int(d)) {
		if sh.enter(part) {
			sum += sh.value(part, occ)
		}
	}
	sh.near.Above(int(d), func(a int32) {
		if sh.enter(a) {
			sum += sh.value(a, occ)
		}
	})
	return sum
}

// destroyed adds to count, by class, the devices that are free and in use now and not free once the chosen are taken as well. It
// looks at counters, not at neighbours: three devices may fit a counter two at a time. A count of nil is made.
func (sh *shelf) destroyed(chosen []int32, occ *ledger.Occupied, used []int64, count map[string]int) map[string]int {
	sh.mark()
	open := func(d int32) bool { return occ.Short != nil && occ.Short[d] != 0 }
	whole := chosen[:0]
	for _, d := range chosen {
		// A device that several may share, and of which somebody has a share, takes nothing more of its pool.
		if sh.enter(d) && !open(d) {
			whole = append(whole, d)
		}
	}
	chosen = whole
	for _, d := range chosen {
		for _, u := range sh.plan.Uses(int(d)) {
			sh.taking[u.Counter] = inventory.Add(sh.taking[u.Counter], u.Milli)
		}
	}
	for _, d := range chosen {
		for _, u := range sh.plan.Uses(int(d)) {
			left := inventory.Add(sh.plan.Total(int(u.Counter)), -sh.taking[u.Counter])
			if used != nil {
				left = inventory.Add(left, -used[u.Counter])
			}
			users := sh.plan.Users(int(u.Counter))
			for _, victim := range users[:sh.plan.Short(int(u.Counter), left)] {
				free := occ.Short == nil || occ.Short[victim.Device] == 0 && occ.Shut[victim.Device] == 0
				if !free || sh.weight[victim.Device] == 0 || !sh.enter(victim.Device) {
					continue
				}
				for _, class := range sh.classes[victim.Device] {
					sh.victims[class]++
				}
			}
		}
	}
	for _, d := range chosen {
		for _, u := range sh.plan.Uses(int(d)) {
			sh.taking[u.Counter] = 0
		}
	}
	if count == nil {
		classes := 0
		for _, n := range sh.victims {
			if n > 0 {
				classes++
			}
		}
		count = make(map[string]int, classes)
	}
	for class, n := range sh.victims {
		if n > 0 {
			count[sh.names[class]] += n
			sh.victims[class] = 0
		}
	}
	return count
}
