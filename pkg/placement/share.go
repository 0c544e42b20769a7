package placement

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/reason"
)

// obstacle is what keeps a device from being taken, or a share of it that takes these amounts.
func obstacle(t *ledger.Trial, d *inventory.Device, takes []inventory.Amount) *ledger.Obstacle {
	if d.Shared {
		return t.ObstacleTo(d, takes)
	}
	return t.Obstacle(d)
}

func take(t *ledger.Trial, d *inventory.Device, takes []inventory.Amount) {
	if d.Shared {
		t.TakeShare(d, takes)
	} else {
		t.Take(d)
	}
}

func drop(t *ledger.Trial, d *inventory.Device, takes []inventory.Amount) {
	if d.Shared {
		t.DropShare(d, takes)
	} else {
		t.Drop(d)
	}
}

// unserved is why a device can never serve what a request asks of its capacities.
func unserved(d *inventory.Device, asked []inventory.Amount) *blocked {
	var needs []string
	for _, a := range asked {
		needs = append(needs, a.Quantity()+" "+a.Name)
	}
	return &blocked{device: d, code: reason.ShapeUnknown, notes: []reason.Evidence{{
		Kind: reason.KindDevice, Name: d.Short(), Code: reason.ShapeUnknown, Detail: fmt.Sprintf("cannot give %s", strings.Join(needs, ", ")),
	}}}
}
