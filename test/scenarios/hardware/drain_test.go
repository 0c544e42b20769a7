package hardware

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	"github.com/berth-dev/berth/test/scene"
)

// TestScenario36_DrainedHost: `kubectl drain` cordons a host and then evicts its pods. The cordon alone moves nothing. The
// successor of the evicted pod could run nowhere, so the gang is moved as a whole, and told which host it was.
func TestScenario36_DrainedHost(t *testing.T) {
	s := begin(t)
	r := standard(s, "drained")
	st := s.Follow()
	run(s)
	job := s.Submit(scene.Gang("gang", quad, 4))
	s.AwaitSeated(job)
	from := reservation(s, job)

	r.changeNode("drained-2", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	// The other gang has to wait for the cordoned host: that it says so shows that the first one was judged as well.
	other := s.Submit(scene.Gang("other", whole, 8))
	s.AwaitReserved(other, "False HostUnusable: no rack-all is free: 1 of 1 is out of use: host drained-2 is cordoned")
	assertNotMoved(s, st, job)
	s.DeleteJob(other)

	evict(s, podOn(s, job, "drained-2"))
	awaitMoved(s, job, from)
	st.Await(job, "check Retry: rank 2 has no running pod, and its host drained-2 is cordoned")
	st.Await(job, "GangReserved False HostUnusable: rank 2 has no running pod, and its host drained-2 is cordoned")
	s.AwaitReserved(job, r.on("rack-4-1", r.hosts[4:8]))
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestScenario36_CordonedWhileItsSuccessorWaits: the successor of a rank stands behind its gate, because its predecessor
// takes its time to end, when its host is cordoned. Nobody waits for that end to find out that it was in vain.
func TestScenario36_CordonedWhileItsSuccessorWaits(t *testing.T) {
	s := begin(t)
	r := standard(s, "gated")
	st := s.Follow()
	run(s)
	job := s.Submit(scene.Gang("gang", quad, 4))
	s.AwaitSeated(job)
	from, old := reservation(s, job), podOn(s, job, "gated-1")
	const stopping = "example.com/stopping"
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["`+stopping+`"]}}`))
	if err := s.Client.Patch(s.Context(), old, patch); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := s.Client.Patch(context.WithoutCancel(s.Context()), old, patch); err != nil {
			t.Errorf("ending the pod of rank 1: %v", err)
		}
	})
	t.Cleanup(end)
	if err := s.Client.Delete(s.Context(), old); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the successor of rank 1", func(ctx context.Context) error {
		pods, err := s.PodsOf(ctx, job)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
			return p.Labels[batchv1.JobCompletionIndexAnnotation] == "1" && jobs.Gated(&p)
		}) {
			return errors.New("it is not there")
		}
		return nil
	})

	r.changeNode("gated-1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	st.Await(job, "check Retry: rank 1 has no running pod, and its host gated-1 is cordoned")
	end()
	awaitMoved(s, job, from)
	s.AwaitReserved(job, r.on("rack-4-1", r.hosts[4:8]))
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestScenario37_TaintedHost: a NoExecute taint on the Node ends one pod of four.
func TestScenario37_TaintedHost(t *testing.T) {
	s := begin(t)
	r := standard(s, "tainted")
	st := s.Follow()
	run(s)
	job := s.Submit(scene.Gang("gang", quad, 4))
	s.AwaitSeated(job)
	from := reservation(s, job)

	r.changeNode("tainted-0", func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "example.com/repair", Value: "fan", Effect: corev1.TaintEffectNoExecute})
	})
	awaitMoved(s, job, from)
	const why = "rank 0 has no running pod, and its host tainted-0 has the taint example.com/repair=fan:NoExecute, which the pods do not tolerate"
	st.Await(job, "check Retry: "+why)
	st.Await(job, "GangReserved False HostUnusable: "+why)
	s.AwaitReserved(job, r.on("rack-4-1", r.hosts[4:8]))
	s.Finish(job)
	s.AwaitNoTrace()
}

// changeNode changes the Node of one of the rack's hosts; it goes with the rack.
func (r *rack) changeNode(name string, change func(*corev1.Node)) {
	r.Helper()
	r.Eventually("changing Node "+name, func(ctx context.Context) error {
		n := &corev1.Node{}
		if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, n); err != nil {
			return err
		}
		change(n)
		return r.Client.Update(ctx, n)
	})
}

// evict asks for the end of a pod as `kubectl drain` does.
func evict(s *scene.Scene, pod *corev1.Pod) {
	s.Helper()
	c, err := kubernetes.NewForConfig(s.Cluster.RESTConfig())
	if err != nil {
		s.Fatal(err)
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := c.PolicyV1().Evictions(pod.Namespace).Evict(s.Context(), eviction); err != nil {
		s.Fatalf("evicting pod %s: %v", pod.Name, err)
	}
}

// podOn is the pod of a gang on a host.
func podOn(s *scene.Scene, job *batchv1.Job, host string) *corev1.Pod {
	s.Helper()
	pods, err := s.PodsOf(s.Context(), job)
	if err != nil {
		s.Fatal(err)
	}
	for i := range pods {
		if pods[i].Spec.NodeName == host {
			return &pods[i]
		}
	}
	s.Fatalf("no pod of %s runs on %s", job.Name, host)
	return nil
}

// assertNotMoved fails the test if a gang was ever sent back.
func assertNotMoved(s *scene.Scene, st *scene.Story, job *batchv1.Job) {
	s.Helper()
	for _, line := range st.Of(job) {
		if strings.HasPrefix(line, "check Retry") {
			s.Errorf("the gang was sent back: %s", line)
		}
	}
	if err := s.Seated(s.Context(), job); err != nil {
		s.Error(fmt.Errorf("the gang was disturbed: %w", err))
	}
}
