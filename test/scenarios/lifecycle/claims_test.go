package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/test/invariants"
	"github.com/berth-dev/berth/test/scene"
)

// TestScenario11_ClaimDeletedByHand: the claim stays with its allocation until the gang is evicted as a whole, and so do
// the other claims of the gang. Then it runs on fresh ones.
func TestScenario11_ClaimDeletedByHand(t *testing.T) {
	for name, class := range map[string]string{"the only claim": "tpu-4x4", "one of four claims": "tpu-2x2"} {
		t.Run(name, func(t *testing.T) {
			s := play(t)
			job := s.Submit(scene.Gang("train", class, 4))
			s.AwaitSeated(job)
			first, pods := s.reservation(job), s.podsNow(job)
			s.prolong(pods)
			claims, err := s.claimsOf(t.Context(), first.Name)
			s.must(err, "listing claims")
			s.must(s.held(t.Context(), first), "before the deletion")

			s.must(s.Client.Delete(t.Context(), &claims[len(claims)-1]), "deleting the claim")
			s.awaitWaiting(first, "Waiting: 4 of the gang's pods may still run: "+names(pods))
			s.awaitEvicted(job, kueue.WorkloadEvictedByAdmissionCheck)
			s.AwaitReserved(job, formerFirst)
			s.must(s.held(t.Context(), first), "while the pods end")
			s.shutDown(pods[:3]...)
			s.awaitWaiting(first, "Waiting: 1 of the gang's pods may still run: "+names(pods[3:]))
			s.must(s.held(t.Context(), first), "while the last pod ends")

			s.shutDown(pods[3])
			s.awaitGone(first)
			second := s.moved(job, first)
			s.must(s.held(t.Context(), second), "on fresh claims")
			s.Finish(job)
			s.AwaitNoTrace()
			if n := len(s.wrote("create", "gangreservations")); n != 2 {
				t.Errorf("Berth made %d reservations, want 2", n)
			}
		})
	}
}

// TestScenario16_RestartWithAClaimInDeletion: while no controller runs, the Job and the claim are deleted. The next
// controller counts the devices as busy until the last pod is gone, and then cleans up.
func TestScenario16_RestartWithAClaimInDeletion(t *testing.T) {
	s := set(t)
	controller := s.Run()
	job := s.Submit(scene.Gang("train", "tpu-8x8", 16))
	s.AwaitSeated(job)
	r, pods := s.reservation(job), s.podsNow(job)
	last := pods[:1]
	s.prolong(last)

	s.must(controller.Stop(), "stopping the controller")
	claims, err := s.claimsOf(t.Context(), r.Name)
	s.must(err, "listing claims")
	for i := range claims {
		s.must(s.Client.Delete(t.Context(), &claims[i]), "deleting the claim")
	}
	s.DeleteJob(job)
	s.Eventually("the end of all pods but one", func(ctx context.Context) error {
		left, err := s.pods(ctx, job)
		if err == nil && len(left) > 1 {
			err = fmt.Errorf("%d are left", len(left))
		}
		return err
	})
	other := s.Submit(scene.Gang("other", "tpu-8x8", 16))

	s.Run()
	s.AwaitReserved(other, fmt.Sprintf("False NoFreeSlice: no tpu-8x8 is free: 1 of 1 is held by %s/%s", r.Namespace, r.Name))
	s.awaitWaiting(r, "Waiting: 1 of the gang's pods may still run: "+names(last))
	s.must(s.held(t.Context(), r), "while one pod ends")

	s.shutDown(last...)
	s.awaitGone(r)
	s.AwaitSeated(other)
	s.Finish(other)
	s.AwaitNoTrace()
}

// TestScenario17_DriverWritesStatus: a driver reports on its device in status.devices of the pinned claim, again and again
// while the gang is seated and released. Neither loses what the other wrote.
func TestScenario17_DriverWritesStatus(t *testing.T) {
	s := play(t)
	var wrote atomic.Int64
	stop := s.driver(&wrote)
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	r, pods := s.reservation(job), s.podsNow(job)
	s.prolong(pods)
	var claims []resourcev1.ResourceClaim
	s.Eventually("a report", func(ctx context.Context) (err error) {
		claims, err = s.claimsOf(ctx, r.Name)
		if err == nil && len(claims) > 0 && len(claims[0].Status.Devices) == 0 {
			err = fmt.Errorf("there is none on claim %s", claims[0].Name)
		}
		return err
	})
	entries := map[string]bool{}
	for _, ref := range claims[0].Status.ReservedFor {
		entries[string(ref.UID)] = true
	}
	for _, p := range pods {
		if !entries[string(p.UID)] {
			t.Errorf("pod %s runs and has no entry in %v", p.Name, claims[0].Status.ReservedFor)
		}
	}
	if len(entries) != 5 || len(claims[0].Status.Devices) != 1 {
		t.Errorf("the claim has entries %v and devices %v, want four pods, the Workload and one device", entries, claims[0].Status.Devices)
	}

	s.Eventually("reports while the gang runs", func(context.Context) error {
		if n := wrote.Load(); n < 10 {
			return fmt.Errorf("there were %d", n)
		}
		return nil
	})
	s.DeleteJob(job)
	s.awaitWaiting(r, "Waiting: 4 of the gang's pods may still run: "+names(pods))
	before, end := wrote.Load(), time.Now()
	s.Eventually("reports while it is given back", func(context.Context) error {
		if n := wrote.Load() - before; n < 3 {
			return fmt.Errorf("there were %d", n)
		}
		return nil
	})
	s.shutDown(pods...)
	s.AwaitNoTrace()
	stop()
	s.releasedOnce(end)
}

