package written

import (
	"errors"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOwnWritesAreSeenAtOnce(t *testing.T) {
	w := newWorld(t, claim("b", "1", "old"))
	w.see("b 1 old")
	w.ok(w.Create(t.Context(), claim("a", "1", "new")))
	w.see("a 1 new", "b 1 old")
	w.note(w.Client, "b", "updated")
	w.see("a 1 new", "b 1 updated")
	w.note(w.Client, "b", "twice")
	w.see("a 1 new", "b 1 twice")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"note":"patched"}}}`))
	w.ok(w.Patch(t.Context(), claim("b", "1", ""), patch))
	w.see("a 1 new", "b 1 patched")
	w.ok(w.Delete(t.Context(), w.get(w.Client, "a")))
	w.see("b 1 patched")
	w.remembers(2)
	w.sync()
	w.see("b 1 patched")
}

func TestOwnStatusIsSeenAtOnce(t *testing.T) {
	w := newWorld(t, claim("a", "1", "x"))
	for name, write := range map[string]func(*resourcev1.ResourceClaim) error{
		"update": func(c *resourcev1.ResourceClaim) error { return w.Status().Update(t.Context(), c) },
		"patch": func(c *resourcev1.ResourceClaim) error {
			return w.Status().Patch(t.Context(), c, client.MergeFrom(w.get(w.Client, "a")))
		},
	} {
		c := w.get(w.Client, "a")
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: "p"}}
		w.ok(write(c))
		if got := w.get(w.Client, "a").Status.ReservedFor; len(got) != 1 || got[0].Name != name {
			t.Errorf("%s: reserved for %v", name, got)
		}
	}
}

func TestInformerCatchesUp(t *testing.T) {
	w := newWorld(t, claim("a", "1", "old"))
	w.note(w.Client, "a", "ours")
	w.sync()
	w.see("a 1 ours")
	w.remembers(0)

	// Others wrote after us, and the informer shows their write although it never showed ours.
	w.note(w.Client, "a", "ours again")
	w.note(w.server, "a", "theirs")
	w.see("a 1 ours again")
	w.sync()
	w.see("a 1 theirs")
	w.remembers(0)
}

func TestOthersAreSeenAsLateAsInformersAre(t *testing.T) {
	w := newWorld(t, claim("a", "1", "old"))
	w.note(w.server, "a", "theirs")
	w.see("a 1 old")
	obj := w.get(w.Client, "a")
	if err := w.Update(t.Context(), obj); !apierrors.IsConflict(err) {
		t.Errorf("writing over a version that we have not seen: %v", err)
	}
	w.remembers(0)
	w.sync()
	w.see("a 1 theirs")
}

func TestRemoved(t *testing.T) {
	w := newWorld(t, claim("a", "1", "x"))
	a := w.get(w.Client, "a")
	w.ok(w.Delete(t.Context(), a))
	w.see()
	if err := w.Delete(t.Context(), a); !apierrors.IsNotFound(err) {
		t.Errorf("deleting twice: %v", err)
	}
	w.see()
	w.sync()
	w.see()
	w.clock = w.clock.Add(doubtAfter)
	w.see()
	w.remembers(0)
}

// Somebody else removed it first: our DELETE finds nothing, and the informer's view is over as well.
func TestRemovedByOthers(t *testing.T) {
	w := newWorld(t, claim("a", "1", "x"))
	a := w.get(w.Client, "a")
	w.ok(w.server.Delete(t.Context(), w.get(w.server, "a")))
	w.see("a 1 x")
	if err := w.Delete(t.Context(), a); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	w.see()
}

// An informer that learns of an object's beginning after we removed it must not bring it back.
func TestRemovedBeforeItWasShown(t *testing.T) {
	w := newWorld(t)
	w.ok(w.Create(t.Context(), claim("a", "1", "x")))
	begun := w.get(w.server, "a")
	w.ok(w.Delete(t.Context(), w.get(w.Client, "a")))
	w.see()
	begun.ResourceVersion = ""
	w.ok(w.server.Create(t.Context(), begun))
	w.sync() // The informer shows a moment that is over.
	w.see()
}

func TestDeletionWithFinalizers(t *testing.T) {
	w := newWorld(t, lasting(claim("a", "1", "x")))
	w.ok(w.Delete(t.Context(), w.get(w.Client, "a")))
	w.see("a 1 x +")
	// What remains is seen in the version that the next write needs.
	a := w.get(w.Client, "a")
	a.Finalizers = nil
	w.ok(w.Update(t.Context(), a))
	w.see()
	w.sync()
	w.see()
}

func TestDeletionWhoseRemainsCannotBeRead(t *testing.T) {
	w := newWorld(t, lasting(claim("a", "1", "x")))
	w.unreadable = errors.New("no connection")
	w.ok(w.Delete(t.Context(), w.get(w.Client, "a")))
	w.see("a 1 x +")
	// An answer to a write from before the deletion comes late.
	late := w.get(w.informer, "a")
	w.ok(w.remember(late, nil))
	w.see("a 1 x +")
	w.sync()
	w.see("a 1 x +")
	w.remembers(0)
}

func TestDeletionThatRemovedAtOnceAlthoughItHadFinalizers(t *testing.T) {
	w := newWorld(t, lasting(claim("a", "1", "x")))
	seen := w.get(w.Client, "a")
	others := w.get(w.server, "a")
	others.Finalizers = nil
	w.ok(w.server.Update(t.Context(), others))
	w.ok(w.Delete(t.Context(), seen))
	w.see()
}

func TestSuccessor(t *testing.T) {
	t.Run("of others after our delete", func(t *testing.T) {
		w := newWorld(t, claim("a", "1", "first"))
		w.ok(w.Delete(t.Context(), w.get(w.Client, "a")))
		w.ok(w.server.Create(t.Context(), claim("a", "2", "second")))
		w.see()
		w.sync()
		w.see("a 2 second")
		w.remembers(0)
	})
	t.Run("of others after our update", func(t *testing.T) {
		w := newWorld(t, claim("a", "1", "first"))
		w.note(w.Client, "a", "ours")
		w.ok(w.server.Delete(t.Context(), w.get(w.server, "a")))
		w.ok(w.server.Create(t.Context(), claim("a", "2", "second")))
		w.see("a 1 ours")
		w.sync()
		w.see("a 2 second")
		w.remembers(0)
	})
	t.Run("our own", func(t *testing.T) {
		w := newWorld(t, claim("a", "1", "first"))
		w.ok(w.Delete(t.Context(), w.get(w.Client, "a")))
		w.ok(w.Create(t.Context(), claim("a", "2", "second")))
		w.see("a 2 second")
		w.sync()
		w.see("a 2 second")
		w.remembers(0)
	})
}

func TestGoneBeforeTheInformerShowedIt(t *testing.T) {
	w := newWorld(t)
	w.ok(w.Create(t.Context(), claim("a", "1", "x")))
	w.ok(w.Create(t.Context(), claim("b", "1", "x")))
	w.ok(w.server.Delete(t.Context(), w.get(w.server, "a")))
	w.note(w.server, "b", "theirs")
	// Yet or any more? At first nobody is asked.
	w.see("a 1 x", "b 1 x")
	w.clock = w.clock.Add(doubtAfter - time.Nanosecond)
	w.see("a 1 x", "b 1 x")
	w.clock = w.clock.Add(time.Nanosecond)
	w.see("b 1 theirs")
	w.remembers(1)
	w.sync()
	w.see("b 1 theirs")
	w.remembers(0)
}

func TestDoubtThatCannotBeResolved(t *testing.T) {
	w := newWorld(t)
	w.ok(w.Create(t.Context(), claim("a", "1", "x")))
	w.clock = w.clock.Add(doubtAfter)
	w.unreadable = errors.New("no connection")
	w.see("a 1 x")
}

func TestListIsNarrowed(t *testing.T) {
	elsewhere := claim("c", "1", "x")
	elsewhere.Namespace = "other"
	w := newWorld(t, claim("a", "1", "x"), labelled(claim("b", "1", "x"), "z"))
	w.ok(w.Create(t.Context(), elsewhere))
	// a leaves the selection, b enters it, and d is created in it.
	a, b := w.get(w.Client, "a"), w.get(w.Client, "b")
	w.ok(w.Update(t.Context(), labelled(a, "z")))
	w.ok(w.Update(t.Context(), labelled(b, "a")))
	w.ok(w.Create(t.Context(), claim("d", "1", "x")))
	for _, caughtUp := range []bool{false, true} {
		got := strings.Join(w.sees(client.InNamespace("ml"), client.MatchingLabels{"gang": "a"}), ", ")
		if want := "b 1 x, d 1 x"; got != want {
			t.Errorf("caught up %v: seen %q, want %q", caughtUp, got, want)
		}
		w.sync()
	}
	var list resourcev1.ResourceClaimList
	w.ok(w.List(t.Context(), &list))
	if len(list.Items) != 4 {
		t.Errorf("%d claims in all namespaces", len(list.Items))
	}
}

func TestWhatIsReadMayBeChanged(t *testing.T) {
	w := newWorld(t)
	mine := claim("a", "1", "x")
	w.ok(w.Create(t.Context(), mine))
	mine.Annotations["note"] = "changed after the write"
	w.get(w.Client, "a").Annotations["note"] = "changed after Get"
	var list resourcev1.ResourceClaimList
	w.ok(w.List(t.Context(), &list))
	list.Items[0].Annotations["note"] = "changed after List"
	w.see("a 1 x")
}

// While one reader has asked the informer and not yet looked at the overlay, another may find that the informer has caught
// up. The first must still see what was written before it began.
func TestReadersDoNotTakeWritesFromEachOther(t *testing.T) {
	for name, read := range map[string]func(*world) string{
		"list": func(w *world) string {
			var list resourcev1.ResourceClaimList
			w.ok(w.List(w.Context(), &list))
			if len(list.Items) == 0 {
				return "nothing"
			}
			return describe(&list.Items[0])
		},
		"get": func(w *world) string { return describe(w.get(w.Client, "a")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok(w.Create(t.Context(), claim("a", "1", "ours")))
			w.read = func() {
				w.read = nil // the other reader is not interrupted
				w.sync()
				w.see("a 1 ours")
				w.remembers(0)
			}
			if got := read(w); got != "a 1 ours" {
				t.Errorf("seen %s", got)
			}
		})
	}
}

// Of two writes under way at once the first may be answered last.
func TestLateAnswers(t *testing.T) {
	w := newWorld(t, claim("a", "1", "x"))
	w.note(w.Client, "a", "first")
	first := w.get(w.Client, "a")
	w.note(w.Client, "a", "second")
	w.ok(w.remember(first, nil))
	w.see("a 1 second")
	w.ok(w.Delete(t.Context(), w.get(w.Client, "a")))
	w.ok(w.remember(first, nil))
	w.see()
}

func TestErrorsPass(t *testing.T) {
	w := newWorld(t, claim("a", "1", "x"))
	if err := w.Create(t.Context(), claim("a", "1", "y")); !apierrors.IsAlreadyExists(err) {
		t.Error(err)
	}
	missing := claim("b", "1", "x")
	if err := w.Update(t.Context(), missing); err == nil {
		t.Error("updated nothing")
	}
	if err := w.Status().Update(t.Context(), missing); err == nil {
		t.Error("updated the status of nothing")
	}
	w.see("a 1 x")
	w.remembers(0)
}
