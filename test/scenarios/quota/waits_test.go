package quota

import (
	"context"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// waits follows the Workloads of a namespace: when each had quota, and when it had a slice. Times are those at which the API
// server's watch told of it.
type waits struct {
	mu   sync.Mutex
	jobs map[string]*wait
	err  error
}

// wait is one gang's.
type wait struct {
	// began is when the Workload was first seen.
	began time.Time
	// quota is since when it has quota without a slice; zero when it has none, or both. longest is the longest that lasted.
	quota   time.Time
	longest time.Duration
	// firstQuota and slice are when it first had each.
	firstQuota, slice time.Time
	// evictions and preemptions are how often it lost its quota, and how often of these for another gang.
	evictions, preemptions int
	evicted                bool
}

// follow begins to follow. It ends with the test.
func (s *stage) follow() *waits {
	s.Helper()
	w := &waits{jobs: map[string]*wait{}}
	ctx, stop := context.WithCancel(context.Background())
	events, err := s.Client.Watch(ctx, &kueue.WorkloadList{}, client.InNamespace(s.Namespace))
	if err != nil {
		s.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range events.ResultChan() {
			if wl, is := e.Object.(*kueue.Workload); is {
				w.see(wl, time.Now())
			}
		}
	}()
	s.Cleanup(func() {
		stop()
		events.Stop()
		<-ended
	})
	return w
}

func (w *waits) see(wl *kueue.Workload, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := metav1.GetControllerOf(wl)
	if ref == nil {
		return
	}
	j := w.jobs[ref.Name]
	if j == nil {
		j = &wait{began: now}
		w.jobs[ref.Name] = j
	}
	is := func(kind string) bool { return apimeta.IsStatusConditionTrue(wl.Status.Conditions, kind) }
	if evicted := is(kueue.WorkloadEvicted); evicted != j.evicted {
		j.evicted = evicted
		if evicted {
			j.evictions++
			if is(kueue.WorkloadPreempted) {
				j.preemptions++
			}
		}
	}
	has, served := is(kueue.WorkloadQuotaReserved) && !is(kueue.WorkloadFinished) && !j.evicted, is(kueue.WorkloadAdmitted)
	if has && j.firstQuota.IsZero() {
		j.firstQuota = now
	}
	if has && served && j.slice.IsZero() {
		j.slice = now
	}
	switch {
	case has && !served && j.quota.IsZero():
		j.quota = now
	case !(has && !served) && !j.quota.IsZero():
		j.longest = max(j.longest, now.Sub(j.quota))
		j.quota = time.Time{}
	}
}

// of is what is known of a Job now.
func (w *waits) of(job string) wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[job]
	if j == nil {
		return wait{}
	}
	now := *j
	if !now.quota.IsZero() {
		now.longest = max(now.longest, time.Since(now.quota))
	}
	return now
}
