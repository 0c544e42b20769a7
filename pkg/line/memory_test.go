package line_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/pkg/reason"
)

// A host may go from one fault to another: its devices are out of use as before, and people are told what is wrong now.
func TestThePresentFaultOfAHostIsTold(t *testing.T) {
	site := worlds.KEP8x8("pod")
	s := newSite(site)
	pools := s.inv.Pools()
	fault := func(why string) {
		site.Hosts[3].Blocked = &reason.Evidence{Kind: reason.KindHost, Name: site.Hosts[3].Name, Code: reason.HostUnusable, Detail: why}
		in := inventory.Input{Hosts: site.Hosts, Pools: pools} // The driver publishes nothing new.
		for name, devices := range site.Classes {
			in.Classes = append(in.Classes, inventory.ClassMatch{Name: name, Devices: devices})
		}
		s.inv = inventory.Build(in)
	}
	s.comes("big", "tpu-8x8")
	for _, why := range []string{"is cordoned", "is not Ready"} {
		fault(why)
		s.passes(t, "")
		s.says(t, "big", "HostUnusable: no tpu-8x8 is free: 1 of 1 is out of use: host pod-h3 "+why)
	}
}

// refuser refuses everybody.
type refuser struct{ proved bool }

func (r refuser) Place(gang.Gang, placement.World) placement.Decision {
	return placement.Decision{Refusal: &reason.Refusal{Code: reason.NoFreeSlice, Message: "none is free"}, Proved: r.proved}
}

// Where a placer looks first depends on the demand, so a search that it gave up may find a way for another demand.
func TestRefusalsWithoutProofStandForTheirDemand(t *testing.T) {
	for _, row := range []struct {
		proved bool
		asked  int
	}{{true, 0}, {false, 1}} {
		s := kep()
		s.placer = refuser{row.proved}
		s.comes("a", "tpu-4x4", func(e *line.Entry) { e.NoTarget = true })
		asked := func(demand placement.Demand) int {
			in := s.input()
			in.World.Demand = demand
			return line.Pass(in).Asked
		}
		asked(placement.Demand{"tpu-4x4": 1})
		if n := asked(placement.Demand{"tpu-4x4": 1}); n != 0 {
			t.Errorf("proved %v: %d questions, and nothing changed", row.proved, n)
		}
		if n := asked(placement.Demand{"tpu-4x4": 1, "tpu-8x8": 0.5}); n != row.asked {
			t.Errorf("proved %v: %d questions for another demand, want %d", row.proved, n, row.asked)
		}
	}
}
