package line

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
)

// facts are what a refusal depended on. While none of them gets better the refusal stands.
type facts struct {
	// inventory that the rest was read from. Mostly it is the same from pass to pass, and then nothing of it is compared.
	inventory *inventory.Inventory
	// exact is true where any change of what is taken matters: when the placer gave up, as it may find its way elsewhere,
	// and when it refused for another reason than that devices are held, as that may become the reason.
	exact bool
	// guessed is true when the refusal is not proved: for another demand the placer looks elsewhere first and may find a way.
	guessed bool
	demand  placement.Demand
	classes []classFacts
	// used of the counters of each pool, for gangs of several devices: those may fit one by one and not together.
	used map[inventory.PoolID][]int64
	// room for pods on the hosts of devices that were free, by pod set and host.
	room []map[string]int
}

type classFacts struct {
	name    string
	rest    string
	members []memberFacts
}

// memberFacts are those of the devices of one class and span in one pool.
type memberFacts struct {
	id          inventory.PoolID
	plan        *inventory.Plan
	off, faults uint64
	classes     uint64
	span        int
	devices     int
	taken       uint64
	free        []uint64
}

// factsOf reads what the refusal of a gang depends on.
func factsOf(g gang.Gang, w placement.World, exact bool) facts {
	f := facts{inventory: w.Inventory, exact: exact, room: make([]map[string]int, len(g.PodSets))}
	for _, name := range classesOf(g) {
		f.classes = append(f.classes, readClass(name, w))
		// A shared device is free or not for what a share takes, which the set of free devices does not tell.
		f.exact = f.exact || slices.ContainsFunc(w.Inventory.Class(name).Spans(), func(s inventory.Span) bool { return s.Shared })
	}
	if set, _ := single(g, w.Inventory); set == nil {
		f.used = map[inventory.PoolID][]int64{}
		for _, c := range f.classes {
			for _, m := range c.members {
				at, _ := w.Inventory.Position(m.id)
				f.used[m.id] = slices.Clone(w.Ledger.Used(at))
			}
		}
	}
	hosts := f.freeHosts(w)
	for i := range g.PodSets {
		f.room[i] = make(map[string]int, len(hosts))
		for h := range hosts {
			f.room[i][h] = roomFor(&g.PodSets[i], h, w)
		}
	}
	return f
}

// stillHold reports whether nothing got better for the gang, or, when the facts have to be exact, whether nothing changed.
func (f *facts) stillHold(g gang.Gang, w placement.World, exact bool) bool {
	exact = exact || f.exact
	if f.guessed && !maps.Equal(f.demand, w.Demand) {
		return false
	}
	for i := range f.classes {
		if !f.classes[i].stillHold(w, exact, w.Inventory == f.inventory) {
			return false
		}
	}
	for id, then := range f.used {
		at, _ := w.Inventory.Position(id)
		now := w.Ledger.Used(at)
		for i, used := range then {
			if now == nil && used > 0 || now != nil && now[i] < used {
				return false
			}
		}
	}
	for h := range f.freeHosts(w) {
		for i := range g.PodSets {
			then, known := f.room[i][h]
			now := roomFor(&g.PodSets[i], h, w)
			if !known || now > then || exact && now != then {
				return false
			}
		}
	}
	return true
}

// roomFor is how many pods of the set the host has room for, as far as it matters.
func roomFor(set *gang.PodSet, host string, w placement.World) int {
	return min(w.Ledger.Room(host, set.Requests), set.Count)
}

// freeHosts are the hosts under devices of the classes that are free.
func (f *facts) freeHosts(w placement.World) map[string]bool {
	hosts := map[string]bool{}
	for _, c := range f.classes {
		class := w.Inventory.Class(c.name)
		for i := range class.Members {
			m := &class.Members[i]
			pool := w.Inventory.Pools()[m.Pool]
			under := func(d int32) {
				for _, h := range pool.Plan().Under(int(d)) {
					hosts[pool.Plan().Hosts()[h]] = true
				}
			}
			eachFree(m, w.Ledger, func(_ int, d int32) { under(d) })
			for _, d := range m.Devices {
				if pool.Devices[d].Shared { // Somebody may have a share and leave enough for another.
					under(d)
				}
			}
		}
	}
	return hosts
}

// eachFree calls do for each member that nobody holds, with its position among the members.
func eachFree(m *inventory.Members, l *ledger.Ledger, do func(i int, device int32)) {
	occ := l.Occupied(m.Pool)
	for i, d := range m.Devices {
		if occ.Short == nil || occ.Short[d] == 0 && occ.Shut[d] == 0 {
			do(i, d)
		}
	}
}

func freeSet(m *inventory.Members, l *ledger.Ledger) []uint64 {
	set := make([]uint64, (len(m.Devices)+63)/64)
	eachFree(m, l, func(i int, _ int32) { set[i/64] |= 1 << (i % 64) })
	return set
}

// classesOf are the names of the classes that a gang asks for, each once.
func classesOf(g gang.Gang) []string {
	var names []string
	for _, ps := range g.PodSets {
		for _, c := range ps.Claims {
			for _, r := range c.Requests {
				names = append(names, r.Class)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func readClass(name string, w placement.World) classFacts {
	class := w.Inventory.Class(name)
	f := classFacts{name: name, rest: restOf(class)}
	for i := range class.Members {
		m := &class.Members[i]
		f.members = append(f.members, readMember(m, w))
		f.members[i].free = freeSet(m, w.Ledger)
	}
	return f
}

// readMember reads all but what is free.
func readMember(m *inventory.Members, w placement.World) memberFacts {
	pool, state := w.Inventory.Pools()[m.Pool], w.Inventory.State(m.Pool)
	return memberFacts{
		id: pool.ID, plan: pool.Plan(), off: state.Fingerprint, faults: state.Faults, classes: state.Classes(),
		span: m.Span, devices: len(m.Devices), taken: w.Ledger.Fingerprint(m.Pool),
	}
}

// restOf is what a class says besides its members.
func restOf(c *inventory.Class) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %d", c.State, c.Problem, len(c.Devices))
	for _, p := range c.Withheld {
		fmt.Fprintf(&b, " %q %q", p.ID.String(), p.Problem.Message)
	}
	return b.String()
}

func (f *classFacts) stillHold(w placement.World, exact, sameHardware bool) bool {
	class := w.Inventory.Class(f.name)
	if !sameHardware && (len(class.Members) != len(f.members) || restOf(class) != f.rest) {
		return false
	}
	for i := range class.Members {
		m, then := &class.Members[i], &f.members[i]
		if !sameHardware {
			if now := readMember(m, w); !now.same(then) {
				return false
			}
		}
		if w.Ledger.Fingerprint(m.Pool) == then.taken {
			continue
		}
		if exact {
			return false
		}
		for j, free := range freeSet(m, w.Ledger) {
			if free&^then.free[j] != 0 {
				return false
			}
		}
	}
	return true
}

// same reports whether the hardware is the same, and what is said of it.
func (m *memberFacts) same(o *memberFacts) bool {
	return m.id == o.id && m.plan == o.plan && m.off == o.off && m.faults == o.faults && m.classes == o.classes && m.span == o.span && m.devices == o.devices
}
