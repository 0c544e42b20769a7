package fuzztest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/snapshot"
)

// Stored makes a snapshot one that an API server could hold: it drops objects without a name, a second one of the same
// namespace and name and what cannot be written as JSON, and gives every object a UID of its own and a resourceVersion that differs where anything else does.
func Stored(s *snapshot.Snapshot) *snapshot.Snapshot {
	lists := reflect.ValueOf(s).Elem()
	for i := range lists.NumField() {
		list := lists.Field(i)
		kept := reflect.MakeSlice(list.Type(), 0, list.Len())
		names, uids := map[types.NamespacedName]bool{}, map[types.UID]bool{}
		for j := range list.Len() {
			object, ok := list.Index(j).Interface().(metav1.Object)
			if !ok || object.GetName() == "" {
				continue
			}
			name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
			if names[name] {
				continue
			}
			if uid := object.GetUID(); uid == "" || uids[uid] {
				object.SetUID(types.UID("uid of " + name.String()))
			}
			names[name], uids[object.GetUID()] = true, true
			object.SetManagedFields(nil)
			object.SetResourceVersion("")
			raw, err := json.Marshal(object)
			if err != nil {
				continue // of a kind that no JSON says: an IntOrString that is neither
			}
			object.SetResourceVersion(version(raw))
			kept = reflect.Append(kept, list.Index(j))
		}
		list.Set(kept)
	}
	return s
}

// version is a number made of everything that an object says.
func version(raw []byte) string {
	h := fnv.New64a()
	h.Write(raw)
	return fmt.Sprint(h.Sum64())
}

// Broken is a copy of a snapshot, broken as the bytes choose, that an API server could hold.
func (b *Breaker) Broken(data []byte, s *snapshot.Snapshot) *snapshot.Snapshot {
	out := Copy(s)
	b.Break(data, out)
	return Stored(out)
}
