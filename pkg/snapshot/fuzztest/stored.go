package fuzztest

import (
	"reflect"
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/snapshot"
)

var versions atomic.Uint64

// Stored drops what no API server holds: objects without a name, and a second one of the same namespace and name. Each
// object gets a resourceVersion that no other object had, as the API server gives one to every state of an object.
func Stored(s *snapshot.Snapshot) *snapshot.Snapshot {
	lists := reflect.ValueOf(s).Elem()
	for i := range lists.NumField() {
		list := lists.Field(i)
		kept := reflect.MakeSlice(list.Type(), 0, list.Len())
		seen := map[[2]string]bool{}
		for j := range list.Len() {
			object, ok := list.Index(j).Interface().(metav1.Object)
			if !ok || object.GetName() == "" {
				continue
			}
			if key := [2]string{object.GetNamespace(), object.GetName()}; !seen[key] {
				seen[key] = true
				object.SetResourceVersion(strconv.FormatUint(versions.Add(1), 10))
				kept = reflect.Append(kept, list.Index(j))
			}
		}
		list.Set(kept)
	}
	return s
}

// Broken is a copy of a snapshot, broken as the bytes choose, that an API server could hold.
func (b *Breaker) Broken(data []byte, s *snapshot.Snapshot) *snapshot.Snapshot {
	out := Copy(s)
	b.Break(data, out)
	return Stored(out)
}
