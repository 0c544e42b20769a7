package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// TestScenario14_PodsEndAfterTheJobWasSuspended: the slice is released exactly once, after the last pod.
func TestScenario14_PodsEndAfterTheJobWasSuspended(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	r, pods := s.reservation(job), s.podsNow(job)
	s.prolong(pods)

	s.activate(job, false)
	s.awaitWaiting(r, "Waiting: 4 of the gang's pods may still run: "+names(pods))
	s.awaitConditions(job, false, kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted)
	s.Get(job)
	if !*job.Spec.Suspend {
		t.Error("the Job is not suspended: the test shows less than it should")
	}
	for last := 2; last >= 0; last-- {
		s.shutDown(pods[last+1])
		s.awaitWaiting(r, fmt.Sprintf("Waiting: %d of the gang's pods may still run: %s", last+1, names(pods[:last+1])))
		s.must(s.held(t.Context(), r), "while some of the pods end")
	}
	end := time.Now()
	s.shutDown(pods[0])
	s.AwaitNoTrace()
	s.releasedOnce(end)
	s.AwaitReserved(job, "False Released: released: tpu-4x4-00 (pod-a) on node-0, node-1, node-4, node-5")
}

// releasedOnce asks the audit log: of the one claim of the stage, the allocation was cleared and the finalizer taken off
// by one write each, after end.
func (s *stage) releasedOnce(end time.Time) {
	s.Helper()
	deleted := s.wrote("delete", "resourceclaims")
	if len(deleted) != 1 {
		s.Errorf("Berth deleted claims %d times, want 1: %v", len(deleted), deleted)
	}
	after := func(writes []cluster.Write, earliest time.Time) (n int) {
		for _, w := range writes {
			if w.Time.After(earliest) {
				n++
			}
		}
		return n
	}
	for resource, what := range map[string]string{"resourceclaims/status": "status", "resourceclaims": "finalizer"} {
		writes := s.wrote("update", resource)
		if len(deleted) > 0 && after(writes, deleted[0].Time) != 1 {
			s.Errorf("Berth wrote the claim's %s %d times since it deleted it, want 1: %v", what, after(writes, deleted[0].Time), writes)
		}
		if after(writes, end) != 1 {
			s.Errorf("Berth wrote the claim's %s %d times after the last pod, want 1: %v", what, after(writes, end), writes)
		}
	}
}

// TestScenario15_PodsForceDeletedOnHealthyHosts: the slice is released without a doubt about any host.
func TestScenario15_PodsForceDeletedOnHealthyHosts(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	r, pods := s.reservation(job), s.podsNow(job)
	quarantined := s.watchQuarantine(r)

	s.DeleteJob(job)
	s.forceDelete(pods)
	s.AwaitNoTrace()
	if hosts := quarantined(); len(hosts) > 0 {
		t.Errorf("hosts %v were quarantined although all are Ready", hosts)
	}
}

// TestScenario15_PodsForceDeletedOnALostHost: the share of a host that is not Ready stays out of use until it is Ready
// again; the rest of the slice is free at once.
func TestScenario15_PodsForceDeletedOnALostHost(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	r, pods := s.reservation(job), s.podsNow(job)
	lost := r.Spec.PodSets[0].Hosts[2]
	s.silence(lost)

	s.DeleteJob(job)
	s.forceDelete(pods)
	s.awaitWaiting(r, "Waiting: a pod may still run on a host that is not Ready: "+lost)
	s.Get(r)
	if q := r.Status.Quarantine; len(q) != 1 || q[0].Node != lost || q[0].Driver != "tpu.example.com" || q[0].Pool != "pod-a" {
		t.Errorf("status.quarantine is %v, want only host %s of pool pod-a", q, lost)
	}
	s.awaitQuarantined(1)

	// The same slice would be the first choice; and every other host of it is free.
	other := s.Submit(scene.Gang("other", "tpu-4x4", 4))
	s.AwaitSeated(other)
	s.AwaitReserved(other, "True Reserved: tpu-4x4-02 (pod-a) on node-2, node-3, node-6, node-7")
	var singles []*batchv1.Job
	for i := range 3 {
		single := s.Submit(scene.Gang(fmt.Sprintf("single-%d", i), "tpu-2x2", 1))
		singles = append(singles, single)
		s.AwaitSeated(single)
	}
	used := map[string]bool{}
	for _, single := range singles {
		used[s.reservation(single).Spec.PodSets[0].Hosts[0]] = true
	}
	for rank, host := range r.Spec.PodSets[0].Hosts {
		if used[host] != (rank != 2) {
			t.Errorf("single pods run on %v; they should run on all hosts of the released slice but %s", used, lost)
		}
	}

	s.must(s.Cluster.ReviveNode(t.Context(), lost), "reviving "+lost)
	s.awaitGone(r)
	s.awaitQuarantined(0)
	for _, j := range append(singles, other) {
		s.Finish(j)
	}
	s.AwaitNoTrace()
	s.must(s.Cluster.AwaitNodes(t.Context()), "waiting for all nodes")
}

