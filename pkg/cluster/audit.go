package cluster

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// Audit reads and books the last snapshot again from nothing, and compares that with what is kept. It is nil when both say
// the same; otherwise the breach is reported too, and the next World is built from nothing. It takes as long as that does,
// and holds nobody up meanwhile.
func (c *Cluster) Audit() error {
	c.mutex.Lock()
	k := c.kept
	if k.ledger == nil {
		c.mutex.Unlock()
		return nil
	}
	l, inv, s := k.ledger.Clone(), k.view.Inventory, k.snapshot()
	c.mutex.Unlock()

	view := dra.NewCache().Read(s)
	diff := differInventories(inv, view.Inventory)
	if diff == "" {
		diff = ledger.Differ(l, scratch(view, s, nil))
	}
	if diff == "" {
		return nil
	}
	err := fmt.Errorf("kept, and built from nothing: %s", diff)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.breached(err)
	if c.kept == k {
		c.hardware = dra.NewCache()
		c.kept = newKept(c.hardware)
	}
	return err
}

// snapshot is what the ledger was booked from.
func (k *kept) snapshot() *snapshot.Snapshot {
	return &snapshot.Snapshot{
		AcceleratorPools: slices.Clone(k.known.pools.at), Reservations: slices.Clone(k.reservations.at),
		ResourceSlices: slices.Clone(k.known.slices.at), DeviceClasses: slices.Clone(k.known.classes.at),
		DeviceTaintRules: slices.Clone(k.known.rules.at), ResourceClaims: slices.Clone(k.claims.at),
		Nodes: slices.Clone(k.known.nodes.at), Pods: slices.Clone(k.pods.at), Workloads: slices.Clone(k.workloads.at),
	}
}

// differInventories says where two inventories differ first, or "".
func differInventories(a, b *inventory.Inventory) string {
	for _, name := range a.Hosts() {
		x, _ := a.Host(name)
		if y, known := b.Host(name); !known || !reflect.DeepEqual(x, y) {
			return fmt.Sprintf("host %s: %+v, and %+v", name, x, y)
		}
	}
	if len(a.Pools()) != len(b.Pools()) || len(a.Hosts()) != len(b.Hosts()) {
		return fmt.Sprintf("%d pools on %d hosts, and %d on %d", len(a.Pools()), len(a.Hosts()), len(b.Pools()), len(b.Hosts()))
	}
	for i, p := range a.Pools() {
		q := b.Pools()[i]
		if p.ID != q.ID || p.Generation != q.Generation || !reflect.DeepEqual(p.Problem, q.Problem) ||
			!slices.Equal(p.Counters, q.Counters) || !slices.Equal(p.Slices, q.Slices) || !reflect.DeepEqual(p.Devices, q.Devices) {
			return fmt.Sprintf("pool %s of generation %d, and %s of generation %d, are not the same", p.ID, p.Generation, q.ID, q.Generation)
		}
		if x, y := a.State(i), b.State(i); x.Fingerprint != y.Fingerprint || x.Classes() != y.Classes() {
			return fmt.Sprintf("pool %s is in another state", p.ID)
		}
	}
	return ""
}
