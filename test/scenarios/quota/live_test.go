package quota

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// hysteresis of the folds under load, in seconds, and what is added to it before the promise of mode Live counts as broken:
// pods take a second to be ended, Berth and Kueue a few writes, and a machine that plays several control planes at once takes
// several times as long for both. A promise that is not kept lasts until the next gang ends.
const (
	hysteresis = 1
	slack      = 14 * time.Second
)

// allShares is what mode Live counts of two pods of KEP-4815 when nobody holds anything but the stranger.
const allShares = 28

// TestSmallGangsWithQuotaFindASlice: two pods of KEP-4815 in one flavor, hosts stranded by a foreign claim, and a stream of
// 4x4 and 8x8 Jobs of two priorities whose pods succeed one by one. In mode Live a 4x4 with quota has a slice within the lag,
// and no other gang has to end for it. How long everybody waits is logged for both modes.
func TestSmallGangsWithQuotaFindASlice(t *testing.T) {
	s, _ := play(t)
	s.observe()
	s.secondPod()
	// One host of pod-b is somebody else's, so 12 shares of it can be had as 4x4 and none as 8x8.
	s.stranger("tpu-2x2", "west-0")
	for _, name := range []string{"low", "high"} {
		s.make(&kueue.WorkloadPriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + s.Namespace}, Value: map[string]int32{"low": 10, "high": 20}[name],
		})
	}
	for _, mode := range []berth.FoldMode{berth.FoldPhysical, berth.FoldLive} {
		t.Run(string(mode), func(t *testing.T) {
			sub := &stage{&scene.Scene{TB: t, Cluster: s.Cluster, Client: s.Client, Namespace: s.Namespace, Watcher: s.Watcher}}
			sub.underLoad(mode)
		})
	}
}

func (s *stage) underLoad(mode berth.FoldMode) {
	s.Helper()
	lower := strings.ToLower(string(mode))
	f := newFold("load-"+lower, scene.Flavor, mode, "tpu-4x4", "tpu-8x8")
	f.Spec.HysteresisSeconds = ptr.To[int32](hysteresis)
	s.fold(f)
	pace := func([]*batchv1.Job) {}
	if mode == berth.FoldLive {
		s.awaitQuota(f, allShares)
		pace = func(small []*batchv1.Job) { s.awaitServed(f, small) }
	} else {
		s.awaitQuota(f, 32)
	}
	s.queue("load-"+lower, f.Name, "0", func(cq *kueue.ClusterQueue) {
		cq.Spec.QueueingStrategy = kueue.StrictFIFO
		cq.Spec.Preemption = &kueue.ClusterQueuePreemption{
			WithinClusterQueue: kueue.PreemptionPolicyLowerPriority, ReclaimWithinCohort: kueue.PreemptionPolicyLowerPriority,
			BorrowWithinCohort: &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyLowerPriority},
		}
	}, scene.Flavor)
	w := s.follow()
	job := func(class string, pods int32, priority string, number int) *batchv1.Job {
		return s.Submit(scene.Gang(fmt.Sprintf("%s-%s-%s-%d", lower, class[len("tpu-"):], priority, number), class, pods, func(j *batchv1.Job) {
			j.Labels[kueueconstants.QueueLabel] = "load-" + lower
			j.Labels[kueueconstants.WorkloadPriorityClassLabel] = priority + "-" + s.Namespace
		}))
	}
	var small, large []*batchv1.Job
	for i := range 9 {
		small = append(small, job("tpu-4x4", 4, "low", i))
	}
	s.drives(w, small, 6, func() { pace(small) })
	large = append(large, job("tpu-8x8", 16, "high", 0))
	for i := range 3 {
		small = append(small, job("tpu-4x4", 4, "high", i))
	}
	large = append(large, job("tpu-8x8", 16, "low", 1))
	for i := range 2 {
		small = append(small, job("tpu-4x4", 4, "low", 9+i))
	}
	s.drives(w, slices.Concat(small, large), 1<<20, func() { pace(small) })

	var worst time.Duration
	var sentBack, preempted int
	for _, j := range small {
		of := w.of(j.Name)
		worst = max(worst, of.longest)
		sentBack += of.evictions
		preempted += of.preemptions
	}
	s.Logf("%s: of %d 4x4 the longest time with quota and without a slice was %.1f s; %d evictions, %d of them preemptions; %d pods succeeded in all",
		mode, len(small), worst.Seconds(), sentBack, preempted, w.ended.Load())
	for _, j := range large {
		of := w.of(j.Name)
		s.Logf("%s: %s waited %s for quota and then %s for a slice; %d evictions", mode, j.Name,
			of.firstQuota.since(of.began), of.slice.since(of.firstQuota), of.evictions)
	}
	if limit := hysteresis*time.Second + slack; mode == berth.FoldLive && worst > limit {
		for _, j := range small {
			if of := w.of(j.Name); of.longest > limit {
				s.Errorf("%s held quota without a slice for %v", j.Name, of.longest)
			}
		}
	}
	if mode == berth.FoldLive {
		s.awaitQuota(f, allShares)
	}
}

