package invariants

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sentences are the invariants as the design states them.
var sentences = map[int]string{
	1:  "No write by Berth creates or increases an overdraw of a counter or a shared capacity; with fence Enforce none exists at any instant.",
	2:  "A check is Ready only if every device of the gang is allocated and held; never half a gang.",
	3:  "A pinned claim holds our non-pod entry from allocation until Berth clears it.",
	4:  "A device is free again only when its allocation is gone; that goes only when no pod of the gang may still run.",
	6:  "A reservation serves exactly one epoch.",
	7:  "After Workload and its last pod are gone, nothing that Berth created for it remains.",
	11: "Two pods of one rank never run at once.",
}

// Breach is a state or a write that broke an invariant. Its text can be understood without the cluster.
type Breach struct {
	// Invariant is its number in the design.
	Invariant int
	// What happened, to which objects, at which revision.
	What string
	// Objects are the versions that show it.
	Objects []string
	// Writer is who wrote the offending version: the field managers that changed with it and, from the audit log, the
	// last users who wrote the object.
	Writer string

	// offender is the version to blame, and before the one it replaced.
	kind             kind
	offender, before client.Object
	vanished         bool // the offence is that the offender is gone
	seen             time.Time
	unless           *moment // the breach stands only if nothing was there
}

// Error returns the whole report, over several lines.
func (b *Breach) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "invariant %d is broken: %s\n  what:    %s\n", b.Invariant, sentences[b.Invariant], b.What)
	for _, object := range b.Objects {
		fmt.Fprintf(&text, "  object:  %s\n", object)
	}
	fmt.Fprintf(&text, "  writer:  %s\n  seen at: %s", b.Writer, b.seen.UTC().Format(time.RFC3339Nano))
	return text.String()
}

// newBreach blames a version. before may be nil.
func newBreach(invariant int, k kind, v version, before *version, format string, args ...any) *Breach {
	b := &Breach{
		Invariant: invariant, What: fmt.Sprintf(format, args...),
		kind: k, offender: v.obj, vanished: v.gone, seen: v.seen,
	}
	if before != nil {
		b.before = before.obj
	}
	return b.show(k, v.obj)
}

// show adds an object version to the report.
func (b *Breach) show(k kind, obj client.Object) *Breach {
	if obj != nil {
		b.Objects = append(b.Objects, describe(k, obj))
	}
	return b
}

// onlyIf makes the breach depend on the absence at a moment, unless that is sure already.
func (b *Breach) onlyIf(sure bool, at moment) *Breach {
	if !sure {
		b.unless = &at
	}
	return b
}

func describe(k kind, obj client.Object) string {
	text := fmt.Sprintf("%s uid %s version %s", named(k, client.ObjectKeyFromObject(obj)), obj.GetUID(), obj.GetResourceVersion())
	if at := obj.GetDeletionTimestamp(); at != nil {
		text += " deleted at " + at.UTC().Format(time.RFC3339)
	}
	return text
}

func named(k kind, key types.NamespacedName) string {
	if key.Namespace == "" {
		return k.String() + " " + key.Name
	}
	return k.String() + " " + key.String()
}
