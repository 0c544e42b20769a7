package cluster

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// Cluster remembers what it read of objects that did not change. It is safe for concurrent use.
type Cluster struct {
	hardware *dra.Cache
}

// New returns a Cluster that has read nothing yet.
func New() *Cluster { return &Cluster{hardware: dra.NewCache()} }

// World is everything in the snapshot: all claims, all reservations that are not released, quarantine, and the room that
// pods use or that seats of reserved gangs will need.
func (c *Cluster) World(s *snapshot.Snapshot) placement.World {
	return c.world(s, nil)
}

// WorldWithout is World as if the named reservations, their claims, seats and pods were not there: what a gang finds
// when its own slice is checked again. Quarantine stays.
func (c *Cluster) WorldWithout(s *snapshot.Snapshot, reservations ...types.NamespacedName) placement.World {
	without := map[string]bool{}
	for _, r := range reservations {
		without[r.String()] = true
	}
	return c.world(s, without)
}

// Inventory is what exists, without what is taken.
func (c *Cluster) Inventory(s *snapshot.Snapshot) *inventory.Inventory {
	return c.hardware.Read(s).Inventory
}

// Hardware is the inventory together with which DRA pools are managed.
func (c *Cluster) Hardware(s *snapshot.Snapshot) *dra.View { return c.hardware.Read(s) }

func (c *Cluster) world(s *snapshot.Snapshot, without map[string]bool) placement.World {
	view := c.hardware.Read(s)
	l := ledger.New(view.Inventory)
	for _, h := range view.Holdings(s, without) {
		l.Take(h)
	}
	for _, r := range s.Reservations {
		for _, q := range r.Status.Quarantine {
			l.Quarantine(inventory.PoolID{Driver: q.Driver, Name: q.Pool}, q.Node)
		}
	}
	for _, p := range s.Pods {
		if nodes.Occupies(p) && !without[reservationOf(p)] {
			l.Use(p.Spec.NodeName, p.Namespace+"/"+p.Name, nodes.Used(p))
		}
	}
	for _, seat := range seats(s, without) {
		l.Use(seat.node, seat.name, seat.requests)
	}
	return placement.World{Inventory: view.Inventory, Ledger: l}
}