// awaitServed waits until the number has followed the pods that have succeeded and each of the gangs that has quota has a
// slice. While it waits no pod ends, so what these gangs wait for cannot be the end of another.
func (s *stage) awaitServed(f *berth.CapacityFold, gangs []*batchv1.Job) {
	s.Helper()
	s.Eventually("a slice for every 4x4 with quota", func(ctx context.Context) error {
		var workloads kueue.WorkloadList
		if err := s.Client.List(ctx, &workloads, client.InNamespace(s.Namespace)); err != nil {
			return err
		}
		admitted, partial, unserved := map[string]bool{}, 0, ""
		for i := range workloads.Items {
			conditions := workloads.Items[i].Status.Conditions
			job := metav1.GetControllerOf(&workloads.Items[i])
			if job == nil || apimeta.IsStatusConditionTrue(conditions, kueue.WorkloadFinished) || apimeta.IsStatusConditionTrue(conditions, kueue.WorkloadEvicted) {
				continue
			}
			admitted[job.Name] = apimeta.IsStatusConditionTrue(conditions, kueue.WorkloadAdmitted)
			small := slices.ContainsFunc(gangs, func(j *batchv1.Job) bool { return j.Name == job.Name })
			if !small || !apimeta.IsStatusConditionTrue(conditions, kueue.WorkloadQuotaReserved) {
				continue
			}
			if !admitted[job.Name] {
				unserved = job.Name
			}
			if ptr.Deref(workloads.Items[i].Status.Admission.PodSetAssignments[0].Count, 4) < 4 {
				partial++
			}
		}
		// A gang that was preempted after some of its pods had succeeded comes back charged for the rest alone, and the number
		// knows of it when it has its slice. Two of them can have quota for one slice.
		switch {
		case unserved != "" && partial < 2:
			return fmt.Errorf("%s has quota and no slice; %s", unserved, s.story(ctx, f.Name))
		case unserved != "":
			s.Logf("%s and another that was preempted have quota for one slice", unserved)
			return nil
		}
		var pods corev1.PodList
		if err := s.Client.List(ctx, &pods, client.InNamespace(s.Namespace)); err != nil {
			return err
		}
		// Kueue charges nothing for them any more, and their gang holds their hosts still.
		most := int64(allShares)
		for i := range pods.Items {
			if admitted[pods.Items[i].Labels[batchv1.JobNameLabel]] && pods.Items[i].Status.Phase == corev1.PodSucceeded {
				most--
			}
		}
		have, err := s.quota(ctx, f.Spec.Targets[0], f.Spec.Flavor, shares)
		if err == nil && have > most {
			err = fmt.Errorf("the number is %d and should be %d at most; %s", have, most, s.story(ctx, f.Name))
		}
		return err
	})
}

