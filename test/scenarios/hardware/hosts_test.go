package hardware

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-dev/berth/pkg/adapt/jobs"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/cluster"
	"github.com/berth-dev/berth/test/scene"
)

// TestHostDeletedUnderRunningGang: the Node object goes, so the slice is no longer whole.
func TestHostDeletedUnderRunningGang(t *testing.T) {
	s := begin(t)
	r := standard(s, "deleted")
	st := s.Follow()
	run(s)
	job := s.Submit(scene.Gang("gang", quad, 4))
	s.AwaitSeated(job)
	from, lost := reservation(s, job), podOn(s, job, "deleted-1")

	if err := s.Client.Delete(s.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "deleted-1"}}); err != nil {
		t.Fatal(err)
	}

	// The pod on the lost host cannot end by itself. kube-controller-manager would force it out after a minute. Nobody waits
	// for it but its own reservation, which keeps what it holds.
	s.Eventually("what the former reservation waits for", func(context.Context) error {
		s.Get(from)
		c := apimeta.FindStatusCondition(from.Status.Conditions, berth.ReservationProgressing)
		if want := "1 of the gang's pods may still run: " + lost.Name; c == nil || c.Message != want {
			return fmt.Errorf("it is %s and says %v, want %s", from.Status.Phase, c, want)
		}
		return nil
	})
	claim := &resourcev1.ResourceClaim{}
	claim.Namespace, claim.Name = from.Namespace, jobs.ClaimName(from.Spec.PodSets[0].Claims[0].Prefix, 0)
	if s.Get(claim); claim.Status.Allocation == nil {
		t.Error("the former slice is free although a pod may still run on it")
	}
	awaitMoved(s, job, from)
	s.AwaitReserved(job, r.on("rack-4-1", r.hosts[4:8]))
	st.Await(job, "check Retry: host deleted-1 is gone")
	st.Await(job, "GangReserved False HostMissing: host deleted-1 is gone")
	s.Finish(job)
	s.Eventually("the pod on the lost host", func(ctx context.Context) error {
		pods, err := s.PodsOf(ctx, job)
		if err != nil {
			return err
		}
		for i := range pods {
			if pods[i].Spec.NodeName == "deleted-1" {
				return client.IgnoreNotFound(s.Client.Delete(ctx, &pods[i], client.GracePeriodSeconds(0)))
			}
		}
		return nil // kube-controller-manager was faster
	})
	s.AwaitNoTrace()
}

// TestHostSilentBeforeBinding: the host falls silent after it was reserved, and no pod has got there.
func TestHostSilentBeforeBinding(t *testing.T) {
	s := begin(t)
	r := standard(s, "silent")
	st := s.Follow()
	run(s)
	resume := pause(s, cluster.Scheduler)

	job := s.Submit(scene.Gang("gang", quad, 4))
	awaitUngated(s, job)
	from := reservation(s, job)
	if err := s.Cluster.SilenceNode(s.Context(), "silent-3"); err != nil {
		t.Fatal(err)
	}
	st.Await(job, "check Retry: host silent-3 is not Ready")
	st.Await(job, "GangReserved False SliceLost: host silent-3 is not Ready")
	// Not before they are gone: nobody has to know of the lost host before the scheduler.
	s.Eventually("the end of the pods that nobody bound", func(ctx context.Context) error {
		pods, err := s.PodsOf(ctx, job)
		for i := range pods {
			if pods[i].Labels[berth.LabelReservation] == from.Name {
				return fmt.Errorf("%s is still there", pods[i].Name)
			}
		}
		return err
	})
	resume()
	awaitMoved(s, job, from)
	s.AwaitReserved(job, r.on("rack-4-1", r.hosts[4:8]))

	// Nobody can know that no pod got to the silent host, so its share is not given out before it speaks again.
	s.Eventually("quarantine", func(ctx context.Context) error {
		s.Get(from)
		if q := from.Status.Quarantine; len(q) != 1 || q[0].Node != "silent-3" {
			return fmt.Errorf("quarantined: %v", q)
		}
		return nil
	})
	if err := s.Cluster.ReviveNode(s.Context(), "silent-3"); err != nil {
		t.Fatal(err)
	}
	s.Finish(job)
	s.AwaitNoTrace()
	r.awaitShapes("rack-all 1/1", "rack-4 2/2", "rack-2 4/4", "rack-1 8/8")
}

// pause stops a component until resume is called, at the latest at the end of the test.
func pause(s *scene.Scene, component string) (resume func()) {
	s.Helper()
	p := s.Cluster.Process(component)
	if err := p.Pause(); err != nil {
		s.Fatal(err)
	}
	resume = sync.OnceFunc(func() {
		if err := p.Resume(); err != nil {
			s.Errorf("resuming %s: %v", component, err)
		}
	})
	s.Cleanup(resume)
	return resume
}

// without stops a component. Unlike one that is resumed, one that restores starts again reads everything there is before
// it acts.
func without(s *scene.Scene, component string) (restore func()) {
	s.Helper()
	p := s.Cluster.Process(component)
	if err := p.Stop(); err != nil {
		s.Fatal(err)
	}
	restore = sync.OnceFunc(func() {
		// The test's own context has ended when this is the clean-up.
		if err := p.Start(context.WithoutCancel(s.Context())); err != nil {
			s.Errorf("starting %s again: %v", component, err)
		}
	})
	s.Cleanup(restore)
	return restore
}

// awaitUngated waits until all pods of the gang are there and only the scheduler is still missing.
func awaitUngated(s *scene.Scene, job *batchv1.Job) {
	s.Helper()
	s.Eventually("seating "+job.Name, func(ctx context.Context) error {
		pods, err := s.PodsOf(ctx, job)
		if err != nil {
			return err
		}
		if len(pods) != int(*job.Spec.Parallelism) {
			return fmt.Errorf("%d pods exist", len(pods))
		}
		for i := range pods {
			if jobs.Gated(&pods[i]) {
				return errors.New("pod " + pods[i].Name + " is gated")
			}
		}
		return nil
	})
}
