package wholepath

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

const (
	gangs = 156 // three times as many as there is room for
	ranks = 4
)

// berthUser is who Berth is in the audit log.
const berthUser = "system:serviceaccount:berth-system:berth-controller"

// bare is a gang whose pods claim nothing.
func bare(j *batchv1.Job) {
	spec := &j.Spec.Template.Spec
	spec.ResourceClaims, spec.Containers[0].Resources.Claims = nil, nil
}

// BenchmarkGangs is how long gangs of four take from the first Job's creation to the last one's end, when there are three
// times as many as have room at once: admission, binding, release and who comes next. The same Jobs, with and without the
// claim. A device over four hosts cannot be had through a template without Berth: each pod would get one of its own.
func BenchmarkGangs(b *testing.B) {
	for _, row := range []struct {
		name, class string
		by          []contender
	}{
		{"one-host", single, []contender{alone, byScheduler, byBerth}},
		{"four-hosts", four, []contender{alone, byBerth}},
	} {
		for _, by := range row.by {
			b.Run(fmt.Sprintf("device=%s/by=%s", row.name, by), func(b *testing.B) {
				s := by.site(b)
				b.ResetTimer()
				for i := range b.N {
					s.turnOver(fmt.Sprint("g", i), row.class, by == alone)
					b.StopTimer()
					s.clear()
					b.StartTimer()
				}
				b.StopTimer()
				done := float64(b.N * gangs)
				b.ReportMetric(done/b.Elapsed().Seconds(), "gangs/s")
				all, own := s.writes()
				b.ReportMetric(float64(all)/done, "writes/gang")
				b.ReportMetric(float64(own)/done, "berth-writes/gang")
			})
		}
	}
}

// turnOver submits all gangs and returns when all are complete.
func (s *site) turnOver(prefix, class string, withoutClaim bool) {
	s.Helper()
	complete := s.tally(&batchv1.JobList{}, func(obj client.Object) bool {
		job, is := obj.(*batchv1.Job)
		if !is {
			return false
		}
		for _, c := range job.Status.Conditions {
			if c.Status == corev1.ConditionTrue && c.Type == batchv1.JobComplete {
				return true
			}
		}
		return false
	})
	group, ctx := errgroup.WithContext(s.Context())
	group.SetLimit(writers)
	for i := range gangs {
		job := scene.Gang(fmt.Sprintf("%s-%d", prefix, i), class, ranks)
		job.Namespace = s.Namespace
		if withoutClaim {
			bare(job)
		}
		group.Go(func() error { return s.Client.Create(ctx, job) })
	}
	if err := group.Wait(); err != nil {
		s.Fatal(err)
	}
	complete.await(gangs)
}

// clear deletes all Jobs and waits until their pods and all claims are gone.
func (s *site) clear() {
	s.Helper()
	err := s.Client.DeleteAllOf(s.Context(), &batchv1.Job{}, client.InNamespace(s.Namespace), client.PropagationPolicy("Background"))
	if err != nil {
		s.Fatal(err)
	}
	s.Eventually("clearing", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := s.Client.List(ctx, &pods, client.InNamespace(s.Namespace), client.Limit(1)); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return errors.New("pods are left")
		}
		var claims resourcev1.ResourceClaimList
		if err := s.Client.List(ctx, &claims, client.InNamespace(s.Namespace), client.Limit(1)); err != nil {
			return err
		}
		if len(claims.Items) > 0 {
			return errors.New("claims are left")
		}
		return s.NoTrace(ctx)
	})
}

// writes counts the API writes in the namespace so far, events apart: everybody's and Berth's.
func (s *site) writes() (all, own int) {
	s.Helper()
	writes, err := s.Cluster.Writes(s.Context(), func(w cluster.Write) bool { return w.Namespace == s.Namespace && w.Resource != "events" })
	if err != nil {
		s.Fatal(err)
	}
	for _, w := range writes {
		if w.User == berthUser {
			own++
		}
	}
	return len(writes), own
}
