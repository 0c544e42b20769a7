package cluster

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// Scratch is the World of a snapshot that nobody has kept anything of.
func Scratch(s *snapshot.Snapshot, without ...types.NamespacedName) placement.World {
	view := dra.NewCache().Read(s)
	return placement.World{Inventory: view.Inventory, Ledger: scratch(view, s, names(without))}
}

// DifferInventories says where two inventories differ first, or "".
func DifferInventories(a, b *inventory.Inventory) string { return differInventories(a, b) }

// Spoil changes what the Cluster keeps as a mistake of ours would.
func (c *Cluster) Spoil() {
	for at, p := range c.kept.view.Inventory.Pools() {
		for _, h := range c.kept.ledger.Holdings() {
			if h.Pool == p.ID {
				c.kept.ledger.Give(h)
				return
			}
		}
		_ = at
	}
}
