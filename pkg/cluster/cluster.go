package cluster

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// Cluster remembers the last snapshot and what it booked for it. It is safe for concurrent use, also with snapshots that
// were taken at different times: each World is that of its own snapshot.
type Cluster struct {
	breached func(error)

	mutex    sync.Mutex
	hardware *dra.Cache
	kept     *kept
}

// New returns a Cluster that has read nothing yet.
func New() *Cluster {
	hardware := dra.NewCache()
	return &Cluster{breached: func(error) {}, hardware: hardware, kept: newKept(hardware)}
}

// Breached has f called with every breach: the kept ledger was found not to say what the objects say, or Berth's own
// accounts do not balance. The World returned with it is right nevertheless. Call it before the first World; f must not
// call the Cluster.
func (c *Cluster) Breached(f func(error)) { c.breached = f }

// World is everything in the snapshot: all claims, all reservations that are not released, quarantine, and the room that
// pods use or that seats of reserved gangs will need. It belongs to the caller, who may change its ledger.
func (c *Cluster) World(s *snapshot.Snapshot) placement.World {
	return c.WorldWithout(s)
}

// WorldWithout is World as if the named reservations, their claims, seats and pods were not there: what a gang finds
// when its own slice is checked again. Quarantine stays.
func (c *Cluster) WorldWithout(s *snapshot.Snapshot, reservations ...types.NamespacedName) placement.World {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	l, err := c.at(s, reservations)
	if err != nil {
		c.breached(err)
		c.kept = newKept(c.hardware)
		if l, err = c.at(s, reservations); err != nil {
			// Not even what was booked just now balances: ask nothing of what is kept.
			c.breached(err)
			l = scratch(c.kept.view, s, names(reservations))
			c.kept = newKept(c.hardware)
		}
	}
	return placement.World{Inventory: l.Inventory(), Ledger: l}
}

func (c *Cluster) at(s *snapshot.Snapshot, without []types.NamespacedName) (*ledger.Ledger, error) {
	if err := c.kept.update(s); err != nil {
		return nil, err
	}
	return c.kept.without(names(without))
}

func names(reservations []types.NamespacedName) map[string]bool {
	out := make(map[string]bool, len(reservations))
	for _, r := range reservations {
		out[r.String()] = true
	}
	return out
}
