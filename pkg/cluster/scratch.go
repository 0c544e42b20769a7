package cluster

import (
	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// scratch books a whole snapshot from nothing, without the reservations named in without. It says what a ledger that is
// kept up has to say, and shares no code with how that is kept.
func scratch(view *dra.View, s *snapshot.Snapshot, without map[string]bool) *ledger.Ledger {
	l := ledger.New(view.Inventory)
	for _, h := range view.Holdings(s, without) {
		l.Take(h)
	}
	for _, r := range s.Reservations {
		for _, q := range r.Status.Quarantine {
			l.Quarantine(inventory.PoolID{Driver: q.Driver, Name: q.Pool}, q.Node)
		}
	}
	var requests shared
	for _, p := range s.Pods {
		if nodes.Occupies(p) && !without[reservationOf(p)] {
			l.Use(p.Spec.NodeName, p.Namespace+"/"+p.Name, requests.of(p))
		}
	}
	for _, seat := range seats(s, without) {
		l.Use(seat.node, seat.name, seat.requests)
	}
	return l
}
