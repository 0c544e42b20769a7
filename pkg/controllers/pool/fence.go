package pool

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/reason"
)

// Fence is what the last probe found. It is safe for concurrent use.
type Fence struct {
	mu     sync.Mutex
	report *policy.Report
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

// observe takes a report and returns since when the policies have been failing.
func (f *Fence) observe(report policy.Report, now time.Time) (failingSince time.Time) {
	f.mu.Lock()
	before := f.report
	f.report = &report
	switch {
	case report.PoliciesErr() == nil:
		f.failingSince = time.Time{}
	case f.failingSince.IsZero():
		f.failingSince = now
	}
	failingSince = f.failingSince
	f.mu.Unlock()
	if before == nil {
		close(f.probed)
	}
	if before == nil || text(before.Err()) != text(report.Err()) {
		select {
		case f.changed <- event.TypedGenericEvent[*berth.AcceleratorPool]{Object: &berth.AcceleratorPool{}}:
		default: // one event is waiting already
		}
	}
	return failingSince
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

// Unfenced is why nothing of one AcceleratorPool may be reserved; nil when its fence stands or it has none.
func (f *Fence) Unfenced(pool *berth.AcceleratorPool) *reason.Refusal {
	if pool.Spec.Fence == berth.FenceObserve {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.report != nil {
		if finding, tried := f.report.Fence(pool.Name); tried && finding.Verdict == policy.InForce {
			return nil
		}
	}
	return &reason.Refusal{Code: reason.NotFenced, Message: "the fence of AcceleratorPool " + pool.Name + " is not in force yet"}
}