// TestMovedOffALostHost: a pod terminates on a host that fell silent, and nobody can say for how long. The gang does not
// wait for it: it is moved as a whole, and only what the pod may still use stays held.
func TestMovedOffALostHost(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	first, pods := s.reservation(job), s.podsNow(job)
	stuck := pods[1]
	s.silence(stuck.Spec.NodeName)

	s.prolong([]*corev1.Pod{stuck})
	s.must(s.Client.Delete(t.Context(), stuck.DeepCopy()), "deleting pod "+stuck.Name)
	s.awaitEvicted(job, kueue.WorkloadEvictedByAdmissionCheck)
	second := s.moved(job, first)
	s.awaitWaiting(first, "Waiting: 1 of the gang's pods may still run: "+stuck.Name)
	s.must(s.held(t.Context(), first), "while the pod is stuck")
	if slices.Contains(second.Spec.PodSets[0].Hosts, stuck.Spec.NodeName) {
		t.Errorf("the gang was moved to the lost host: %v", second.Spec.PodSets[0].Hosts)
	}

	s.must(s.Cluster.ReviveNode(t.Context(), stuck.Spec.NodeName), "reviving the host")
	s.must(s.Cluster.AwaitNodes(t.Context()), "waiting for all nodes")
	s.shutDown(stuck)
	s.awaitGone(first)
	s.Finish(job)
	s.AwaitNoTrace()
}

// forceDelete removes pods without waiting for any kubelet.
func (s *stage) forceDelete(pods []*corev1.Pod) {
	s.Helper()
	for _, p := range pods {
		err := s.Client.Delete(s.Context(), p.DeepCopy(), client.GracePeriodSeconds(0), client.Preconditions{UID: &p.UID})
		s.must(client.IgnoreNotFound(err), "force-deleting pod "+p.Name)
	}
}

// silence makes a node lose its power, waits until it is NotReady, and has it revived at the end of the test.
func (s *stage) silence(node string) {
	s.Helper()
	s.must(s.Cluster.SilenceNode(s.Context(), node), "silencing "+node)
	s.Cleanup(func() {
		ctx := context.Background()
		if err := s.Cluster.ReviveNode(ctx, node); err != nil {
			s.Error(err)
		} else if err := s.Cluster.AwaitNodes(ctx, node); err != nil {
			s.Error(err)
		}
	})
	s.Eventually("losing "+node, func(ctx context.Context) error {
		n := &corev1.Node{}
		if err := s.Client.Get(ctx, types.NamespacedName{Name: node}, n); err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("it is still Ready")
	})
}

// awaitQuarantined waits until the AcceleratorPool counts n quarantined hosts.
func (s *stage) awaitQuarantined(n int32) {
	s.Helper()
	s.Eventually("quarantined hosts", func(ctx context.Context) error {
		pool := &berth.AcceleratorPool{}
		if err := s.Client.Get(ctx, types.NamespacedName{Name: scene.Pool}, pool); err != nil {
			return err
		}
		if have := pool.Status.Hosts.Quarantined; have != n {
			return fmt.Errorf("AcceleratorPool %s counts %d, want %d", scene.Pool, have, n)
		}
		return nil
	})
}

// watchQuarantine notes every host that a reservation ever has in quarantine; the returned function ends that and lists
// them.
func (s *stage) watchQuarantine(r *berth.GangReservation) func() []string {
	s.Helper()
	watch, err := s.Client.Watch(s.Context(), &berth.GangReservationList{}, client.InNamespace(r.Namespace))
	s.must(err, "watching reservations")
	seen := make(chan []string)
	go func() {
		var hosts []string
		for e := range watch.ResultChan() {
			if now, ok := e.Object.(*berth.GangReservation); ok && now.UID == r.UID {
				for _, q := range now.Status.Quarantine {
					hosts = append(hosts, q.Node)
				}
				if e.Type == "DELETED" {
					break
				}
			}
		}
		seen <- hosts
	}()
	return func() []string {
		defer watch.Stop()
		select {
		case hosts := <-seen:
			return hosts
		case <-time.After(scene.Patience):
			s.Fatalf("reservation %s is not deleted", r.Name)
			return nil
		}
	}
}