// drives lets pods of seated gangs succeed, one at a time of each of the two gangs that are nearest to their end, until all
// Jobs have ended or as many pods have succeeded as given. They are seen to have succeeded, and pace has returned, before the
// next may, so it is the cluster that sets the pace.
func (s *stage) drives(w *waits, jobs []*batchv1.Job, pods int64, pace func()) {
	s.Helper()
	ended := map[string]bool{}
	for end := w.ended.Load() + pods; w.ended.Load() < end && len(ended) < len(jobs); {
		var next [][]corev1.Pod
		s.Eventually("a pod that runs, or the end of all", func(ctx context.Context) error {
			next = nil
			var states []string
			for _, j := range jobs {
				if ended[j.Name] {
					continue
				}
				if err := s.Client.Get(ctx, keyOf(j), j); err != nil {
					return err
				}
				if j.Status.CompletionTime != nil {
					ended[j.Name] = true
					continue
				}
				running, err := s.runningPods(ctx, j)
				if err != nil {
					return err
				}
				if len(running) > 0 && ptr.Deref(j.Status.Ready, 0) > 0 {
					next = append(next, running)
				}
				state, err := s.Reserved(ctx, j)
				states = append(states, fmt.Sprintf("%s: %s %v", j.Name, state, err))
			}
			if len(next) == 0 && len(ended) < len(jobs) {
				return fmt.Errorf("none runs:\n  %s", strings.Join(states, "\n  "))
			}
			return nil
		})
		slices.SortStableFunc(next, func(a, b []corev1.Pod) int { return cmp.Compare(len(a), len(b)) })
		for _, running := range next[:min(2, len(next))] {
			s.completes(&running[0])
		}
		for _, running := range next[:min(2, len(next))] {
			s.awaitCompleted(&running[0])
			w.ended.Add(1)
		}
		pace()
	}
}

// runningPods are those of a Job that run, by rank.
func (s *stage) runningPods(ctx context.Context, job *batchv1.Job) ([]corev1.Pod, error) {
	pods, err := s.PodsOf(ctx, job)
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, err
}

// completes lets one pod succeed.
func (s *stage) completes(pod *corev1.Pod) {
	s.Helper()
	selector := fmt.Sprintf("%s=%s,%s=%s", batchv1.JobNameLabel, pod.Labels[batchv1.JobNameLabel],
		batchv1.JobCompletionIndexAnnotation, pod.Labels[batchv1.JobCompletionIndexAnnotation])
	if _, err := s.Cluster.CompletePods(s.Context(), pod.Namespace, selector); err != nil {
		s.Fatal(err)
	}
}

// awaitCompleted waits until a pod has succeeded, or is gone because its gang was evicted.
func (s *stage) awaitCompleted(pod *corev1.Pod) {
	s.Helper()
	s.Eventually("the end of pod "+pod.Name, func(ctx context.Context) error {
		var now corev1.Pod
		if err := s.Client.Get(ctx, keyOf(pod), &now); err != nil {
			return client.IgnoreNotFound(err)
		}
		if now.UID == pod.UID && now.Status.Phase == corev1.PodRunning && now.DeletionTimestamp == nil {
			return fmt.Errorf("it runs")
		}
		return nil
	})
}

// stranger is a pod with a claim of its own, which kube-scheduler sends to the host.
func (s *stage) stranger(class, host string) {
	s.Helper()
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "stranger"}, Spec: s.Template(class).Spec.Spec,
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "stranger"},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: host}, TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:     []corev1.Container{{Name: "c", Image: "c", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "d"}}}}},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "d", ResourceClaimName: ptr.To(claim.Name)}},
		},
	}
	s.make(claim)
	s.make(pod)
	s.Eventually("scheduling the stranger", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, keyOf(claim), claim); err != nil {
			return err
		}
		if claim.Status.Allocation == nil {
			return fmt.Errorf("its claim is not allocated")
		}
		return nil
	})
}
