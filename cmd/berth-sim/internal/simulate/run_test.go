package simulate_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/traffic"
)

func build(t *testing.T, f hardware.Family) *hardware.Hardware {
	t.Helper()
	h, err := f.Build()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func config(t *testing.T, h *hardware.Hardware, name string, seed uint64, gangs []traffic.Gang, end float64) simulate.Config {
	t.Helper()
	p, err := policy.New(name, policy.Options{Hardware: h, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return simulate.Config{Hardware: h, Gangs: gangs, Placer: p, End: end, Offers: h.Offers()}
}

func run(t *testing.T, c simulate.Config) *simulate.Result {
	t.Helper()
	r, err := simulate.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// near fails when got differs by more than the error of a sum of a few numbers.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// A story on four hosts: a gang of two at 0 for 4 hours, one of four at 1 for 2 hours, one of one at 2 for 1 hour.
var story = []traffic.Gang{
	{Class: "n2", Hosts: 2, Arrival: 0, Duration: 4},
	{Class: "n4", Hosts: 4, Arrival: 1, Duration: 2},
	{Class: "n1", Hosts: 1, Arrival: 2, Duration: 1},
}

func TestLostGangs(t *testing.T) {
	h := build(t, hardware.Family{Name: "tree", Size: 4, Spans: []int{1, 2, 4}})
	r := run(t, config(t, h, policy.Berth, 0, story, 5))
	near(t, "goodput", r.Goodput, (2*4+1*1)/20.0)
	near(t, "blocked", r.Blocked, 8.0/17)
	near(t, "time with 2 of 4 hosts busy", r.Hours[10], 3)
	near(t, "time with 3 of 4 hosts busy", r.Hours[15], 1)
	near(t, "time with no host busy", r.Hours[0], 1)
	// n1, n2, n4 in this order; n2 fits while the small gang stands beside the first only if that left no pair whole: it never does.
	near(t, "n2 fits at 2 of 4", r.Fits[1][10], 3)
	near(t, "n2 fits at 3 of 4", r.Fits[1][15], 0)
	near(t, "n1 fits at 3 of 4", r.Fits[0][15], 1)
	if k := r.Kinds[2]; k.Came != 1 || k.Blocked != 1 || k.Work != 0 {
		t.Errorf("the gang of four: %+v", k)
	}
}

func TestWaitingGangs(t *testing.T) {
	h := build(t, hardware.Family{Name: "tree", Size: 4, Spans: []int{1, 2, 4}})
	c := config(t, h, policy.Berth, 0, story, 10)
	c.Line = simulate.Free
	r := run(t, c)
	// The gang of four begins at 4, when the first has ended, and ends at 6.
	near(t, "wait of the gang of four", r.Kinds[2].Mean, 3)
	near(t, "its 99th percentile", r.Kinds[2].P99, 3)
	near(t, "wait by hosts", r.Wait, 3*4/7.0)
	near(t, "goodput", r.Goodput, (8+8+1)/40.0)
	near(t, "blocked", r.Blocked, 8.0/17)
}

// What is measured begins after the warm-up and stops at the end; what runs beyond is simulated all the same.
func TestWindow(t *testing.T) {
	h := build(t, hardware.Family{Name: "tree", Size: 4, Spans: []int{1, 2, 4}})
	c := config(t, h, policy.Berth, 0, story, 2.5)
	c.Warmup = 1.5
	r := run(t, c)
	near(t, "goodput", r.Goodput, (2*1+1*0.5)/4.0)
	if r.Came != 1 || r.Kinds[0].Came != 1 {
		t.Errorf("%d gangs came, want the last one alone", r.Came)
	}
}

func TestPriorityGoesFirst(t *testing.T) {
	h := build(t, hardware.Family{Name: "tree", Size: 1, Spans: []int{1}})
	gangs := []traffic.Gang{
		{Class: "n1", Hosts: 1, Arrival: 0, Duration: 4, Queue: "a"},
		{Class: "n1", Hosts: 1, Arrival: 1, Duration: 10, Queue: "a"},
		{Class: "n1", Hosts: 1, Arrival: 2, Duration: 1, Priority: 1, Queue: "a"},
	}
	c := config(t, h, policy.Berth, 0, gangs, 20)
	c.Line = simulate.Free
	// The urgent one waits from 2 to 4, the other from 1 to 5.
	near(t, "mean wait", run(t, c).Kinds[0].Mean, (0+2+4)/3.0)
}

func TestGangsThatCannotBe(t *testing.T) {
	h := build(t, hardware.Family{Name: "tree", Size: 2, Spans: []int{1, 2}})
	c := config(t, h, policy.Berth, 0, []traffic.Gang{{Class: "n4", Hosts: 4, Duration: 1}}, 1)
	if _, err := simulate.Run(c); err == nil || err.Error() != "gang 1 asks for n4 of 4 hosts, which nothing offers" {
		t.Error(err)
	}
	c = config(t, h, policy.Berth, 0, nil, 1)
	for range 5 {
		c.Gangs = append(c.Gangs, traffic.Gang{Class: "n2", Hosts: 2, Duration: 10})
	}
	c.Line, c.MostWaiting = simulate.Free, 3
	if _, err := simulate.Run(c); !errors.Is(err, simulate.ErrOverload) || !strings.HasSuffix(err.Error(), "(4 gangs wait after 0 hours)") {
		t.Error(err)
	}
}

// mix offers all classes equal work.
func mix(h *hardware.Hardware, load float64, d traffic.Durations) traffic.Mix {
	var m traffic.Mix
	for _, o := range h.Offers() {
		m.Kinds = append(m.Kinds, traffic.Kind{Class: o.Class, Hosts: o.Hosts, Share: 1 / float64(o.Hosts), Durations: d})
	}
	return m.ForLoad(load, h.Hosts())
}

// TestConservation: on all kinds of hardware, under all policies, every gang that begins also ends and the ledger stands as
// before; Run fails otherwise. Work done, lost and waiting adds up to the work offered.
func TestConservation(t *testing.T) {
	for name, f := range map[string]hardware.Family{
		"kep":     {Name: "kep", Pools: 2},
		"rack":    {Name: "rack", Pools: 2},
		"cubes":   {Name: "cubes", Size: 3},
		"windows": {Name: "windows", Extent: [3]int{2, 2, 1}},
	} {
		h := build(t, f)
		gangs := mix(h, 0.8, traffic.Durations{Kind: traffic.Pareto, Mean: 1, Alpha: 1.5}).Draw(1, 12)
		offered, last := 0.0, 0.0
		for _, g := range gangs {
			offered += g.Duration * float64(g.Hosts)
			last += g.Duration
		}
		for _, p := range policy.Names[:6] {
			for _, discipline := range simulate.Disciplines {
				c := config(t, h, p, 1, gangs, 12+last)
				c.Line = discipline
				r := run(t, c)
				done := r.Goodput * float64(r.Hosts) * c.End
				if discipline == simulate.Loss {
					done += r.Blocked * offered
				}
				if math.Abs(done-offered) > 1e-6*offered || r.Came != len(gangs) {
					t.Errorf("%s, %s, line %s: %v host-hours done and lost, %v offered", name, p, discipline, done, offered)
				}
				hours := 0.0
				for _, x := range r.Hours {
					hours += x
				}
				if math.Abs(hours-c.End) > 1e-6*c.End {
					t.Errorf("%s, %s, line %s: %v of %v hours were counted", name, p, discipline, hours, c.End)
				}
			}
		}
	}
}

// TestErlang: where all gangs are equal, blocking is Erlang's formula, whatever the distribution of durations.
func TestErlang(t *testing.T) {
	h := build(t, hardware.Family{Name: "tree", Size: 8, Spans: []int{1}})
	load := 0.9
	want := 1.0
	for n := 1; n <= 8; n++ {
		want = load * 8 * want / (float64(n) + load*8*want)
	}
	for _, d := range []traffic.Durations{
		{Kind: traffic.Exponential, Mean: 0.5}, {Kind: traffic.Fixed, Mean: 0.5}, {Kind: traffic.Lognormal, Mean: 0.5, Sigma: 1}, {Kind: traffic.Pareto, Mean: 0.5, Alpha: 2.5},
	} {
		// The mean over independent runs and its error.
		var sum, squares float64
		const runs = 10
		for seed := range uint64(runs) {
			c := config(t, h, policy.FirstFit, seed, mix(h, load, d).Draw(seed, 220), 220)
			c.Warmup = 20
			b := run(t, c).Kinds[0].Blocked
			sum, squares = sum+b, squares+b*b
		}
		mean := sum / runs
		deviation := math.Sqrt((squares/runs - mean*mean) / (runs - 1))
		if math.Abs(mean-want) > 4*deviation || deviation > 0.01 {
			t.Errorf("%s: %.4f ± %.4f are blocked, want %.4f", d.Kind, mean, deviation, want)
		}
	}
}

// TestSameSeedSameResult also holds Random to its seed.
func TestSameSeedSameResult(t *testing.T) {
	h := build(t, hardware.Family{Name: "kep", Pools: 2})
	for _, p := range policy.Names[:6] {
		once := func(seed uint64) float64 {
			c := config(t, h, p, seed, mix(h, 0.9, traffic.Durations{Kind: traffic.Exponential, Mean: 1}).Draw(seed, 30), 30)
			c.Line = simulate.Free
			r := run(t, c)
			return r.Goodput + r.Wait
		}
		if once(1) != once(1) {
			t.Errorf("%s: two runs of one seed differ", p)
		}
		if once(1) == once(2) {
			t.Errorf("%s: two seeds give the same", p)
		}
	}
}
