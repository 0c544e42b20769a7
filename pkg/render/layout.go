package render

import (
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// layout is how the hosts of a pool are drawn.
type layout struct {
	// hosts in rank order.
	hosts []string
	// columns of the grid; 0 when the hosts have no positions.
	columns int
}

// layoutOf reads the positions of a pool's hosts from the shapes of its devices: the hosts stand in rank order, row by row,
// in the width at which every device is a rectangle. Devices that are only runs of neighbours say nothing about a width;
// then there is none, and the hosts are drawn by domain.
func layoutOf(p *inventory.Pool) layout {
	l := layout{hosts: hostsOf(p)}
	at := make(map[string]int, len(l.hosts))
	for i, h := range l.hosts {
		at[h] = i
	}
	var sets [][]int
	bent := false
	for _, d := range p.Devices {
		if len(d.Hosts) < 2 || d.ByLabel {
			continue // what matches a label today says nothing about where it stands
		}
		set := make([]int, 0, len(d.Hosts))
		for _, h := range d.Hosts {
			set = append(set, at[h])
		}
		slices.Sort(set)
		bent = bent || set[len(set)-1]-set[0] != len(set)-1
		sets = append(sets, set)
	}
	if !bent {
		return l
	}
	l.columns = width(len(l.hosts), sets, false)
	if l.columns == 0 {
		l.columns = width(len(l.hosts), sets, true)
	}
	return l
}

// hostsOf are the hosts of a pool in rank order: that of a device that stands on all of them, else by name.
func hostsOf(p *inventory.Pool) []string {
	var all, most []string
	for _, d := range p.Devices {
		all = append(all, d.Hosts...)
		if len(d.Hosts) > len(most) {
			most = d.Hosts
		}
	}
	slices.SortFunc(all, inventory.Natural)
	all = slices.Compact(all)
	if len(most) == len(all) {
		return slices.Clone(most)
	}
	return all
}

// width is the number of columns, the closest to a square, at which every set of positions is a rectangle; wrapping lets
// it go on at the other edge. 0 when there is none.
func width(hosts int, sets [][]int, wrapping bool) int {
	best := 0
	for w := 2; w <= hosts/2; w++ {
		if hosts%w != 0 || slices.ContainsFunc(sets, func(s []int) bool { return !rectangle(s, w, hosts/w, wrapping) }) {
			continue
		}
		if best == 0 || abs(w-hosts/w) < abs(best-hosts/best) {
			best = w
		}
	}
	return best
}

func rectangle(set []int, columns, rows int, wrapping bool) bool {
	inColumn, inRow := make([]bool, columns), make([]bool, rows)
	for _, i := range set {
		inColumn[i%columns], inRow[i/columns] = true, true
	}
	across, oneRun := run(inColumn, wrapping)
	down, oneRunDown := run(inRow, wrapping)
	return oneRun && oneRunDown && across*down == len(set)
}

// run counts what is set, and reports whether it is all in one piece.
func run(set []bool, wrapping bool) (n int, one bool) {
	begins := 0
	for i, on := range set {
		if !on {
			continue
		}
		n++
		before := i > 0 && set[i-1] || i == 0 && wrapping && set[len(set)-1]
		if !before {
			begins++
		}
	}
	return n, begins <= 1
}

func abs(n int) int { return max(n, -n) }

// domains groups the hosts of a pool by its largest devices: those whose hosts no other device includes. Where these
// overlap they are one domain. A host that is in no device of several hosts is its own.
func domains(p *inventory.Pool, hosts []string) [][]string {
	root := make(map[string]string, len(hosts))
	for _, h := range hosts {
		root[h] = h
	}
	find := func(h string) string {
		for root[h] != h {
			root[h] = root[root[h]]
			h = root[h]
		}
		return h
	}
	for _, d := range p.Devices {
		for _, h := range d.Hosts[min(1, len(d.Hosts)):] {
			root[find(h)] = find(d.Hosts[0])
		}
	}
	var groups [][]string
	index := map[string]int{}
	for _, h := range hosts {
		i, known := index[find(h)]
		if !known {
			i = len(groups)
			index[find(h)] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], h)
	}
	return groups
}
