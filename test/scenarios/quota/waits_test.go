package quota

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
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
	// ended counts pods that have succeeded: a clock that does not depend on the machine.
	ended atomic.Int64
}

// moment is a time, and how many pods had succeeded by then.
type moment struct {
	time.Time
	ended int64
}

// since is how long it took from one moment to another.
func (m moment) since(from moment) string {
	if m.IsZero() || from.IsZero() {
		return "for ever"
	}
	return fmt.Sprintf("%.1f s (%d pods)", m.Sub(from.Time).Seconds(), m.ended-from.ended)
}

// wait is one gang's.
type wait struct {
	// began is when the Workload was first seen.
	began moment
	// quota is since when it has quota without a slice; zero when it has none, or both. longest is the longest that lasted.
	quota   moment
	longest time.Duration
	// firstQuota and slice are when it first had each.
	firstQuota, slice moment
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
				w.see(wl, moment{time.Now(), w.ended.Load()})
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

func (w *waits) see(wl *kueue.Workload, now moment) {
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
		j.longest = max(j.longest, now.Sub(j.quota.Time))
		j.quota = moment{}
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
		now.longest = max(now.longest, time.Since(now.quota.Time))
	}
	return now
}
