package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// TestLargestSet compares the search with every subset of small random pools.
func TestLargestSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		id := inventory.PoolID{Driver: "d", Name: "p"}
		counters := inventory.Published{Name: "counters", Pool: id, SliceCount: 2, CounterSets: []inventory.CounterSet{{Name: "s"}}}
		devices := inventory.Published{Name: "devices", Pool: id, SliceCount: 2}
		for i := range 4 {
			counters.CounterSets[0].Counters = append(counters.CounterSets[0].Counters, inventory.Counter{Set: "s", Name: fmt.Sprint(i), Milli: 1 + r.Int64N(3)})
		}
		for i := range 1 + r.IntN(8) {
			d := inventory.PublishedDevice{Device: inventory.Device{Name: fmt.Sprint(i), Hosts: []string{"h"}}}
			for c := range 4 {
				if r.IntN(2) == 0 {
					d.Consumes = append(d.Consumes, inventory.Charge{CounterSet: "s", Counter: fmt.Sprint(c), Milli: 1})
				}
			}
			devices.Devices = append(devices.Devices, d)
		}
		p := inventory.NewPool(id, []inventory.Published{counters, devices})
		l := ledger.New(inventory.Build(inventory.Input{Pools: []*inventory.Pool{p}}))
		best := 0
		for set := range 1 << len(p.Devices) {
			trial, n := l.Try(), 0
			for i, d := range p.Devices {
				if set>>i&1 == 1 && trial.Obstacle(d) == nil {
					trial.Take(d)
					n++
				}
			}
			best = max(best, n)
		}
		if n, proved := largestSet(l, p.Devices); n != best || !proved {
			t.Fatalf("round %d: %d, proved %v; the largest set has %d", round, n, proved, best)
		}
	}
}
