package scene

import (
	"context"
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
)

// Story is everything that the Workloads of a namespace ever said, also what stood there for milliseconds only.
type Story struct {
	s *Scene

	mu    sync.Mutex
	lines map[string][]string // by Job
}

// Follow begins a story. It must be called before the Jobs are submitted.
func (s *Scene) Follow() *Story {
	s.Helper()
	st := &Story{s: s, lines: map[string][]string{}}
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

func (st *Story) add(wl *kueue.Workload) {
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

// Of are the different lines of one Job in the order in which they first appeared.
func (st *Story) Of(job *batchv1.Job) []string {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.Clone(st.lines[job.Name])
}

// Await waits until a line has been said.
func (st *Story) Await(job *batchv1.Job, line string) {
	st.s.Helper()
	st.s.Eventually("the story of "+job.Name, func(context.Context) error {
		if lines := st.Of(job); !slices.Contains(lines, line) {
			return fmt.Errorf("it lacks\n  %s\nand reads\n  %s", line, strings.Join(lines, "\n  "))
		}
		return nil
	})
}

// Never fails the test if a word stood in any line of any Job.
func (st *Story) Never(word string) {
	st.s.Helper()
	if all := st.String(); strings.Contains(strings.ToLower(all), word) {
		st.s.Errorf("%q was said:\n%s", word, all)
	}
}

// String is the whole story.
func (st *Story) String() string {
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
