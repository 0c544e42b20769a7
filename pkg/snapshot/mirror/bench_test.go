package mirror

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/test/processor"
)

// BenchmarkList is one list of 300,000 pods of which one changed: copied, as an informer's List does it, and mirrored.
func BenchmarkList(b *testing.B) {
	i := newInformer()
	for n := range 300_000 {
		if err := i.Add(pod(fmt.Sprint("p", n))); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("copied", func(b *testing.B) {
		processor.Turns(b, func(int) {
			all := i.Indexer.List()
			list := corev1.PodList{Items: make([]corev1.Pod, 0, len(all))}
			for _, obj := range all {
				list.Items = append(list.Items, *obj.(*corev1.Pod))
			}
			if len(list.Items) != 300_000 {
				b.Fatal(len(list.Items))
			}
		})
	})
	b.Run("mirrored", func(b *testing.B) {
		if _, listed := i.Look(nil); !listed {
			b.Fatal("not listed")
		}
		processor.Turns(b, func(n int) {
			if err := i.Update(pod(fmt.Sprint("p", n%300_000))); err != nil {
				b.Fatal(err)
			}
			v, _ := i.Look(nil)
			if items := v.Items().([]*corev1.Pod); len(items) != 300_000 {
				b.Fatal(len(items))
			}
		})
	})
}
