package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// object is a pointer to an API object.
type object interface {
	comparable
	metav1.Object
}

// list is the objects of one kind as they were when they were last looked at, each at its place.
type list[P object] struct{ at []P }

// follow makes the list what the objects are now, and returns those that went and those that came; one that changed does
// both. It costs a comparison of pointers for each place whose object stayed, and a look at the rest: whoever makes
// snapshots should keep objects at their places.
func (l *list[P]) follow(now []P) (gone, come []P) {
	var places []int
	for i, obj := range now {
		if i < len(l.at) {
			if was := l.at[i]; was == obj || same(was, obj) {
				continue
			}
			gone = append(gone, l.at[i])
			l.at[i] = obj
		} else {
			l.at = append(l.at, obj)
		}
		places = append(places, i)
	}
	gone = append(gone, l.at[len(now):]...)
	clear(l.at[len(now):])
	l.at = l.at[:len(now)]
	return l.settle(gone, places)
}

// settle takes out what went from one place and came at another. The object that was known already stays: what was booked
// is remembered under it.
func (l *list[P]) settle(gone []P, places []int) (left, come []P) {
	if len(gone) == 0 || len(places) == 0 {
		for _, i := range places {
			come = append(come, l.at[i])
		}
		return gone, come
	}
	known := make(map[version[P]][]int, len(gone))
	for i, obj := range gone {
		v := versionOf(obj)
		known[v] = append(known[v], i)
	}
	moved := make([]bool, len(gone))
	for _, place := range places {
		v := versionOf(l.at[place])
		if found := known[v]; len(found) > 0 {
			l.at[place] = gone[found[0]]
			moved[found[0]] = true
			known[v] = found[1:]
			continue
		}
		come = append(come, l.at[place])
	}
	for i, obj := range gone {
		if !moved[i] {
			left = append(left, obj)
		}
	}
	return left, come
}

// version tells contents apart. Objects never change, so an address says enough; but a list that was copied has its items
// at fresh addresses, and of those the API server's version tells.
type version[P object] struct {
	address         P
	uid             types.UID
	resourceVersion string
	namespace, name string
}

func versionOf[P object](obj P) version[P] {
	if rv := obj.GetResourceVersion(); rv != "" {
		return version[P]{uid: obj.GetUID(), resourceVersion: rv, namespace: obj.GetNamespace(), name: obj.GetName()}
	}
	return version[P]{address: obj}
}

// same reports whether two addresses hold the same version of an object.
func same[P object](a, b P) bool {
	rv := a.GetResourceVersion()
	return rv != "" && rv == b.GetResourceVersion() && a.GetUID() == b.GetUID() && a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace()
}
