package simulate_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/simulate"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/traffic"
)

// On four hosts: two are held until 4. At 1 a gang of four comes, at 2 one of a single host that declares to end by 3, at 2.5
// one that declares to end by 5.5.
var queued = []traffic.Gang{
	{Class: "n2", Hosts: 2, Arrival: 0, Duration: 4, Limit: 4},
	{Class: "n4", Hosts: 4, Arrival: 1, Duration: 2, Limit: 2},
	{Class: "n1", Hosts: 1, Arrival: 2, Duration: 1, Limit: 1},
	{Class: "n1", Hosts: 1, Arrival: 2.5, Duration: 3, Limit: 3},
}

func TestTargetsAndBackfill(t *testing.T) {
	h := build(t, hardware.Family{Name: "tree", Size: 4, Spans: []int{1, 2, 4}})
	for _, row := range []struct {
		discipline    simulate.Discipline
		small, single float64
	}{
		// Who comes later goes first: the gang of four waits from 1 until 5.5.
		{simulate.Free, 0, 4.5},
		// All four hosts are kept from 1 on and due at 4. The first small gang ends in time and is let in, the second would not
		// and waits until the gang of four has ended, from 2.5 to 6.
		{simulate.Targets, 3.5 / 2, 3},
	} {
		c := config(t, h, policy.Berth, 0, queued, 20)
		c.Line = row.discipline
		r := run(t, c)
		near(t, string(row.discipline)+": wait of the small ones", r.Kinds[0].Mean, row.small)
		near(t, string(row.discipline)+": wait of the gang of four", r.Kinds[2].Mean, row.single)
	}
}

// A gang that declares nothing and has a lower priority is let into a target, and sent away when only it is in the way: it
// does its three hours from 6 on, and the work until 4 is lost.
func TestRecall(t *testing.T) {
	h := build(t, hardware.Family{Name: "tree", Size: 4, Spans: []int{1, 2, 4}})
	gangs := []traffic.Gang{
		{Class: "n2", Hosts: 2, Arrival: 0, Duration: 4, Limit: 4, Priority: 1},
		{Class: "n4", Hosts: 4, Arrival: 1, Duration: 2, Priority: 1},
		{Class: "n1", Hosts: 1, Arrival: 2, Duration: 3},
	}
	c := config(t, h, policy.Berth, 0, gangs, 20)
	c.Line, c.Recall = simulate.Targets, true
	r := run(t, c)
	near(t, "wait of the gang of four", r.Kinds[2].Mean, 3)
	near(t, "wait of the small one until it first began", r.Kinds[0].Mean, 0)
	near(t, "goodput", r.Goodput, (8+8+3)/80.0)
	if r.Evictions != 1 {
		t.Errorf("%d evictions", r.Evictions)
	}
}

// TestWhoIsLeftOut: that gangs without hope have no part in a pass changes nothing, under any policy, with several queues and
// priorities.
func TestWhoIsLeftOut(t *testing.T) {
	h := build(t, hardware.Family{Name: "kep", Pools: 2})
	m := mix(h, 0.95, traffic.Durations{Kind: traffic.Lognormal, Mean: 1, Sigma: 1})
	waited := 0.0
	for seed := range uint64(2) {
		gangs := m.Draw(seed, 25)
		for i := range gangs {
			gangs[i].Queue, gangs[i].Priority = fmt.Sprint(i%3), int32(i%2)
		}
		for _, p := range policy.Names[:6] {
			fresh := func() simulate.Config {
				c := config(t, h, p, seed, gangs, 25)
				c.Line = simulate.Free
				return c
			}
			got, want := run(t, fresh()), run(t, fresh().WithEverybody())
			got.Decisions, want.Decisions = 0, 0
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, %s: %s", seed, p, diff)
			}
			waited += got.Wait
		}
	}
	if !(waited > 1) || math.IsInf(waited, 0) {
		t.Errorf("gangs waited for %v hours in all: nothing is compared", waited)
	}
}
