package exact

import (
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Limits of one solution.
const (
	maxStates     = 300_000
	maxIterations = 100_000
	// tolerance of the goodput, as a share of all hosts.
	tolerance = 1e-7
)

// Solution is the best policy of a world.
type Solution struct {
	// Goodput is the share of the hosts that the best policy keeps busy in the long run; its error is below 10⁻⁷.
	Goodput float64
	// States that can be reached.
	States int
	// Decisions is in how many of them, counted once per class, there is more than one thing to do.
	Decisions  int
	Iterations int

	tree   *tree
	states *states
	// value of each state of the root in host-hours, relative to that of the empty one, by its number in states.
	value map[int]float64
}

// process is the decision process in discrete steps.
type process struct {
	// number of each state in states.
	number []int
	// reward of a step, in host-hours.
	reward []float64
	// arrivals[i*classes+c] are the states that a gang of class c can lead to from state i; empty when it is lost.
	arrivals [][]int32
	// chance that the next step is an arrival of each class.
	chance []float64
	ends   [][]end
	// stay is the chance that nothing happens in a step, without arrivals that are lost.
	stay []float64
	// step is how long one lasts, in hours.
	step float64
}

type end struct {
	to     int32
	chance float64
}

// Solve finds the best policy of a world in which nothing is held by others.
func Solve(inv *inventory.Inventory, classes []Class) (*Solution, error) {
	t, err := newTree(inv, classes)
	if err != nil {
		return nil, err
	}
	s := newStates(t.forms)
	p, err := newProcess(t, s)
	if err != nil {
		return nil, err
	}
	out := &Solution{tree: t, states: s, States: len(p.number), value: map[int]float64{}}
	for _, options := range p.arrivals {
		if len(options) > 1 {
			out.Decisions++
		}
	}
	value := make([]float64, len(p.number))
	next := make([]float64, len(p.number))
	for {
		least, most := p.iterate(value, next)
		value, next = next, value
		out.Iterations++
		lower, upper := least/p.step/float64(t.hosts), most/p.step/float64(t.hosts)
		if upper-lower < tolerance {
			out.Goodput = (lower + upper) / 2
			break
		}
		if out.Iterations == maxIterations {
			return nil, fmt.Errorf("value iteration did not settle within %d steps: the goodput is between %.6f and %.6f", maxIterations, lower, upper)
		}
		// Only differences matter; without this the values grow for ever and lose digits.
		base := value[0]
		for i := range value {
			value[i] -= base
		}
	}
	for i, number := range p.number {
		out.value[number] = value[i]
	}
	s.closed = true
	return out, nil
}

// iterate makes one step for all states and returns the least and the greatest change.
func (p *process) iterate(value, next []float64) (least, most float64) {
	classes := len(p.chance)
	for i := range value {
		sum := p.reward[i] + p.stay[i]*value[i]
		for c, chance := range p.chance {
			options := p.arrivals[i*classes+c]
			best := value[i]
			for k, to := range options {
				if v := value[to]; k == 0 || v > best {
					best = v
				}
			}
			sum += chance * best
		}
		for _, e := range p.ends[i] {
			sum += e.chance * value[e.to]
		}
		next[i] = sum
		change := sum - value[i]
		if i == 0 || change < least {
			least = change
		}
		if i == 0 || change > most {
			most = change
		}
	}
	return least, most
}

// newProcess explores every state that some policy can reach from the empty one.
func newProcess(t *tree, s *states) (*process, error) {
	p := &process{}
	index := map[int]int32{}
	find := func(number int) int32 {
		i, known := index[number]
		if !known {
			i = int32(len(p.number))
			index[number], p.number = i, append(p.number, number)
		}
		return i
	}
	root := t.devices[len(t.devices)-1].form
	find(s.empty(root))
	coming := 0.0
	for _, c := range t.classes {
		coming += c.Rate
	}
	var leaving []float64
	fastest := 0.0
	for i := 0; i < len(p.number); i++ {
		if len(p.number) > maxStates {
			return nil, errors.New("the world has too many states for the best policy to be computed")
		}
		at := p.number[i]
		for c := range t.classes {
			var options []int32
			for _, to := range s.place(at, c) {
				options = append(options, find(to))
			}
			p.arrivals = append(p.arrivals, options)
		}
		var ends []end
		rate := 0.0
		for _, d := range s.leave(at) {
			r := float64(d.count) / t.classes[d.class].Mean
			ends = append(ends, end{find(d.to), r})
			rate += r
		}
		p.ends, leaving = append(p.ends, ends), append(leaving, rate)
		p.reward = append(p.reward, float64(s.all[at].busy))
		fastest = max(fastest, rate)
	}
	// A little faster than the fastest state, so that every state can stay and the iteration cannot swing.
	uniform := (coming + fastest) * 1.01
	p.step = 1 / uniform
	for _, c := range t.classes {
		p.chance = append(p.chance, c.Rate/uniform)
	}
	for i := range p.number {
		p.reward[i] *= p.step
		for k := range p.ends[i] {
			p.ends[i][k].chance /= uniform
		}
		p.stay = append(p.stay, 1-(coming+leaving[i])/uniform)
	}
	return p, nil
}
