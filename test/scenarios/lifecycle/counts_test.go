package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// TestScenario39_RefusedCounts: Jobs whose pods are not the ranks 0 to N-1 at once get a reason, and Kueue sets them aside.
func TestScenario39_RefusedCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*batchv1.Job)
		want   string
	}{{
		name:   "completions",
		change: func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](8) },
		want:   "False CountMismatch: completions is 8 and parallelism 4: a gang runs all of its ranks at once, so they must be equal",
	}, {
		name: "min-count",
		change: func(j *batchv1.Job) {
			j.Annotations = map[string]string{"kueue.x-k8s.io/job-min-parallelism": "2"}
		},
		want: "False CountMismatch: pod set main may run with fewer pods (minCount): a slice is whole, so leave minCount out",
	}} {
		t.Run(c.name, func(t *testing.T) {
			s := play(t)
			job := s.Submit(scene.Gang(c.name, "tpu-4x4", 4, c.change))
			s.AwaitReserved(job, c.want)
			s.awaitEvicted(job, kueue.WorkloadDeactivated)
			s.awaitConditions(job, false, kueue.WorkloadQuotaReserved)
			if wl := s.workload(job); ptr.Deref(wl.Spec.Active, true) {
				t.Error("Kueue has not deactivated the refused Workload")
			}
			if made := s.wrote("create", "gangreservations"); len(made) > 0 {
				t.Errorf("Berth reserved something: %v", made)
			}
			if pods := s.podsNow(job); len(pods) > 0 {
				t.Errorf("pods %s exist", names(pods))
			}
		})
	}
}

// TestScenario39_ThreeOfFourLeft: rank 1 has succeeded when the gang is evicted. The rest is served with a whole slice, in
// which every rank has the host that it would have in a gang of four.
func TestScenario39_ThreeOfFourLeft(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	first := s.reservation(job)
	marked, err := s.Cluster.CompletePods(t.Context(), s.Namespace, batchv1.JobCompletionIndexAnnotation+"=1")
	if s.must(err, "completing rank 1"); marked != 1 {
		t.Fatalf("%d pods are of rank 1", marked)
	}
	s.Eventually("counting the pod that succeeded", func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, job)
		if err != nil {
			return err
		}
		if r := wl.Status.ReclaimablePods; len(r) != 1 || r[0].Count != 1 {
			return fmt.Errorf("reclaimable pods are %v", r)
		}
		return nil
	})
	if now := s.reservation(job); now.UID != first.UID {
		t.Errorf("the gang moved to reservation %s when a pod succeeded", now.Name)
	}

	s.activate(job, false)
	s.awaitGone(first)
	s.activate(job, true)
	s.Eventually("seating the ranks that are left", func(ctx context.Context) error {
		r, err := s.ReservationOf(ctx, job)
		if err != nil {
			return err
		}
		set := r.Spec.PodSets[0]
		if set.Count != 3 || len(set.Hosts) != 4 {
			return fmt.Errorf("it is for %d pods on hosts %v, want 3 pods and 4 hosts", set.Count, set.Hosts)
		}
		pods, err := s.pods(ctx, job)
		if err != nil {
			return err
		}
		for rank, host := range set.Hosts {
			p := pods[fmt.Sprint(rank)]
			switch {
			case p == nil:
				return fmt.Errorf("rank %d has no pod", rank)
			case rank == 1 && p.Status.Phase != corev1.PodSucceeded:
				return fmt.Errorf("rank 1 runs again: %s is %s", p.Name, p.Status.Phase)
			case rank != 1 && (p.Spec.NodeName != host || p.Status.Phase != corev1.PodRunning || p.Labels["berth.dev/reservation"] != r.Name):
				return fmt.Errorf("rank %d is %s on %q with reservation %s, want Running on %s with %s",
					rank, p.Status.Phase, p.Spec.NodeName, p.Labels["berth.dev/reservation"], host, r.Name)
			}
		}
		return nil
	})
	second := s.reservation(job)
	if !slices.Equal(second.Spec.PodSets[0].Hosts, first.Spec.PodSets[0].Hosts) {
		t.Errorf("with all slices free the gang was on %v and is on %v", first.Spec.PodSets[0].Hosts, second.Spec.PodSets[0].Hosts)
	}
	s.must(s.held(t.Context(), second), "with three pods")
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestScenario39_RankFailedForGood: rank 2 has failed for good, and its Job makes no pod for it any more, when the gang is
// evicted. Kueue admits four pods; the three that come are seated.
func TestScenario39_RankFailedForGood(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4, func(j *batchv1.Job) {
		j.Spec.BackoffLimit, j.Spec.BackoffLimitPerIndex = nil, ptr.To[int32](0)
	}))
	s.AwaitSeated(job)
	first := s.reservation(job)
	s.awaitRunning(job)
	s.Eventually("failing rank 2", func(ctx context.Context) error {
		pods, err := s.pods(ctx, job)
		if err != nil {
			return err
		}
		pods["2"].Status.Phase = corev1.PodFailed
		return s.Client.Status().Update(ctx, pods["2"])
	})
	s.Eventually("counting the rank that failed", func(context.Context) error {
		if s.Get(job); ptr.Deref(job.Status.FailedIndexes, "") != "2" {
			return fmt.Errorf("failed indexes are %v", job.Status.FailedIndexes)
		}
		return nil
	})

	s.activate(job, false)
	s.awaitGone(first)
	s.activate(job, true)
	s.Eventually("seating the ranks that are left", func(ctx context.Context) error {
		r, err := s.ReservationOf(ctx, job)
		if err != nil {
			return err
		}
		pods, err := s.pods(ctx, job)
		if err != nil {
			return err
		}
		for rank, host := range r.Spec.PodSets[0].Hosts {
			p := pods[fmt.Sprint(rank)]
			switch {
			case rank == 2 && p != nil && p.Labels["berth.dev/reservation"] == r.Name:
				return fmt.Errorf("rank 2 has the pod %s again", p.Name)
			case rank == 2:
			case p == nil || p.Spec.NodeName != host || p.Labels["berth.dev/reservation"] != r.Name:
				return fmt.Errorf("rank %d is not on %s", rank, host)
			}
		}
		return nil
	})
	s.must(s.held(t.Context(), s.reservation(job)), "with three pods")
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestScenario39_ScaledWhileRunning: an indexed Job may be scaled while it runs. The pods of the new ranks have no host in
// the gang's slice and never run in it.
func TestScenario39_ScaledWhileRunning(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	first := s.reservation(job)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parallelism":8,"completions":8}}`))
	s.must(s.Client.Patch(t.Context(), job, patch), "scaling the Job")
	s.awaitGone(first)
	s.AwaitReserved(job, `False CountMismatch: 8 pods need 2 slices of 4 hosts (tpu-4x4): `+
		`ask for a larger slice or set the annotation berth.dev/slices: "2" on the pod template of the Job`)
	bound, err := s.Cluster.Writes(t.Context(), func(w cluster.Write) bool {
		return w.Namespace == s.Namespace && w.Verb == "create" && w.Resource == "pods/binding" && w.Code < 300
	})
	s.must(err, "reading the audit log")
	if len(bound) != 4 {
		t.Errorf("%d pods were bound, want the four of the first gang: %v", len(bound), bound)
	}
	s.DeleteJob(job)
	s.AwaitNoTrace()
}
