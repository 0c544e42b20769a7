package simulate

import (
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
)

// books are the ledger of a run and who of its gangs holds what.
type books struct {
	hardware *hardware.Hardware
	ledger   *ledger.Ledger
	held     map[string][]ledger.Holding
}

func newBooks(h *hardware.Hardware) *books {
	return &books{hardware: h, ledger: h.Ledger(), held: map[string][]ledger.Holding{}}
}

// take books the devices of a decision for a gang and returns how many hosts they span.
func (b *books) take(gang string, d placement.Decision) int {
	hosts := 0
	for _, ps := range d.PodSets {
		for _, c := range ps.Claims {
			for _, in := range c.Instances {
				for i := range in.Devices {
					dev := &in.Devices[i]
					h := ledger.Holding{Owner: gang, Reservation: gang, Pool: dev.Pool, Device: dev.Name, Charge: dev.Charge, Hosts: dev.Hosts}
					b.ledger.Take(h)
					b.held[gang] = append(b.held[gang], h)
					hosts += len(dev.Hosts)
				}
			}
		}
	}
	return hosts
}

// release gives back what the gang holds.
func (b *books) release(gang string) {
	for _, h := range b.held[gang] {
		b.ledger.Give(h)
	}
	delete(b.held, gang)
}

// empty says what is wrong when the books do not stand as at the beginning.
func (b *books) empty() error {
	if diff := cmp.Diff(b.hardware.Ledger().Holdings(), b.ledger.Holdings()); diff != "" {
		return fmt.Errorf("after the last gang the ledger does not stand as before the first (-before +after):\n%s", diff)
	}
	return nil
}
