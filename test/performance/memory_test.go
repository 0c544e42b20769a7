package performance

import (
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
)

// decoded is the pod as it comes from the API server: nothing of it is shared with another.
func decoded(tb testing.TB, p *corev1.Pod) *corev1.Pod {
	tb.Helper()
	data, err := p.Marshal()
	if err != nil {
		tb.Fatal(err)
	}
	out := &corev1.Pod{}
	if err := out.Unmarshal(data); err != nil {
		tb.Fatal(err)
	}
	return out
}

// BenchmarkPodMemory is what the cache keeps of a pod of no gang, whole and as Berth keeps it.
func BenchmarkPodMemory(b *testing.B) {
	const n = 20_000
	f := &fleet{}
	for _, row := range []struct {
		name string
		keep func(*corev1.Pod) *corev1.Pod
	}{
		{"whole", func(p *corev1.Pod) *corev1.Pod { return p }},
		{"bare", (&nodes.Bare{}).Of},
	} {
		b.Run(row.name, func(b *testing.B) {
			var kept []*corev1.Pod
			var before uint64
			for b.Loop() {
				kept = make([]*corev1.Pod, 0, n)
				before = live()
				for i := range n {
					kept = append(kept, row.keep(decoded(b, f.pod(i, "node-1"))))
				}
			}
			b.ReportMetric(float64(live()-before)/n, "bytes/pod")
			runtime.KeepAlive(kept)
		})
	}
}

// TestBarePodsAreSmall holds the cache to a quarter of a usual pod.
func TestBarePodsAreSmall(t *testing.T) {
	const n = 2000
	f := &fleet{}
	size := func(keep func(*corev1.Pod) *corev1.Pod) float64 {
		kept := make([]*corev1.Pod, 0, n)
		before := live()
		for i := range n {
			kept = append(kept, keep(decoded(t, f.pod(i, "node-1"))))
		}
		after := live()
		runtime.KeepAlive(kept)
		return float64(after-before) / n
	}
	whole, bare := size(func(p *corev1.Pod) *corev1.Pod { return p }), size((&nodes.Bare{}).Of)
	if bare > whole/4 || bare > 2200 {
		t.Errorf("a bare pod takes %.0f bytes, a whole one %.0f", bare, whole)
	}
}
