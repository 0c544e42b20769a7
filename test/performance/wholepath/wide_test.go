package wholepath

import (
	"encoding/json"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/scene"
)

// gate stands for Berth's own on pods that claim nothing.
const gate = "example.com/all-together"

// BenchmarkWide is how long a gang of 200 takes from the Job's creation until its last pod is bound: on one claim through
// Berth, and gated without a claim, where the benchmark takes the gates off once all pods exist.
func BenchmarkWide(b *testing.B) {
	bound := func(obj client.Object) bool {
		p, is := obj.(*corev1.Pod)
		return is && p.Spec.NodeName != ""
	}
	for _, by := range []contender{alone, byBerth} {
		b.Run(fmt.Sprint("by=", by), func(b *testing.B) {
			s := by.site(b)
			b.ResetTimer()
			for i := range b.N {
				all := s.tally(&corev1.PodList{}, bound)
				job := scene.Gang(fmt.Sprint("w", i), wide, wideHosts)
				if by == byBerth {
					s.Submit(job)
				} else {
					bare(job)
					s.openTogether(job)
				}
				all.await(wideHosts)
				b.StopTimer()
				s.clear()
				b.StartTimer()
			}
		})
	}
}

// openTogether submits a Job of gated pods and takes their gates off when all of them exist.
func (s *site) openTogether(job *batchv1.Job) {
	s.Helper()
	job.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
	exist := s.tally(&corev1.PodList{}, func(obj client.Object) bool { return obj.GetDeletionTimestamp() == nil })
	s.Submit(job)
	exist.await(wideHosts)
	pods, err := s.PodsOf(s.Context(), job)
	if err != nil {
		s.Fatal(err)
	}
	open, err := json.Marshal(map[string]any{"spec": map[string]any{"schedulingGates": []map[string]any{{"name": gate, "$patch": "delete"}}}})
	if err != nil {
		s.Fatal(err)
	}
	group, ctx := errgroup.WithContext(s.Context())
	group.SetLimit(writers)
	for i := range pods {
		group.Go(func() error {
			return s.Client.Patch(ctx, &pods[i], client.RawPatch(types.StrategicMergePatchType, open))
		})
	}
	if err := group.Wait(); err != nil {
		s.Fatal(err)
	}
}