// TestClaimWithoutItsReservation: the record is gone and the claim is not. The claim's own story is enough to keep the
// devices while the pods of the gang may run, and to free them afterwards; the gang is moved.
func TestClaimWithoutItsReservation(t *testing.T) {
	// Ready for a reservation that does not exist is what this test makes by hand.
	s := set(t, invariants.Without(2))
	controller := s.Run()
	job := s.Submit(scene.Gang("train", "tpu-4x4", 4))
	s.AwaitSeated(job)
	r, pods := s.reservation(job), s.podsNow(job)
	s.prolong(pods)

	s.must(controller.Stop(), "stopping the controller")
	berthItself, err := client.New(s.Cluster.RESTConfigFor(berthUser), client.Options{Scheme: s.Client.Scheme()})
	s.must(err, "connecting as Berth")
	bare := r.DeepCopy()
	s.Get(bare)
	bare.Finalizers = nil
	s.must(berthItself.Update(t.Context(), bare), "stripping the reservation")
	s.must(s.Client.Delete(t.Context(), bare), "deleting the reservation")

	s.Run()
	s.awaitEvicted(job, kueue.WorkloadEvictedByAdmissionCheck)
	s.Eventually("taking the claim back", func(ctx context.Context) error {
		claims, err := s.claimsOf(ctx, r.Name)
		if err == nil && (len(claims) != 1 || claims[0].DeletionTimestamp == nil) {
			err = fmt.Errorf("there are %d claims and none in deletion", len(claims))
		}
		return err
	})
	s.shutDown(pods[1:]...)
	s.AwaitReserved(job, formerFirst)
	s.must(s.held(t.Context(), r), "while the last pod ends")

	s.shutDown(pods[0])
	s.awaitGone(r)
	s.moved(job, r)
	s.Finish(job)
	s.AwaitNoTrace()
}

// driver plays a driver that writes a condition of its device into each allocated claim of the namespace, every few
// milliseconds and not more than a third of the time: on a busy machine Berth would never come between. It counts how often it
// wrote, until the returned function ends it.
func (s *stage) driver(wrote *atomic.Int64) (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() {
		next := time.NewTimer(0)
		defer next.Stop()
		defer close(done)
		last := map[types.UID]string{}
		for {
			select {
			case <-ctx.Done():
				return
			case <-next.C:
				began := time.Now()
				wrote.Add(int64(s.report(ctx, wrote.Load(), last)))
				next.Reset(max(15*time.Millisecond, 2*time.Since(began)))
			}
		}
	}()
	return func() { cancel(); <-done }
}

// report writes once into every claim that has a device, and returns how often that succeeded. Conflicts are the driver's
// to bear. What it wrote last must still be there, as long as the claim has the device: last has it by the claim's UID. The
// list comes from the API server and is later than that write.
func (s *stage) report(ctx context.Context, n int64, last map[types.UID]string) (written int) {
	var list resourcev1.ResourceClaimList
	if err := s.Client.List(ctx, &list, client.InNamespace(s.Namespace)); err != nil {
		return 0
	}
	for i := range list.Items {
		c := &list.Items[i]
		if c.Status.Allocation == nil {
			continue
		}
		if said, wrote := last[c.UID]; wrote && !slices.ContainsFunc(c.Status.Devices, func(d resourcev1.AllocatedDeviceStatus) bool {
			return len(d.Conditions) == 1 && d.Conditions[0].Message == said
		}) {
			s.Errorf("claim %s has lost what the driver wrote last, message %s: its devices are %v", c.Name, said, c.Status.Devices)
		}
		c.Status.Devices = nil
		for _, r := range c.Status.Allocation.Devices.Results {
			c.Status.Devices = append(c.Status.Devices, resourcev1.AllocatedDeviceStatus{
				Driver: r.Driver, Pool: r.Pool, Device: r.Device,
				Conditions: []metav1.Condition{{
					Type: "Ready", Status: metav1.ConditionTrue, Reason: "Measured", Message: fmt.Sprint(n), LastTransitionTime: metav1.Now(),
				}},
			})
		}
		switch err := s.Client.Status().Update(ctx, c); {
		case err == nil:
			written++
			last[c.UID] = fmt.Sprint(n)
		case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil:
			s.Errorf("the driver cannot write: %v", err)
		}
	}
	return written
}
