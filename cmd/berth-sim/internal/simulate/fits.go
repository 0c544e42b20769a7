package simulate

import (
	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// refused is the answer to a gang of whose class nothing is free.
var refused = placement.Decision{Refusal: &reason.Refusal{Code: reason.NoFreeSlice, Message: "nothing is free"}, Proved: true}

// fits knows whether a device of each offer is free, and looks again only at pools in which something changed.
type fits struct {
	inv   *inventory.Inventory
	parts [][]part
	now   []bool
}

// part is the devices of one offer in one pool.
type part struct {
	pool    int
	devices []int32
	known   bool
	print   uint64
	free    bool
	// hint is where a free device was found last.
	hint int
}

func newFits(inv *inventory.Inventory, offers []hardware.Offer) *fits {
	f := &fits{inv: inv, parts: make([][]part, len(offers)), now: make([]bool, len(offers))}
	for i, o := range offers {
		for _, m := range inv.Class(o.Class).Members {
			if m.Span == o.Hosts {
				f.parts[i] = append(f.parts[i], part{pool: m.Pool, devices: m.Devices})
			}
		}
	}
	return f
}

// any reports whether some device of the offer is free. Room for pods is left to the placer.
func (f *fits) any(offer int, l *ledger.Ledger) bool {
	for i := range f.parts[offer] {
		p := &f.parts[offer][i]
		if print := l.Fingerprint(p.pool); !p.known || p.print != print {
			p.known, p.print = true, print
			p.look(l.Occupied(p.pool), f.inv.State(p.pool).Off)
		}
		if p.free {
			return true
		}
	}
	return false
}

// devices is how many there are of an offer.
func (f *fits) devices(offer int) int {
	n := 0
	for i := range f.parts[offer] {
		n += len(f.parts[offer][i].devices)
	}
	return n
}

func (p *part) look(occ ledger.Occupied, off []bool) {
	free := func(d int32) bool { return !off[d] && (occ.Short == nil || occ.Short[d] == 0 && occ.Shut[d] == 0) }
	if p.free = p.hint < len(p.devices) && free(p.devices[p.hint]); p.free {
		return
	}
	for i, d := range p.devices {
		if free(d) {
			p.free, p.hint = true, i
			return
		}
	}
}

// all is any of every offer. The result is good until the next call.
func (f *fits) all(l *ledger.Ledger) []bool {
	for i := range f.now {
		f.now[i] = f.any(i, l)
	}
	return f.now
}
