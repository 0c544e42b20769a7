package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// TestScenario40_EverythingDeletedWithoutControllerManager: Job, Workload and namespace are deleted while the pods end and
// kube-controller-manager, which alone can finish them, is down. The reservation says what it waits for. Afterwards
// nothing is left, and the namespace goes.
func TestScenario40_EverythingDeletedWithoutControllerManager(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	r, pods, wl := s.reservation(job), s.podsNow(job), s.workload(job)

	s.stop(cluster.ControllerManager)
	deleted := metav1.Now()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	s.must(s.Client.Delete(t.Context(), namespace), "deleting the namespace")
	s.DeleteJob(job)
	s.must(client.IgnoreNotFound(s.Client.Delete(t.Context(), wl)), "deleting the Workload")
	for _, p := range pods {
		s.must(s.Client.Delete(t.Context(), p.DeepCopy()), "deleting pod "+p.Name)
	}
	for _, gone := range []client.Object{job, wl} {
		s.Eventually(fmt.Sprintf("the end of %T", gone), func(ctx context.Context) error {
			err := s.Client.Get(ctx, client.ObjectKeyFromObject(gone), gone)
			if err == nil {
				err = fmt.Errorf("%s is there with finalizers %v", gone.GetName(), gone.GetFinalizers())
			}
			return client.IgnoreNotFound(err)
		})
	}
	s.awaitWaiting(r, "Waiting: 4 of the gang's pods may still run: "+names(pods))
	s.must(s.held(t.Context(), r), "while the pods end")
	for _, p := range s.podsNow(job) {
		if p.DeletionTimestamp == nil || !slices.Contains(p.Finalizers, "batch.kubernetes.io/job-tracking") {
			t.Errorf("pod %s does not wait for kube-controller-manager: the test shows nothing", p.Name)
		}
	}

	// Pod by pod comes to its end by hand. Each new sentence is a new look of Berth's, and as long as one pod is left
	// everything is held; that is more than time could show.
	for i, p := range pods[:len(pods)-1] {
		untrack := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		s.must(s.Client.Patch(t.Context(), p.DeepCopy(), untrack), "ending pod "+p.Name)
		left := pods[i+1:]
		s.awaitWaiting(r, fmt.Sprintf("Waiting: %d of the gang's pods may still run: %s", len(left), names(left)))
		s.must(s.held(t.Context(), r), fmt.Sprintf("while %d pods are left", len(left)))
	}
	if freed := s.wrote("update", "resourceclaims/status"); len(freed) > 0 && freed[len(freed)-1].Time.After(deleted.Time) {
		t.Errorf("Berth wrote to the status of a claim while pods may run: %v", freed[len(freed)-1])
	}

	s.start(cluster.ControllerManager)
	s.AwaitNoTrace()
	s.deleteNamespace()
}

