package experiment_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/experiment"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/scenario"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/traffic"
)

func prepare(t *testing.T, s scenario.Scenario) *scenario.Prepared {
	t.Helper()
	for _, hosts := range []int{1, 4} {
		s.Kinds = append(s.Kinds, traffic.Kind{Hosts: hosts, Share: 1, Durations: traffic.Durations{Kind: traffic.Exponential, Mean: 1}})
	}
	p, err := s.Prepare(nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func outcome(t *testing.T, p *scenario.Prepared) *experiment.Outcome {
	t.Helper()
	o, err := experiment.Run(p, 2)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestShortOfTheBest: what decisions lose in value adds up to what the goodput falls short of the computed optimum; the best
// policy loses nothing, and simulated it has the goodput that value iteration says.
func TestShortOfTheBest(t *testing.T) {
	o := outcome(t, prepare(t, scenario.Scenario{
		Name: "s", Family: hardware.Family{Name: "tree", Size: 8, Spans: []int{1, 4}}, Load: 0.9, Policies: []string{policy.Random, policy.Exact}, Seeds: 10, Hours: 300,
	}))
	goodput := func(r *simulate.Result) float64 { return r.Goodput }
	short := func(r *simulate.Result) float64 { return r.Short }
	random, lost := o.Of(0, goodput), o.Of(0, short)
	if diff := o.Optimum.Goodput - random.Mean - lost.Mean; math.Abs(diff) > 2*(random.Half+lost.Half) {
		t.Errorf("the optimum is %.4f, random has %.4f ± %.4f and loses %.4f ± %.4f", o.Optimum.Goodput, random.Mean, random.Half, lost.Mean, lost.Half)
	}
	if lost.Mean < 0.02 || lost.Half > random.Half/2 {
		t.Errorf("random loses %.4f ± %.4f, and its goodput is ± %.4f", lost.Mean, lost.Half, random.Half)
	}
	if best := o.Of(1, goodput); math.Abs(best.Mean-o.Optimum.Goodput) > 2*best.Half {
		t.Errorf("simulated the best policy has %.4f ± %.4f, computed %.4f", best.Mean, best.Half, o.Optimum.Goodput)
	}
	if lost := o.Of(1, short); lost.Mean != 0 || lost.Half != 0 {
		t.Errorf("the best policy loses %+v", lost)
	}
}

// TestHostsNeeded: the first policy needs what it has, a worse one more, and at the whole number of pools that is found the
// wait is not longer than what was asked for while with one pool fewer it is.
func TestHostsNeeded(t *testing.T) {
	s := scenario.Scenario{
		Name: "s", Family: hardware.Family{Name: "tree", Size: 4, Spans: []int{1, 4}, Pools: 6}, Load: 0.8, Line: simulate.Free, Compact: true,
		Policies: []string{policy.FirstFit, policy.Random}, Seeds: 3, Hours: 60,
	}
	p := prepare(t, s)
	o := outcome(t, p)
	if hosts, percent := o.NeedOf(0); hosts.Mean != 24 || percent.Mean != 0 || percent.Half != 0 {
		t.Errorf("first fit needs %+v, %+v %%", hosts, percent)
	}
	if hosts, percent := o.NeedOf(1); hosts.Mean < 24.5 || percent.Mean < 2 {
		t.Errorf("random needs %+v, %+v %%", hosts, percent)
	}
	for seed, need := range o.Needs[1] {
		wait := func(hosts int) float64 {
			h, err := s.Family.WithUnits(hosts / 4).Build()
			if err != nil {
				t.Fatal(err)
			}
			placer, err := policy.New(policy.Random, policy.Options{Hardware: h, Seed: uint64(seed)})
			if err != nil {
				t.Fatal(err)
			}
			r, err := simulate.Run(simulate.Config{
				Hardware: h, Gangs: p.Gangs(uint64(seed)), Placer: placer, Line: simulate.Free, Warmup: p.Warmup, End: p.Hours, Offers: p.Offers,
			})
			if err != nil {
				t.Fatal(err)
			}
			return r.Wait
		}
		wanted := o.Runs[0][seed].Wait
		if enough, few := wait(need.Whole), wait(need.Whole-4); enough > wanted || few <= wanted {
			t.Errorf("seed %d: at most %v is wanted; with %d hosts it is %v, with 4 fewer %v", seed, wanted, need.Whole, enough, few)
		}
		if need.Hosts > float64(need.Whole) || need.Hosts < float64(need.Whole-4) {
			t.Errorf("seed %d: %v hosts, and whole pools make %d", seed, need.Hosts, need.Whole)
		}
	}
}

// Runs side by side do not touch each other.
func TestParallel(t *testing.T) {
	p := prepare(t, scenario.Scenario{
		Name: "s", Family: hardware.Family{Name: "kep"}, Load: 0.9, Policies: policy.Names, Seeds: 2, Hours: 20,
	})
	one, err := experiment.Run(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one.Runs, outcome(t, p).Runs); diff != "" {
		t.Error(diff)
	}
}
