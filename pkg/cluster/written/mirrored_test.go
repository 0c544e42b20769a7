package written

import (
	"context"
	"slices"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/snapshot/mirror"
)

// informer is what a Mirror needs of one. It shows what it is given.
type informer struct {
	toolscache.SharedIndexInformer
	indexer toolscache.Indexer
	events  toolscache.ResourceEventHandler
}

func newInformer() *informer {
	return &informer{indexer: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})}
}

func (i *informer) GetIndexer() toolscache.Indexer { return i.indexer }
func (i *informer) HasSynced() bool                { return true }
func (i *informer) AddIndexers(indexers toolscache.Indexers) error {
	return i.indexer.AddIndexers(indexers)
}
func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.events = h
	return nil, nil
}

// show replaces what is there, as an informer does that lists anew.
func (i *informer) show(t *testing.T, claims []resourcev1.ResourceClaim) {
	t.Helper()
	before := i.indexer.List()
	var now []any
	for c := range claims {
		now = append(now, &claims[c])
	}
	if err := i.indexer.Replace(now, ""); err != nil {
		t.Fatal(err)
	}
	for _, obj := range before {
		if i.events == nil {
			return
		}
		if _, there, _ := i.indexer.Get(obj); !there {
			i.events.OnDelete(obj)
		}
	}
}

// informers is a cache of one kind.
type informers struct {
	cache.Informers
	claims *informer
}

func (i informers) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return i.claims, nil
}

// listed is what Items show, in the words of sees.
func (w *world) listed() []string {
	w.Helper()
	items, listed, err := w.mirrored.Items(w.Context(), &resourcev1.ResourceClaim{})
	w.ok(err)
	if !listed {
		w.Fatal("the kind is not listed")
	}
	var lines []string
	for _, c := range items.([]*resourcev1.ResourceClaim) {
		lines = append(lines, describe(c))
	}
	slices.Sort(lines)
	return lines
}

func newMirrored(w *world, of *informer) *Mirrored {
	m := mirror.New()
	w.ok(mirror.Add[resourcev1.ResourceClaim](w.Context(), m, informers{claims: of}))
	return w.Client.WithMirror(m)
}

func TestItemsStayWhereTheyAre(t *testing.T) {
	w := newWorld(t, claim("a", "1", "x"), claim("b", "2", "x"))
	items := func() []*resourcev1.ResourceClaim {
		got, _, err := w.mirrored.Items(t.Context(), &resourcev1.ResourceClaim{})
		w.ok(err)
		return got.([]*resourcev1.ResourceClaim)
	}
	before := items()
	w.note(w.Client, before[0].Name, "y")
	first, second := items(), items()
	if first[1] != before[1] || first[0] == before[0] || first[0].Annotations["note"] != "y" || !slices.Equal(first, second) {
		t.Errorf("%v, then %v and %v", before, first, second)
	}
	if other, listed, err := w.mirrored.Items(t.Context(), &resourcev1.DeviceClass{}); listed || err != nil || other != nil {
		t.Errorf("a kind that is not mirrored: %v, %v, %v", other, listed, err)
	}
}
