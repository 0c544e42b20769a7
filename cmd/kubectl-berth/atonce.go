package main

import (
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// steps is how many devices the search for a largest set may try in one pool.
const steps = 200_000

// largestSet is how many of the devices can be taken at once from what the ledger leaves, pool by pool. It is exact when
// proved, else a lower bound.
func largestSet(l *ledger.Ledger, devices []*inventory.Device) (n int, proved bool) {
	proved = true
	trial := l.Try()
	for from := 0; from < len(devices); {
		to := from
		for to < len(devices) && devices[to].Pool == devices[from].Pool {
			to++
		}
		s := &setSearch{trial: trial, devices: devices[from:to], left: steps, most: bound(l, devices[from:to])}
		s.extend(0, 0)
		n += s.best
		proved = proved && (s.left > 0 || s.best == s.most)
		from = to
	}
	return n, proved
}

// bound is a number that no set of devices of one pool exceeds: what is left of the counters they use, divided by the least
// that one of them takes.
func bound(l *ledger.Ledger, devices []*inventory.Device) int {
	type counter struct{ set, name string }
	var least, left int64
	seen := map[counter]bool{}
	for _, d := range devices {
		var takes int64
		for _, c := range d.Charge {
			takes = inventory.Add(takes, c.Milli)
			if key := (counter{c.CounterSet, c.Counter}); !seen[key] {
				seen[key] = true
				left = inventory.Add(left, l.Left(d.Pool, c.CounterSet, c.Counter))
			}
		}
		if least == 0 || takes < least {
			least = takes
		}
		if takes == 0 {
			return len(devices)
		}
	}
	if least == 0 {
		return len(devices)
	}
	return int(min(int64(len(devices)), max(0, left)/least))
}

// setSearch tries every set of devices, the fullest first, until it meets the bound or runs out of steps.
type setSearch struct {
	trial      *ledger.Trial
	devices    []*inventory.Device
	best, most int
	left       int
}

func (s *setSearch) extend(from, taken int) {
	s.best = max(s.best, taken)
	for i := from; i < len(s.devices) && s.best < s.most && taken+len(s.devices)-i > s.best; i++ {
		if s.left--; s.left <= 0 {
			return
		}
		d := s.devices[i]
		if s.trial.Obstacle(d) != nil {
			continue
		}
		s.trial.Take(d)
		s.extend(i+1, taken+1)
		s.trial.Drop(d)
	}
}
