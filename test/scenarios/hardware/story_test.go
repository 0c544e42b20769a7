package hardware

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// story is everything that the Workloads of a namespace ever said, also what stood there for milliseconds only.
type story struct {
	s *scene.Scene

	mu    sync.Mutex
	lines map[string][]string // by Job
}

// follow begins a story. It must be called before the Jobs are submitted.
func follow(s *scene.Scene) *story {
	s.Helper()
	st := &story{s: s, lines: map[string][]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	watch, err := s.Client.Watch(ctx, &kueue.WorkloadList{}, client.InNamespace(s.Namespace))
	if err != nil {
		s.Fatalf("watching Workloads: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			if wl, ok := event.Object.(*kueue.Workload); ok {
				st.add(wl)
			}
		}
	}()
	s.Cleanup(func() {
		cancel()
		<-done
		if s.Failed() {
			s.Logf("what the Workloads said:\n%s", st)
		}
	})
	return st
}

func (st *story) add(wl *kueue.Workload) {
	owner := metav1.GetControllerOf(wl)
	if owner == nil {
		return
	}
	var now []string
	for _, kind := range []string{berth.ConditionGangReserved, kueue.WorkloadEvicted} {
		if c := apimeta.FindStatusCondition(wl.Status.Conditions, kind); c != nil {
			now = append(now, fmt.Sprintf("%s %s %s: %s", kind, c.Status, c.Reason, c.Message))
		}
	}
	for _, check := range wl.Status.AdmissionChecks {
		now = append(now, fmt.Sprintf("check %s: %s", check.State, check.Message))
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, line := range now {
		if !slices.Contains(st.lines[owner.Name], line) {
			st.lines[owner.Name] = append(st.lines[owner.Name], line)
		}
	}
}

// of are the different lines of one Job in the order in which they first appeared.
func (st *story) of(job *batchv1.Job) []string {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.Clone(st.lines[job.Name])
}

// await waits until a line has been said.
func (st *story) await(job *batchv1.Job, line string) {
	st.s.Helper()
	st.s.Eventually("the story of "+job.Name, func(context.Context) error {
		if lines := st.of(job); !slices.Contains(lines, line) {
			return fmt.Errorf("it lacks\n  %s\nand reads\n  %s", line, strings.Join(lines, "\n  "))
		}
		return nil
	})
}

// never fails the test if a word stood in any line of any Job.
func (st *story) never(word string) {
	st.s.Helper()
	if all := st.String(); strings.Contains(strings.ToLower(all), word) {
		st.s.Errorf("%q was said:\n%s", word, all)
	}
}

// String is the whole story.
func (st *story) String() string {
	st.mu.Lock()
	defer st.mu.Unlock()
	var b strings.Builder
	for job, lines := range st.lines {
		fmt.Fprintf(&b, "%s:\n", job)
		for _, line := range lines {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	return b.String()
}

// awaitMoved waits until the gang runs by rank under another reservation than before.
func awaitMoved(s *scene.Scene, job *batchv1.Job, from *berth.GangReservation) *berth.GangReservation {
	s.Helper()
	var to *berth.GangReservation
	s.Eventually("moving "+job.Name, func(ctx context.Context) error {
		var err error
		if to, err = s.ReservationOf(ctx, job); err != nil {
			return err
		}
		if to.UID == from.UID {
			return errors.New("it still has reservation " + from.Name)
		}
		return seatedNow(ctx, s, job, to)
	})
	return to
}

// seatedNow is scene.Seated for a gang whose former pods may still terminate elsewhere.
func seatedNow(ctx context.Context, s *scene.Scene, job *batchv1.Job, res *berth.GangReservation) error {
	pods, err := s.PodsOf(ctx, job)
	if err != nil {
		return err
	}
	hosts := map[string]string{}
	for i := range pods {
		if p := &pods[i]; p.Labels[berth.LabelReservation] == res.Name && p.DeletionTimestamp == nil {
			hosts[p.Labels[batchv1.JobCompletionIndexAnnotation]] = p.Spec.NodeName
		}
	}
	for rank, host := range res.Spec.PodSets[0].Hosts {
		if have := hosts[fmt.Sprint(rank)]; have != host {
			return fmt.Errorf("rank %d runs on %q, its host is %s", rank, have, host)
		}
	}
	return nil
}

// reservation of a gang, which must have one.
func reservation(s *scene.Scene, job *batchv1.Job) *berth.GangReservation {
	s.Helper()
	res, err := s.ReservationOf(s.Context(), job)
	if err != nil {
		s.Fatal(err)
	}
	return res
}

// cut takes "Code: message" apart.
func cut(text string) (code, message string) {
	code, message, _ = strings.Cut(text, ": ")
	return code, message
}
