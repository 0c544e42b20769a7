package written

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// world is an API server, an informer that lags behind it until it is told to catch up, and our client over both.
type world struct {
	*testing.T
	*Client
	// server is how others read and write.
	server client.Client
	// informer answers our reads.
	informer client.Reader
	clock    time.Time
	// mirrored lists what store shows, which is what informer shows.
	mirrored *Mirrored
	store    *informer
	// reading is called before the informer answers, read after it.
	reading, read func()
	// unreadable makes reads from the server fail.
	unreadable error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	scheme := runtime.NewScheme()
	if err := resourcev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, clock: time.Unix(1000, 0), store: newInformer()}
	// As an API server does, it counts versions over all objects.
	w.server = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&resourcev1.ResourceClaim{}).
		WithGlobalResourceVersionCounter().Build()
	w.sync()
	cached := interceptor.NewClient(w.server.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return w.answer(func() error { return w.informer.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return w.answer(func() error { return w.informer.List(ctx, list, opts...) })
		},
	})
	live := interceptor.NewClient(w.server.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if w.unreadable != nil {
				return w.unreadable
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	w.Client = New(cached, live)
	w.overlay.now = func() time.Time { return w.clock }
	w.mirrored = newMirrored(w, w.store)
	return w
}

func (w *world) answer(ask func() error) error {
	if w.reading != nil {
		w.reading()
	}
	err := ask()
	if w.read != nil {
		w.read()
	}
	return err
}

// sync lets the informer show what the server has.
func (w *world) sync() {
	w.Helper()
	var claims resourcev1.ResourceClaimList
	w.ok(w.server.List(w.Context(), &claims))
	objects := make([]client.Object, 0, len(claims.Items))
	for i := range claims.Items {
		objects = append(objects, &claims.Items[i])
	}
	w.store.show(w.T, claims.Items)
	w.informer = fake.NewClientBuilder().WithScheme(w.server.Scheme()).WithObjects(objects...).Build()
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// claim is an object to play with. The note is an annotation by which versions are told apart.
func claim(name, uid, note string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ml", Name: name, UID: types.UID(uid),
		Labels: map[string]string{"gang": "a"}, Annotations: map[string]string{"note": note},
	}}
}

func lasting(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	c.Finalizers = []string{"berth.dev/hold"}
	return c
}

func labelled(c *resourcev1.ResourceClaim, gang string) *resourcev1.ResourceClaim {
	c.Labels = map[string]string{"gang": gang}
	return c
}

// get reads a claim through a client: nil when it is not there.
func (w *world) get(r client.Reader, name string) *resourcev1.ResourceClaim {
	w.Helper()
	c := &resourcev1.ResourceClaim{}
	err := r.Get(w.Context(), types.NamespacedName{Namespace: "ml", Name: name}, c)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return c
}

// sees is what our client shows by List, and by Get, which must agree: "name uid note", with a + when it is in deletion.
func (w *world) sees(opts ...client.ListOption) []string {
	w.Helper()
	var list resourcev1.ResourceClaimList
	w.ok(w.List(w.Context(), &list, opts...))
	lines := make([]string, 0, len(list.Items))
	for i := range list.Items {
		line := describe(&list.Items[i])
		if got := describe(w.get(w.Client, list.Items[i].Name)); got != line {
			w.Fatalf("List shows %s, Get %s", line, got)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	if len(opts) == 0 {
		if got := w.listed(); !slices.Equal(got, lines) {
			w.Fatalf("List shows %q, Items %q", lines, got)
		}
	}
	return lines
}

// see checks what is there of all, and that Get does not show more than List.
func (w *world) see(want ...string) {
	w.Helper()
	if got := w.sees(); !slices.Equal(got, want) {
		w.Fatalf("seen %q, want %q", got, want)
	}
	for _, name := range []string{"a", "b"} {
		listed := slices.ContainsFunc(want, func(line string) bool { return line[:1] == name })
		if got := w.get(w.Client, name) != nil; got != listed {
			w.Fatalf("Get shows %s: %v", name, got)
		}
	}
}

func describe(c *resourcev1.ResourceClaim) string {
	if c == nil {
		return "nothing"
	}
	line := fmt.Sprintf("%s %s %s", c.Name, c.UID, c.Annotations["note"])
	if c.DeletionTimestamp != nil {
		line += " +"
	}
	return line
}

// remembers checks how much the overlay holds.
func (w *world) remembers(want int) {
	w.Helper()
	if got := len(w.overlay.entries); got != want {
		w.Fatalf("%d objects are remembered, want %d", got, want)
	}
}

// note changes the note through a client.
func (w *world) note(c client.Client, name, note string) {
	w.Helper()
	obj := w.get(c, name)
	obj.Annotations["note"] = note
	w.ok(c.Update(w.Context(), obj))
}
