package written

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/berth-dev/berth/pkg/snapshot"
	"github.com/berth-dev/berth/pkg/snapshot/mirror"
)

// Mirrored is a Client that also lists whole kinds without copying them.
type Mirrored struct {
	*Client
	mirror *mirror.Mirror
}

var _ snapshot.Lister = &Mirrored{}

// WithMirror lists the kinds of the mirror from there. It must be of the informers that the client reads from.
func (c *Client) WithMirror(m *mirror.Mirror) *Mirrored { return &Mirrored{Client: c, mirror: m} }

// Items implements snapshot.Lister.
func (c *Mirrored) Items(ctx context.Context, kind client.Object) (items any, listed bool, err error) {
	shelf := c.mirror.Shelf(kind)
	if shelf == nil {
		return nil, false, nil
	}
	gvk, err := apiutil.GVKForObject(kind, c.Scheme())
	if err != nil {
		return nil, false, err
	}
	own := c.overlay.pending(gvk, "")
	keys := slices.SortedFunc(maps.Keys(own), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	names := make([]types.NamespacedName, len(keys))
	for i, k := range keys {
		names[i] = k.NamespacedName
	}
	view, ok := shelf.Look(names)
	switch {
	case !ok:
		return nil, false, nil
	case len(keys) == 0:
		return view.Items(), true, nil
	}
	seen := view.Known()
	for i, k := range keys {
		seen[i] = c.overlay.merge(ctx, k, own[k], seen[i])
	}
	return view.With(seen), true, nil
}
