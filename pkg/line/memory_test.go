package line_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/inventory"
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