// TestWorkloadDeletedByHand: Kueue makes the Job a new Workload of the same name. It is served by a reservation of its own,
// and what the old one had is released after the last of its pods.
func TestWorkloadDeletedByHand(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	first, pods, old := s.reservation(job), s.podsNow(job), s.workload(job)
	s.prolong(pods)

	s.must(s.Client.Delete(t.Context(), old.DeepCopy()), "deleting the Workload")
	s.awaitWaiting(first, "Waiting: 4 of the gang's pods may still run: "+names(pods))
	s.AwaitReserved(job, formerFirst)
	s.must(s.held(t.Context(), first), "while the pods end")
	s.shutDown(pods...)
	s.awaitGone(first)
	s.Eventually("seating the gang of the new Workload", func(ctx context.Context) error {
		wl, err := s.WorkloadOf(ctx, job)
		if err != nil {
			return err
		}
		if wl.UID == old.UID {
			return fmt.Errorf("Workload %s is still the old one", wl.Name)
		}
		return s.Seated(ctx, job)
	})
	if wl := s.workload(job); wl.Name != old.Name {
		t.Errorf("the new Workload is called %s and the old one was %s: the test shows less than it should", wl.Name, old.Name)
	}
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestDeactivated: a gang that is set aside gives its slice back and says so; set going again, it runs.
func TestDeactivated(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	first := s.reservation(job)

	s.activate(job, false)
	s.AwaitNoTrace()
	s.AwaitReserved(job, "False Released: released: tpu-4x4-00 (pod-a) on node-0, node-1, node-4, node-5")
	s.awaitConditions(job, false, kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted)

	s.activate(job, true)
	s.moved(job, first)
	s.AwaitReserved(job, "True Reserved: tpu-4x4-00 (pod-a) on node-0, node-1, node-4, node-5")
	s.Finish(job)
	s.AwaitNoTrace()
}

// TestJobDeletedWithoutItsPods: somebody deletes the Job and keeps its pods (propagation Orphan), and with them the
// Workload, which nobody will ever finish. The pods run to their end on the slice; then it is given back.
func TestJobDeletedWithoutItsPods(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	s.awaitRunning(job)
	r, pods := s.reservation(job), s.podsNow(job)

	s.must(s.Client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationOrphan)), "deleting the Job")
	s.Eventually("the end of the Job", func(ctx context.Context) error {
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(job), job)
		if err == nil {
			err = fmt.Errorf("it is there with finalizers %v", job.Finalizers)
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	wl := &kueue.Workload{}
	s.Eventually("orphaning", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: r.Spec.WorkloadRef.Name}, wl); err != nil {
			return err
		}
		owned := len(wl.OwnerReferences)
		for _, p := range s.podsNow(job) {
			owned += len(p.OwnerReferences)
		}
		if owned > 0 {
			return fmt.Errorf("%d objects still have an owner", owned)
		}
		return nil
	})
	// A gang that comes afterwards is served, so the controllers have looked at all of it since.
	other := s.Submit(scene.Gang("other", "tpu-4x4", 4))
	s.AwaitSeated(other)
	s.Finish(other)
	s.must(s.held(t.Context(), r), "while the orphans run")
	for _, p := range s.podsNow(job) {
		if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
			t.Errorf("orphan %s does not run any more: %s, deleted at %v", p.Name, p.Status.Phase, p.DeletionTimestamp)
		}
	}

	for i, p := range s.podsNow(job) {
		if i == len(pods)-1 {
			s.must(s.held(t.Context(), r), "while one orphan runs")
		}
		// A patch, because kube-controller-manager takes its finalizer off the orphans whenever it gets to it.
		ended := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`))
		s.must(s.Client.Status().Patch(t.Context(), p, ended), "ending pod "+p.Name)
	}
	s.AwaitNoTrace()
	s.Get(wl)
	c := apimeta.FindStatusCondition(wl.Status.Conditions, berth.ConditionGangReserved)
	if c == nil || c.Reason+": "+c.Message != "Unsupported: the Workload has lost its owner and the gang's pods have ended" {
		t.Errorf("the Workload does not say why it lost its slice: %v", c)
	}
	if deleted := s.wrote("delete", "pods"); len(deleted) > 0 {
		t.Errorf("Berth deleted pods: %v", deleted)
	}
}

// TestNamespaceDeleted: the namespace of a gang that runs and of one that waits is deleted. It goes away with both.
func TestNamespaceDeleted(t *testing.T) {
	s := play(t)
	job := s.Submit(scene.Gang("train", "tpu-8x8", 16))
	s.AwaitSeated(job)
	r := s.reservation(job)
	waiting := s.Submit(scene.Gang("waiting", "tpu-4x4", 4))
	s.AwaitReserved(waiting, fmt.Sprintf("False NoFreeSlice: no tpu-4x4 is free: 4 of 4 are held by %s/%s", r.Namespace, r.Name))
	s.deleteNamespace()
}

// TestNamespaceDeletedWhileDown: the same while no controller runs. The finalizers keep what holds devices until one does.
func TestNamespaceDeletedWhileDown(t *testing.T) {
	s := set(t)
	controller := s.Run()
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	r := s.reservation(job)
	s.must(controller.Stop(), "stopping the controller")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	s.must(s.Client.Delete(t.Context(), namespace), "deleting the namespace")
	s.Eventually("the end of all but what Berth holds", func(ctx context.Context) error {
		s.Get(namespace)
		for _, c := range namespace.Status.Conditions {
			if c.Type == corev1.NamespaceFinalizersRemaining && c.Message == "Some content in the namespace has finalizers remaining: "+
				"berth.dev/hold in 1 resource instances, berth.dev/reservation in 1 resource instances" {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", namespace.Status.Conditions)
	})
	s.must(s.held(t.Context(), r), "while no controller runs")
	s.Run()
	s.deleteNamespace()
}

// deleteNamespace deletes the stage's namespace and waits for its end.
func (s *stage) deleteNamespace() {
	s.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	s.must(client.IgnoreNotFound(s.Client.Delete(s.Context(), namespace)), "deleting the namespace")
	s.Eventually("the end of the namespace", func(ctx context.Context) error {
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		if err == nil {
			err = fmt.Errorf("it is %s: %v", namespace.Status.Phase, namespace.Status.Conditions)
		}
		return client.IgnoreNotFound(err)
	})
}
