package dra

import (
	"cmp"
	"slices"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
)

// Managed says which DRA pools Berth owns. Drivers, names and prefixes are compared byte by byte.
type Managed struct {
	byDriver map[string][]*berth.AcceleratorPool
}

// NewManaged indexes AcceleratorPools. Of several that select the same DRA pool the oldest counts, and of equally old ones
// the first by name: what is created later takes no hardware away from a gang that stands on it.
func NewManaged(pools []*berth.AcceleratorPool) Managed {
	m := Managed{byDriver: map[string][]*berth.AcceleratorPool{}}
	for _, p := range pools {
		m.byDriver[p.Spec.Driver] = append(m.byDriver[p.Spec.Driver], p)
	}
	for _, list := range m.byDriver {
		slices.SortFunc(list, func(a, b *berth.AcceleratorPool) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
	}
	return m
}

// Owner returns the AcceleratorPool that selects the DRA pool, or nil.
func (m Managed) Owner(id inventory.PoolID) *berth.AcceleratorPool {
	for _, p := range m.byDriver[id.Driver] {
		if p.Spec.PoolSelector.Selects(id.Name) {
			return p
		}
	}
	return nil
}
