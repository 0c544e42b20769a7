package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// partition cuts nodes off and waits until kube-controller-manager finds them not Ready. At the end of the test they are
// back, also those that the test has deleted.
func (s *stage) partition(nodes ...string) {
	s.Helper()
	for _, name := range nodes {
		node := s.node(name)
		s.Cleanup(func() { s.restoreNode(node) })
		s.must(s.Cluster.SilenceNode(s.Context(), name), "silencing "+name)
	}
	for _, name := range nodes {
		s.Eventually(name+" not Ready", func(context.Context) error {
			for _, c := range s.node(name).Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
					return nil
				}
			}
			return errors.New("it is still Ready")
		})
	}
}

func (s *stage) node(name string) *corev1.Node {
	s.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Get(node)
	return node
}

// restoreNode makes a node again what it was.
func (s *stage) restoreNode(was *corev1.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // the test's own has ended
	defer cancel()
	err := s.Await(ctx, func(ctx context.Context) error {
		node := &corev1.Node{}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(was), node); client.IgnoreNotFound(err) != nil {
			return err
		} else if err != nil {
			node = was.DeepCopy()
			node.ResourceVersion, node.UID, node.Status.Conditions, node.Spec.Taints = "", "", nil, nil
			return s.Client.Create(ctx, node)
		}
		if outOfService(node) {
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isOutOfService)
			return s.Client.Update(ctx, node)
		}
		return nil
	})
	if err == nil {
		err = s.Cluster.ReviveNode(ctx, was.Name)
	}
	if err == nil {
		err = s.Cluster.AwaitNodes(ctx, was.Name)
	}
	if err != nil {
		s.Errorf("restoring %s: %v", was.Name, err)
	}
}

func isOutOfService(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }
func outOfService(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, isOutOfService)
}

// forceDelete removes the pods of a Job on the given nodes as garbage collection does with those of lost nodes: the objects
// go at once, whatever still runs there.
func (s *stage) forceDelete(job *batchv1.Job, nodes ...string) {
	s.Helper()
	s.Eventually("removing the pods by force", func(ctx context.Context) error {
		pods, err := s.PodsOf(ctx, job)
		if err != nil {
			return err
		}
		left := 0
		for i := range pods {
			if !slices.Contains(nodes, pods[i].Spec.NodeName) {
				continue
			}
			left++
			err := s.Client.Delete(ctx, &pods[i], client.GracePeriodSeconds(0))
			if client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		if left > 0 {
			return fmt.Errorf("%d pods were there", left)
		}
		return nil
	})
}

// awaitQuarantine waits until a reservation is releasing with exactly these hosts in quarantine, and says so.
func (s *stage) awaitQuarantine(res *berth.GangReservation, hosts ...string) {
	s.Helper()
	s.Eventually("the quarantine of "+res.Name, func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(res), res); err != nil {
			return err
		}
		var have []string
		for _, q := range res.Status.Quarantine {
			have = append(have, q.Driver+"/"+q.Pool+"/"+q.Node)
		}
		slices.Sort(have)
		var want []string
		for _, h := range hosts {
			want = append(want, "tpu.example.com/pod-a/"+h)
		}
		if res.Status.Phase != berth.PhaseReleasing || !slices.Equal(have, want) {
			return fmt.Errorf("phase %s, quarantine %v", res.Status.Phase, have)
		}
		return nil
	})
	s.awaitProgress(res, "Waiting: a pod may still run on a host that is not Ready: "+strings.Join(hosts, ", "))
}

