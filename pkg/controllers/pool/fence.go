package pool

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/reason"
)

// Fence is what the last probe found. It is safe for concurrent use.
type Fence struct {
	mu     sync.Mutex
	report *policy.Report
	// generations are those of the AcceleratorPools that the report is about, by UID: one that is created anew begins at 1
	// again.
	generations map[types.UID]int64
	// failingSince is when the policies were first found not in force; zero while they are.
	failingSince time.Time
	changed      chan event.TypedGenericEvent[*berth.AcceleratorPool]
	// probed is closed with the first report.
	probed chan struct{}
}

// NewFence knows nothing yet: nothing may be reserved.
func NewFence() *Fence {
	return &Fence{
		changed: make(chan event.TypedGenericEvent[*berth.AcceleratorPool], 1),
		probed:  make(chan struct{}),
	}
}

// Probed is closed when the first probe has been made. Before that there is nothing to tell anybody.
func (f *Fence) Probed() <-chan struct{} { return f.probed }

// Changed delivers an event when the answers may be different from before.
func (f *Fence) Changed() <-chan event.TypedGenericEvent[*berth.AcceleratorPool] { return f.changed }

// observe takes a report about AcceleratorPools.
func (f *Fence) observe(report policy.Report, pools []*berth.AcceleratorPool, now time.Time) {
	generations := map[types.UID]int64{}
	for _, p := range pools {
		generations[p.UID] = p.Generation
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := f.report == nil || text(f.report.Err()) != text(report.Err()) || !maps.Equal(f.generations, generations)
	if f.report == nil {
		close(f.probed)
	}
	f.report, f.generations = &report, generations
	switch {
	case report.PoliciesErr() == nil:
		f.failingSince = time.Time{}
	case f.failingSince.IsZero():
		f.failingSince = now
	}
	if changed {
		select {
		case f.changed <- event.TypedGenericEvent[*berth.AcceleratorPool]{Object: &berth.AcceleratorPool{}}:
		default: // one event is waiting already
		}
	}
}

// failing is since when the policies have not been in force; zero while they are.
func (f *Fence) failing() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failingSince
}

// NotInForce is why nothing may be reserved; nil when every policy is in force.
func (f *Fence) NotInForce() *reason.Refusal {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.report == nil {
		return &reason.Refusal{Code: reason.NotFenced, Message: "the admission policies have not been probed yet"}
	}
	if err := f.report.PoliciesErr(); err != nil {
		return &reason.Refusal{Code: reason.NotFenced, Message: "the admission policies are not in force: " + firstLine(err)}
	}
	return nil
}

// Unfenced is why nothing of one AcceleratorPool may be reserved; nil when its fence stands or it has none. A fence that was
// tried before the AcceleratorPool was changed, or created anew, says nothing about what it selects now.
func (f *Fence) Unfenced(pool *berth.AcceleratorPool) *reason.Refusal {
	if pool.Spec.Fence == berth.FenceObserve {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if generation, known := f.generations[pool.UID]; known && generation == pool.Generation {
		if finding, tried := f.report.Fence(pool.Name); tried && finding.Verdict == policy.InForce {
			return nil
		}
	}
	return &reason.Refusal{Code: reason.NotFenced, Message: "the fence of AcceleratorPool " + pool.Name + " is not in force yet"}
}
