package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// TestNotChargedIsSentBack: when the back-off of a Workload is over Kueue 0.17 queues it a second time, without what it charges
// for claims, and for a moment it fits without quota. Berth sends back what is admitted for nothing, and it comes again with
// its charge.
func TestNotChargedIsSentBack(t *testing.T) {
	s, _ := play(t)
	f := newFold("charged", scene.Flavor, berth.FoldPhysical, "tpu-4x4")
	f.Spec.Targets[0].Max = ptr.To[int32](4)
	s.fold(f)
	queue := s.queue("charged", f.Name, "0", nil, scene.Flavor)
	s.awaitQuota(f, 4)
	rival := s.Submit(through(queue.Name, "rival"))
	s.AwaitSeated(rival)
	st := s.told()
	job := s.Submit(through(queue.Name, "gang"))
	s.awaitInsufficient(job)
	s.Eventually("what is said of the charge", func(ctx context.Context) error {
		err := st.said("GangReserved False NotCharged: Kueue charges pod set main 0 of 4 berth.dev/shares and is asked again; …")
		if err != nil {
			// Kueue has a few milliseconds to make its mistake, so it is given more than one occasion.
			return errors.Join(err, s.backsOff(ctx, job))
		}
		return nil
	})
	s.awaitInsufficient(job)
	s.Finish(rival)
	s.AwaitSeated(job)
	s.charged(job, shares, 4)
	s.Finish(job)
	s.AwaitNoTrace()
}

// backsOff gives a Workload that waits for quota a back-off that is over, as Kueue does after waitForPodsReady or an admission
// check took its quota. It is Kueue's own field, which nobody else could clear.
func (s *stage) backsOff(ctx context.Context, job *batchv1.Job) error {
	wl, err := s.WorkloadOf(ctx, job)
	if err != nil || workload.HasQuotaReservation(wl) || wl.Status.SchedulingStats != nil ||
		wl.Status.RequeueState != nil && wl.Status.RequeueState.RequeueAt != nil {
		return err // one is under way, or has done what it should
	}
	return workload.PatchAdmissionStatus(ctx, s.Client, wl, clock.RealClock{}, func(wl *kueue.Workload) (bool, error) {
		return workload.SetRequeueState(wl, metav1.Now(), true), nil
	})
}

// told collects every condition GangReserved that the watch shows.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (s *stage) told() *told {
	s.Helper()
	t := &told{}
	ctx, stop := context.WithCancel(context.Background())
	events, err := s.Client.Watch(ctx, &kueue.WorkloadList{}, client.InNamespace(s.Namespace))
	if err != nil {
		s.Fatal(err)
	}
	go func() {
		for e := range events.ResultChan() {
			wl, is := e.Object.(*kueue.Workload)
			if !is {
				continue
			}
			if c := apimeta.FindStatusCondition(wl.Status.Conditions, berth.ConditionGangReserved); c != nil {
				t.mu.Lock()
				if line := sentence(c); !slices.Contains(t.lines, line) {
					t.lines = append(t.lines, line)
				}
				t.mu.Unlock()
			}
		}
	}()
	s.Cleanup(func() {
		stop()
		events.Stop()
	})
	return t
}

// said returns nil when a line was told that is the one wanted, or begins like it before "…".
func (t *told) said(want string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	begin, open := strings.CutSuffix(want, "…")
	if slices.ContainsFunc(t.lines, func(l string) bool { return l == want || open && strings.HasPrefix(l, begin) }) {
		return nil
	}
	return fmt.Errorf("it was not said:\n  %s\nbut\n  %s", want, strings.Join(t.lines, "\n  "))
}