// TestScenario37_HostsPartitioned: three hosts of a gang are cut off, its pods are removed by force and its Job is deleted.
// The shares of the lost hosts stay in quarantine, one by one until that host is back, deleted, or declared out of service;
// all others are usable at once.
func TestScenario37_HostsPartitioned(t *testing.T) {
	s := begin(t)
	s.run()
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	s.AwaitReserved(job, "True Reserved: tpu-4x4-00 (pod-a) on node-0, node-1, node-4, node-5")
	res := s.reservation(job)

	s.partition("node-0", "node-1", "node-4")
	// A pod that runs on a host that is not Ready may run on: nothing is given up for that.
	s.must(s.Seated(t.Context(), job), "looking after the gang")
	s.DeleteJob(job)
	s.forceDelete(job, "node-0", "node-1", "node-4")
	s.awaitQuarantine(res, "node-0", "node-1", "node-4")
	claims, err := s.pinned(t.Context())
	s.must(err, "listing claims")
	if len(claims) > 0 {
		t.Errorf("claims are still there: %v", claims)
	}
	s.awaitCounts(16, 13, 0, 3)

	// Thirteen hosts for thirteen single-host devices.
	rest := s.Submit(scene.Gang("rest", "tpu-2x2", 13))
	s.AwaitSeated(rest)
	if hosts := s.reservation(rest).Spec.PodSets[0].Hosts; !slices.Contains(hosts, "node-5") {
		t.Errorf("node-5 was not used: %v", hosts)
	}
	more := s.Submit(scene.Gang("more", "tpu-2x2", 1))
	s.AwaitReserved(more, "False NoFreeSlice: no tpu-2x2 is free: 13 of 16 are held by "+s.Namespace+"/"+s.reservation(rest).Name+
		"; 3 are out of use: hosts node-0, node-1, node-4 (each is not Ready)")

	s.must(s.Cluster.ReviveNode(t.Context(), "node-0"), "reviving node-0")
	s.AwaitSeated(more)
	if hosts := s.reservation(more).Spec.PodSets[0].Hosts; !slices.Equal(hosts, []string{"node-0"}) {
		t.Errorf("it runs on %v", hosts)
	}
	s.awaitProgress(res, "Waiting: a pod may still run on a host that is not Ready: node-1, node-4")
	s.must(s.Client.Delete(t.Context(), s.node("node-1")), "deleting node-1")
	s.awaitProgress(res, "Waiting: a pod may still run on a host that is not Ready: node-4")
	s.takeOutOfService("node-4")
	s.gone(res)

	s.Finish(rest)
	s.Finish(more)
	s.AwaitNoTrace()
}

func (s *stage) takeOutOfService(name string) {
	s.Helper()
	s.Eventually("taking "+name+" out of service", func(ctx context.Context) error {
		node := s.node(name)
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
			Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute,
		})
		return s.Client.Update(ctx, node)
	})
}

// pinned are the names of Berth's claims in the namespace.
func (s *stage) pinned(ctx context.Context) ([]string, error) {
	var names []string
	list, err := s.Cluster.Client().ResourceV1().ResourceClaims(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: berth.LabelReservation})
	if err != nil {
		return nil, err
	}
	for _, c := range list.Items {
		names = append(names, c.Name)
	}
	return names, nil
}

// awaitCounts waits until the AcceleratorPool counts its hosts so.
func (s *stage) awaitCounts(total, usable, reserved, quarantined int32) {
	s.Helper()
	s.Eventually("the counts of the pool", func(ctx context.Context) error {
		p := &berth.AcceleratorPool{}
		if err := s.Client.Get(ctx, types.NamespacedName{Name: scene.Pool}, p); err != nil {
			return err
		}
		h := p.Status.Hosts
		if h.Total != total || h.Usable != usable || h.Reserved != reserved || h.Quarantined != quarantined {
			return fmt.Errorf("total %d, usable %d, reserved %d, quarantined %d", h.Total, h.Usable, h.Reserved, h.Quarantined)
		}
		return nil
	})
}

// TestScenario37_LostHostMovesTheGang: one host is cut off and its pod is removed by force while the Job wants to run on.
// The gang is moved as a whole; the share of the lost host stays in quarantine over a restart of Berth.
func TestScenario37_LostHostMovesTheGang(t *testing.T) {
	s := begin(t)
	c := s.run()
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	first := s.reservation(job)
	s.partition("node-5")
	s.forceDelete(job, "node-5")
	s.eventSaid(s.workload(job), "SliceLost: host node-5 is not Ready")
	s.Eventually("moving the gang", func(ctx context.Context) error {
		res, err := s.ReservationOf(ctx, job)
		if err == nil && res.UID == first.UID {
			err = errors.New("it still has its first reservation")
		}
		if err != nil {
			return err
		}
		return s.Seated(ctx, job)
	})
	s.awaitQuarantine(first, "node-5")
	s.must(c.Stop(), "stopping Berth")
	s.run()
	single := s.Submit(scene.Gang("single", "tpu-2x2", 11))
	s.AwaitSeated(single)
	if hosts := s.reservation(single).Spec.PodSets[0].Hosts; slices.Contains(hosts, "node-5") {
		t.Errorf("the host in quarantine was given out: %v", hosts)
	}
	s.Get(first)
	s.must(s.Cluster.ReviveNode(t.Context(), "node-5"), "reviving node-5")
	s.gone(first)
	s.Finish(job)
	s.Finish(single)
	s.AwaitNoTrace()
}
