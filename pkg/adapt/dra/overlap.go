package dra

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
)

// Overlap is what one AcceleratorPool selects and another manages.
type Overlap struct {
	// Owner is the name of the AcceleratorPool that manages the DRA pools.
	Owner string
	// SameAge is true when the two were created within one second, so that their names decided.
	SameAge bool
	// Pools are the names of the DRA pools, in natural order; never empty.
	Pools []string
}

// Overlaps returns what p selects of the pools without managing it, by the name of who does.
func (m Managed) Overlaps(p *berth.AcceleratorPool, pools []*inventory.Pool) []Overlap {
	var out []Overlap
	for _, pool := range pools {
		if pool.ID.Driver != p.Spec.Driver || !p.Spec.PoolSelector.Selects(pool.ID.Name) {
			continue
		}
		owner := m.Owner(pool.ID)
		if owner == nil || owner.Name == p.Name {
			continue
		}
		i := slices.IndexFunc(out, func(o Overlap) bool { return o.Owner == owner.Name })
		if i < 0 {
			i = len(out)
			out = append(out, Overlap{Owner: owner.Name, SameAge: owner.CreationTimestamp.Time.Equal(p.CreationTimestamp.Time)})
		}
		out[i].Pools = append(out[i].Pools, pool.ID.Name)
	}
	for i := range out {
		slices.SortFunc(out[i].Pools, inventory.Natural)
	}
	slices.SortFunc(out, func(a, b Overlap) int { return cmp.Compare(a.Owner, b.Owner) })
	return out
}

// String is a clause for people. It names up to five DRA pools.
func (o Overlap) String() string {
	const most = 5
	what, names, is := "DRA pools ", strings.Join(o.Pools[:min(most, len(o.Pools))], ", "), " are"
	if len(o.Pools) == 1 {
		what, is = "DRA pool ", " is"
	}
	if more := len(o.Pools) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	why := ", which is older"
	if o.SameAge {
		why = ", which is as old and comes first by name"
	}
	return what + names + is + " managed by AcceleratorPool " + o.Owner + why
}
