package performance

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/test/processor"
)

// halfTaken takes devices of up to largest hosts until half of the hosts are held: each time the one that Scored takes, or
// one of its runners-up, as after many comings and goings.
func halfTaken(inv *inventory.Inventory, rng *rand.Rand, largest int) *ledger.Ledger {
	l := ledger.New(inv)
	placer := placement.NewScored(0)
	classes := inv.Classes()
	for i, taken := 0, 0; taken < len(inv.Hosts())/2; i++ {
		c := classes[rng.IntN(len(classes))]
		span := c.Members[0].Span
		if span > largest {
			continue
		}
		d := placer.Place(ask(c.Name, span, 1), placement.World{Inventory: inv, Ledger: l})
		if !d.Fits() {
			continue
		}
		device := d.PodSets[0].Claims[0].Instances[0].Devices[0]
		pool, name := device.Pool, device.Name
		if n := rng.IntN(1 + len(d.RunnersUp)); n > 0 {
			pool, name = d.RunnersUp[n-1].Pool, d.RunnersUp[n-1].Name
		}
		l.Take(ledger.Holding{Owner: fmt.Sprint("x/", i), Reservation: fmt.Sprint(i), Pool: pool, Device: name})
		taken += span
	}
	return l
}

// byTurns are two worlds that differ in what is taken of their first pool, so that whoever decides in them by turns finds a
// pool that was touched each time.
func byTurns(inv *inventory.Inventory, l *ledger.Ledger) [2]placement.World {
	other := l.Clone()
	for _, d := range inv.Pools()[0].Devices {
		if len(d.Hosts) == 1 && other.Free(d) {
			other.Take(ledger.Holding{Owner: "x/one-more", Pool: d.Pool, Device: d.Name})
			break
		}
	}
	return [2]placement.World{{Inventory: inv, Ledger: l}, {Inventory: inv, Ledger: other}}
}

// measure also reports processor time, and returns that of one turn in nanoseconds.
func measure(b *testing.B, do func(int)) float64 {
	b.Helper()
	do(0)
	do(1)
	return processor.Turns(b, do)
}

// mean is of the other side's runs.
type mean struct {
	sum  float64
	runs int
}

func (m *mean) add(v float64) { m.sum, m.runs = m.sum+v, m.runs+1 }

// faster reports how many times as much processor time the other side took in the same process, unless that was not measured.
func (m *mean) faster(b *testing.B, own float64) {
	b.Helper()
	if m.runs > 0 {
		b.ReportMetric(m.sum/float64(m.runs)/own, "times-faster")
	}
}
