package performance

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/snapshot"
	"github.com/berth-dev/berth/test/processor"
)

// live is what is in use of the heap.
func live() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// replaced is a list in which one object is another, everything else at its place.
func replaced[P any](list []P, at int, by P) []P {
	out := slices.Clone(list)
	out[at] = by
	return out
}

// BenchmarkWorld is what a pass pays for its World: the first of a process, and then after one object changed. All of it is
// on 10,000 hosts with 300,000 pods.
func BenchmarkWorld(b *testing.B) {
	f := newFleet(b, 4, 58, 0)
	var bare nodes.Bare
	before := live()
	for i := range podsPerHost * len(f.Nodes) {
		f.Pods = append(f.Pods, bare.Of(f.pod(i, f.Nodes[i%len(f.Nodes)].Name)))
	}
	pods := float64(live() - before)

	b.Run("first", func(b *testing.B) {
		var c *cluster.Cluster
		before := live()
		processor.Turns(b, func(int) {
			c = cluster.New()
			c.World(f.Snapshot)
		})
		b.ReportMetric(float64(live()-before), "B-kept")
		b.ReportMetric(pods, "B-pods")
		b.ReportMetric(float64(len(f.Nodes)), "hosts")
		b.ReportMetric(float64(len(f.Pods)), "pods")
		b.ReportMetric(float64(len(f.Reservations)), "reservations")
		runtime.KeepAlive(c)
	})

	c := cluster.New()
	c.World(f.Snapshot)
	change := func(name string, other func() *snapshot.Snapshot) {
		b.Run("after/"+name, func(b *testing.B) {
			by := [2]*snapshot.Snapshot{f.Snapshot, other()}
			measure(b, func(i int) { c.World(by[i%2]) })
		})
	}
	with := func(do func(s *snapshot.Snapshot)) func() *snapshot.Snapshot {
		return func() *snapshot.Snapshot {
			s := *f.Snapshot
			do(&s)
			return &s
		}
	}
	change("nothing", with(func(*snapshot.Snapshot) {}))
	change("pod-ended", with(func(s *snapshot.Snapshot) {
		p := s.Pods[7].DeepCopy()
		p.Status.Phase = corev1.PodSucceeded
		f.stamp(p)
		s.Pods = replaced(s.Pods, 7, p)
	}))
	change("claim-gone", with(func(s *snapshot.Snapshot) { s.ResourceClaims = slices.Delete(slices.Clone(s.ResourceClaims), 3, 4) }))
	change("gang-gone", with(func(s *snapshot.Snapshot) {
		last := len(s.Reservations) - 1
		s.Reservations, s.ResourceClaims, s.Workloads = s.Reservations[:last], s.ResourceClaims[:last], s.Workloads[:last]
	}))
	change("workload-status", with(func(s *snapshot.Snapshot) {
		w := s.Workloads[5].DeepCopy()
		f.stamp(w)
		s.Workloads = replaced(s.Workloads, 5, w)
	}))
	change("node-heartbeat", with(func(s *snapshot.Snapshot) {
		n := s.Nodes[9].DeepCopy()
		n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Unix(1, 0))
		f.stamp(n)
		s.Nodes = replaced(s.Nodes, 9, n)
	}))
	change("node-not-ready", with(func(s *snapshot.Snapshot) {
		n := s.Nodes[9].DeepCopy()
		n.Status.Conditions[0].Status = corev1.ConditionFalse
		f.stamp(n)
		s.Nodes = replaced(s.Nodes, 9, n)
	}))
	change("node-label", with(func(s *snapshot.Snapshot) {
		n := s.Nodes[9].DeepCopy()
		n.Labels["another"] = "label"
		f.stamp(n)
		s.Nodes = replaced(s.Nodes, 9, n)
	}))
	change("slice-content", with(func(s *snapshot.Snapshot) {
		sl := s.ResourceSlices[len(s.ResourceSlices)-1].DeepCopy()
		sl.Spec.Devices = sl.Spec.Devices[1:]
		f.stamp(sl)
		s.ResourceSlices = replaced(s.ResourceSlices, len(s.ResourceSlices)-1, sl)
	}))
	b.Run("without-own-slice", func(b *testing.B) {
		measure(b, func(i int) {
			c.WorldWithout(f.Snapshot, types.NamespacedName{Namespace: "ml", Name: fmt.Sprint("gang-", i%len(f.Reservations))})
		})
	})
	b.Run("audit", func(b *testing.B) {
		measure(b, func(int) {
			if err := c.Audit(); err != nil {
				b.Fatal(err)
			}
		})
	})
}
