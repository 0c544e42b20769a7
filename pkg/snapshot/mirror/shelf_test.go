package mirror

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// informer is the store of one, with our shelf on it, and the events that it still has to deliver.
type informer struct {
	toolscache.Indexer
	*shelf[corev1.Pod, *corev1.Pod]
	deletions []any
	synced    bool
}

func newInformer() *informer {
	i := &informer{synced: true}
	i.Indexer = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
		touched: func(obj any) ([]string, error) { return i.touch(obj) },
	})
	i.shelf = newShelf[corev1.Pod](i.Indexer, func() bool { return i.synced })
	return i
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}}
}

func (i *informer) look(t *testing.T, names ...types.NamespacedName) View {
	t.Helper()
	v, ok := i.Look(names)
	if !ok {
		t.Fatal("not listed")
	}
	return v
}

func (i *informer) items(t *testing.T) []*corev1.Pod { return i.look(t).Items().([]*corev1.Pod) }

// relist replaces the store by some of what there is, as after a watch that broke; the deletions are told later.
func (i *informer) relist(rng *rand.Rand, keep int) {
	var left []any
	for _, obj := range i.Indexer.List() {
		if rng.IntN(10) < keep {
			left = append(left, obj)
		} else {
			p := obj.(*corev1.Pod)
			i.deletions = append(i.deletions, toolscache.DeletedFinalStateUnknown{Key: p.Namespace + "/" + p.Name, Obj: p})
		}
	}
	if err := i.Replace(left, "1"); err != nil {
		panic(err)
	}
}

func TestFollowsTheStore(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		i := newInformer()
		for n := range []int{50, 5000}[seed%2] {
			must(i.Add(pod(fmt.Sprint("p", n))))
		}
		before := i.items(t)
		for step := range 100 {
			lost := false
			for range rng.IntN(5) {
				p := pod(fmt.Sprint("p", rng.IntN(6000)))
				switch rng.IntN(30) {
				case 0:
					i.relist(rng, rng.IntN(11))
					lost = rng.IntN(2) == 0 // An event may be late.
				case 1, 2, 3, 4, 5, 6, 7:
					must(i.Delete(p))
				default:
					must(i.Update(p))
				}
			}
			if !lost {
				for _, obj := range i.deletions {
					i.deleted(obj)
				}
				i.deletions = nil
			}
			was := append([]*corev1.Pod(nil), before...)
			now := i.items(t)
			if lost {
				continue
			}
			if len(now) != len(i.Indexer.List()) {
				t.Fatalf("seed %d, step %d: %d items, %d in the store", seed, step, len(now), len(i.Indexer.List()))
			}
			for _, p := range now {
				if obj, _, _ := i.GetByKey(p.Namespace + "/" + p.Name); obj != p {
					t.Fatalf("seed %d, step %d: %s is not the one in the store", seed, step, p.Name)
				}
			}
			for at, p := range was {
				if before[at] != p {
					t.Fatalf("seed %d, step %d: an earlier list changed", seed, step)
				}
			}
			before = now
		}
		if err := i.check(); err != nil && len(i.deletions) == 0 {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func TestPlaces(t *testing.T) {
	i := newInformer()
	for n := range 3000 {
		if err := i.Add(pod(fmt.Sprint("p", n))); err != nil {
			t.Fatal(err)
		}
	}
	before := i.items(t)
	if again := i.items(t); &again[0] != &before[0] {
		t.Error("nothing changed, and the list is another")
	}
	last := before[len(before)-1]
	if err := i.Delete(before[7]); err != nil {
		t.Fatal(err)
	}
	if err := i.Update(pod(before[9].Name)); err != nil {
		t.Fatal(err)
	}
	now := i.items(t)
	moved := map[int]bool{}
	for at := range now {
		if now[at] != before[at] {
			moved[at] = true
		}
	}
	if len(now) != 2999 || len(moved) != 2 || now[7] != last || !moved[9] {
		t.Errorf("%d items, others at %v", len(now), moved)
	}
}

func TestWith(t *testing.T) {
	i := newInformer()
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := i.Add(pod(name)); err != nil {
			t.Fatal(err)
		}
	}
	name := func(n string) types.NamespacedName { return types.NamespacedName{Namespace: "ml", Name: n} }
	v := i.look(t, name("d"), name("b"), name("new"), name("never"))
	known := v.Known()
	if known[0].GetName() != "d" || known[1].GetName() != "b" || known[2] != nil || known[3] != nil {
		t.Fatalf("%v", known)
	}
	b := pod("b")
	got := v.With([]client.Object{nil, b, pod("new"), nil}).([]*corev1.Pod)
	names := map[string]*corev1.Pod{}
	for _, p := range got {
		names[p.Name] = p
	}
	if len(got) != 4 || names["a"] == nil || names["b"] != b || names["c"] == nil || names["new"] == nil {
		t.Errorf("%v", names)
	}
	if items := v.Items().([]*corev1.Pod); len(items) != 4 || len(i.items(t)) != 4 || i.look(t, name("d")).Known()[0] == nil {
		t.Error("the list itself changed")
	}
}

func TestUnsyncedIsNotListed(t *testing.T) {
	i := newInformer()
	i.synced = false
	if _, listed := i.Look(nil); listed {
		t.Error("a list of what is not known yet")
	}
}

func TestCheckFindsWhatWasNotHeard(t *testing.T) {
	i := newInformer()
	for n := range 2000 {
		if err := i.Add(pod(fmt.Sprint("p", n))); err != nil {
			t.Fatal(err)
		}
	}
	i.items(t)
	if err := i.check(); err != nil {
		t.Fatal(err)
	}
	if err := i.Update(pod("p3")); err != nil {
		t.Fatal(err)
	}
	i.heard() // As if the store had not told.
	err := i.check()
	if want := "ml/p3 changed and nothing was heard of it"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := i.check(); err != nil {
		t.Error("not mended:", err)
	}
}
