package exact

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// tree is hosts with aligned devices of each span; a device of span n is of class "n" and n.
func aligned(hosts int, spans ...int) *inventory.Inventory {
	var groups [][]int
	for _, span := range spans {
		for from := 0; from+span <= hosts; from += span {
			var group []int
			for i := range span {
				group = append(group, from+i)
			}
			groups = append(groups, group)
		}
	}
	return worlds.Groups("p", hosts, groups).Inventory()
}

func solve(t *testing.T, inv *inventory.Inventory, classes ...Class) *Solution {
	t.Helper()
	s, err := Solve(inv, classes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStates(t *testing.T) {
	one := func(hosts int) Class {
		return Class{map[int]string{1: "n1", 2: "n2", 4: "n4", 8: "n8", 16: "n16"}[hosts], hosts, 1, 1}
	}
	for _, row := range []struct {
		hosts  int
		spans  []int
		states int
	}{
		{1, []int{1}, 2},
		{16, []int{1}, 17},
		{16, []int{1, 2, 4, 8}, 2278},
		{16, []int{1, 2, 4, 8, 16}, 2279},
		{16, []int{1, 4, 8, 16}, 254},
	} {
		var classes []Class
		for _, s := range row.spans {
			classes = append(classes, one(s))
		}
		if s := solve(t, aligned(row.hosts, row.spans...), classes...); s.States != row.states {
			t.Errorf("%d hosts, spans %v: %d states, want %d", row.hosts, row.spans, s.States, row.states)
		}
	}
}

// erlangB is the share of arrivals that c servers lose at an offered load of a.
func erlangB(c int, a float64) float64 {
	b := 1.0
	for n := 1; n <= c; n++ {
		b = a * b / (float64(n) + a*b)
	}
	return b
}

func TestOneClassIsErlang(t *testing.T) {
	for _, a := range []float64{2, 12, 20} {
		s := solve(t, aligned(16, 1), Class{"n1", 1, a / 2, 2})
		if want := a * (1 - erlangB(16, a)) / 16; math.Abs(s.Goodput-want) > 1e-6 {
			t.Errorf("offered %v: goodput %.7f, want %.7f", a, s.Goodput, want)
		}
		if s.Decisions != 0 {
			t.Errorf("%d decisions where all devices are equal", s.Decisions)
		}
	}
}

// TestBruteForce compares value iteration with trying every policy of tiny worlds. The other side is written without the
// package: pairs or quads of hosts as plain numbers, and the long run of each policy by elimination.
func TestBruteForce(t *testing.T) {
	for _, row := range []struct {
		name         string
		blocks, size int
		single, big  Class
		policies     int
	}{
		{"three pairs", 3, 2, Class{"n1", 1, 1.5, 1}, Class{"n2", 2, 1, 1}, 16},
		{"three pairs, the small ones stay", 3, 2, Class{"n1", 1, 0.5, 4}, Class{"n2", 2, 2, 0.5}, 16},
		{"two quads", 2, 4, Class{"n1", 1, 2, 1}, Class{"n4", 4, 1, 2}, 64},
	} {
		t.Run(row.name, func(t *testing.T) {
			best, worst, tried := bruteForce(row.blocks, row.size, row.single, row.big)
			if tried != row.policies {
				t.Errorf("%d policies, want %d", tried, row.policies)
			}
			s := solve(t, aligned(row.blocks*row.size, 1, row.size), row.single, row.big)
			if math.Abs(s.Goodput-best) > 1e-6 {
				t.Errorf("value iteration finds %.7f, the best of all policies has %.7f", s.Goodput, best)
			}
			if best-worst < 0.001 {
				t.Errorf("policies differ by %.7f only: the comparison shows nothing", best-worst)
			}
		})
	}
}

// bruteForce tries every way to choose the block of a single host among blocks with different numbers of singles. A block
// with a big gang is -1.
func bruteForce(blocks, size int, single, big Class) (best, worst float64, tried int) {
	var all [][]int
	index := map[string]int{}
	key := func(s []int) string {
		s = slices.Clone(s)
		slices.Sort(s)
		text := ""
		for _, n := range s {
			text += string(rune('b' + n))
		}
		return text
	}
	var enumerate func(s []int)
	enumerate = func(s []int) {
		if len(s) == blocks {
			if _, seen := index[key(s)]; !seen {
				index[key(s)] = len(all)
				all = append(all, s)
			}
			return
		}
		for n := -1; n <= size; n++ {
			enumerate(append(slices.Clone(s), n))
		}
	}
	enumerate(nil)
	// choices of each state: which count of singles the chosen block has before.
	choices := make([][]int, len(all))
	var open []int
	for i, s := range all {
		for _, n := range s {
			if n >= 0 && n < size && !slices.Contains(choices[i], n) {
				choices[i] = append(choices[i], n)
			}
		}
		if len(choices[i]) > 1 {
			open = append(open, i)
		}
	}
	taken := make([]int, len(all))
	best, worst = -1, 2
	for {
		g := longRun(all, index, key, choices, taken, size, single, big) / float64(blocks*size)
		best, worst = max(best, g), min(worst, g)
		tried++
		at := 0
		for ; at < len(open); at++ {
			if taken[open[at]]++; taken[open[at]] < len(choices[open[at]]) {
				break
			}
			taken[open[at]] = 0
		}
		if at == len(open) {
			return best, worst, tried
		}
	}
}

// longRun is the expected number of busy hosts under one policy.
func longRun(all [][]int, index map[string]int, key func([]int) string, choices [][]int, taken []int, size int, single, big Class) float64 {
	n := len(all)
	rate := make([][]float64, n)
	for i := range rate {
		rate[i] = make([]float64, n)
	}
	move := func(from int, block, became int, r float64) {
		s := slices.Clone(all[from])
		s[block] = became
		to := index[key(s)]
		rate[from][to] += r
		rate[from][from] -= r
	}
	for i, s := range all {
		if len(choices[i]) > 0 {
			count := choices[i][taken[i]]
			move(i, slices.Index(s, count), count+1, single.Rate)
		}
		if at := slices.Index(s, 0); at >= 0 {
			move(i, at, -1, big.Rate)
		}
		for b, count := range s {
			if count < 0 {
				move(i, b, 0, 1/big.Mean)
			} else if count > 0 {
				move(i, b, count-1, float64(count)/single.Mean)
			}
		}
	}
	// π·rate = 0 with Σπ = 1: the last equation gives way to the sum.
	m := make([][]float64, n)
	for col := range n {
		m[col] = make([]float64, n+1)
		for row := range n {
			m[col][row] = rate[row][col]
		}
	}
	for i := range n {
		m[n-1][i] = 1
	}
	m[n-1][n] = 1
	for i := range n {
		pivot := i
		for r := i; r < n; r++ {
			if math.Abs(m[r][i]) > math.Abs(m[pivot][i]) {
				pivot = r
			}
		}
		m[i], m[pivot] = m[pivot], m[i]
		for r := range n {
			if r == i || m[r][i] == 0 {
				continue
			}
			f := m[r][i] / m[i][i]
			for c := i; c <= n; c++ {
				m[r][c] -= f * m[i][c]
			}
		}
	}
	busy := 0.0
	for i, s := range all {
		hosts := 0
		for _, count := range s {
			if count < 0 {
				hosts += size
			} else {
				hosts += count
			}
		}
		busy += float64(hosts) * m[i][n] / m[i][i]
	}
	return busy
}

// ask is a gang of one device.
func ask(class string, hosts int) gang.Gang {
	return gang.Gang{PodSets: []gang.PodSet{{Name: "main", Count: hosts, Claims: []gang.Claim{{
		PodClaim: "c", Requests: []gang.Request{{Name: "r", Class: class, Count: 1}},
	}}}}}
}

// TestPlacerKnowsTheState walks at random through a world and holds the state that the placer sees against one that is
// followed step by step, and what it takes against what is free.
func TestPlacerKnowsTheState(t *testing.T) {
	inv := aligned(16, 1, 2, 4, 8)
	s := solve(t, inv, Class{"n1", 1, 4, 1}, Class{"n2", 2, 2, 1}, Class{"n4", 4, 1, 1}, Class{"n8", 8, 0.5, 1})
	p := s.Placer()
	rng := rand.New(rand.NewPCG(1, 1))
	placed, refused := 0, 0
	for range 100 {
		l := ledger.New(inv)
		at := s.states.empty(s.tree.devices[len(s.tree.devices)-1].form)
		for range 12 {
			c := rng.IntN(4)
			d := p.Place(ask(s.tree.classes[c].Name, s.tree.classes[c].Hosts), placement.World{Inventory: inv, Ledger: l})
			next := s.states.place(at, c)
			if d.Fits() != (len(next) > 0) {
				t.Fatalf("placed: %v, and %d states can follow", d.Fits(), len(next))
			}
			if !d.Fits() {
				refused++
				continue
			}
			placed++
			dev := d.PodSets[0].Claims[0].Instances[0].Devices[0]
			if !l.Free(inv.Device(dev.Pool, dev.Name)) {
				t.Fatalf("%s is not free", dev.Name)
			}
			l.Take(ledger.Holding{Owner: dev.Name, Reservation: dev.Name, Pool: dev.Pool, Device: dev.Name})
			best := slices.MaxFunc(next, func(a, b int) int {
				switch {
				case s.value[a] < s.value[b]:
					return -1
				case s.value[a] > s.value[b]:
					return 1
				}
				return 0
			})
			p.Place(ask("n1", 1), placement.World{Inventory: inv, Ledger: l})
			at = p.view.now[len(p.view.now)-1]
			if !slices.Contains(next, at) || s.value[best]-s.value[at] > equal {
				t.Fatalf("it leads to a state of value %v, the best is %v", s.value[at], s.value[best])
			}
		}
	}
	if placed < 300 || refused < 100 {
		t.Errorf("only %d placed and %d refused", placed, refused)
	}
}

func TestWhatCannotBeSolved(t *testing.T) {
	for name, row := range map[string]struct {
		inv     *inventory.Inventory
		classes []Class
		want    string
	}{
		"overlap":       {worlds.Groups("p", 5, [][]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}}).Inventory(), []Class{{"n2", 2, 1, 1}}, "pool tpu.example.com/p is no forest: the best policy is computed only where of two devices that exclude each other one lies in the other"},
		"no such class": {aligned(2, 1), []Class{{"n2", 2, 1, 1}}, "no device of class n2 spans 2 hosts"},
		"two classes":   {aligned(2, 1), []Class{{"n1", 1, 1, 1}, {"n1", 1, 2, 1}}, "device p/d0 serves two classes, n1 and n1"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Solve(row.inv, row.classes); err == nil || err.Error() != row.want {
				t.Errorf("\n got %v\nwant %s", err, row.want)
			}
		})
	}
}
