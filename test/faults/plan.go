package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Kind is when a fault strikes.
type Kind int

const (
	// Before: the write is not sent, the caller gets an error.
	Before Kind = iota
	// NoResponse: the write is sent and answered, but the caller gets an error like that of a time-out and its object
	// stays as it was.
	NoResponse
	// After: the write passes and the caller gets its answer.
	After
	// Late: the hook runs first, then the write is sent and answered as usual. A hook that waits for a successor to take
	// over makes this the write of a leader that does not know yet.
	Late
)

func (k Kind) String() string {
	switch k {
	case Before:
		return "before"
	case NoResponse:
		return "no response"
	case After:
		return "after"
	case Late:
		return "late"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Errors of a wrapped client. They are wrapped: use errors.Is.
var (
	// ErrInjected is the answer to a write that a fault kept from being sent.
	ErrInjected = errors.New("injected fault: not sent")
	// ErrFrozen is the answer to every write after a fault has fired.
	ErrFrozen = errors.New("injected fault: this process is supposed to be dead")
	// ErrNoResponse is the answer to a write that was sent. It is also a context.DeadlineExceeded and a net.Error with
	// Timeout() true, which is what a real time-out of the HTTP client is.
	ErrNoResponse error = noResponse{}
)

type noResponse struct{}

var _ net.Error = noResponse{}

func (noResponse) Error() string   { return "injected fault: no response within the time-out" }
func (noResponse) Timeout() bool   { return true }
func (noResponse) Temporary() bool { return true }
func (noResponse) Unwrap() error   { return context.DeadlineExceeded }

// Fault is what happens at one site.
type Fault struct {
	At   Site
	Kind Kind
	// Hook, if set, runs once in the goroutine of the write: for Before and Late instead of or before sending, for
	// NoResponse and After once the API server has answered. It may cancel the controller's context, write with another
	// client, or wait.
	Hook func()
	// Err replaces the default error of Before and NoResponse, for instance a conflict.
	Err error
	// Transient leaves the client usable afterwards: the API server had a bad moment, the process lives on.
	Transient bool
}

// Plan decides over the writes of one incarnation of a process. The zero value only records. All methods may be called
// from any goroutine.
type Plan struct {
	mu       sync.Mutex
	faults   []Fault
	counts   map[string]int
	recorded []Site
	frozen   bool
	fired    []Site
	late     bool
	waiting  []chan struct{} // closed at the first firing
}

// NewPlan returns a plan with faults. Each fires at most once.
func NewPlan(faults ...Fault) *Plan { return &Plan{faults: slices.Clone(faults)} }

// Record returns the sites of all writes so far in the order they were made. It includes the one a fault struck, but no
// write that was refused because the client was frozen.
func (p *Plan) Record() []Site {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.recorded)
}

// Late reports whether a write was not answered in time, without a fault: it may be made again, so that the record has
// writes that other runs need not have.
func (p *Plan) Late() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late
}

// answered notes an answer that no fault has changed.
func (p *Plan) answered(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.late = true
	}
	return err
}

// Fired returns a channel that is closed when the first fault strikes, before its hook runs.
func (p *Plan) Fired() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := make(chan struct{})
	if len(p.fired) > 0 {
		close(c)
	} else {
		p.waiting = append(p.waiting, c)
	}
	return c
}

// FiredAt returns the sites at which faults have struck.
func (p *Plan) FiredAt() []Site {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.fired)
}

// Frozen reports whether writes are being refused.
func (p *Plan) Frozen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen
}

// Freeze refuses all writes from now on, as if a fault had fired.
func (p *Plan) Freeze() { p.setFrozen(true) }

// Release lets writes through again. A restarted controller is better given a plan and a client of its own, because
// goroutines of the old one may still be about to write.
func (p *Plan) Release() { p.setFrozen(false) }

func (p *Plan) setFrozen(frozen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = frozen
}

// enter counts a write and returns the fault that strikes it, if any.
func (p *Plan) enter(site Site) (Site, *Fault, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen {
		return site, nil, fmt.Errorf("%s: %w", site.Class(), ErrFrozen)
	}
	if p.counts == nil {
		p.counts = map[string]int{}
	}
	p.counts[site.Class()]++
	site.N = p.counts[site.Class()]
	p.recorded = append(p.recorded, site)
	index := slices.IndexFunc(p.faults, func(f Fault) bool { return f.At == site })
	if index < 0 {
		return site, nil, nil
	}
	fault := p.faults[index]
	p.faults = slices.Delete(p.faults, index, index+1)
	// From here on, not from the end of the write: what other goroutines of a dying process write meanwhile would make
	// the run depend on luck.
	p.frozen = !fault.Transient
	p.fired = append(p.fired, site)
	for _, c := range p.waiting {
		close(c)
	}
	p.waiting = nil
	return site, &fault, nil
}

// write runs one write under the plan. send gets whether the caller may see the answer in its object.
func (p *Plan) write(site Site, send func(visible bool) error) error {
	site, fault, err := p.enter(site)
	if err != nil {
		return err
	}
	if fault == nil {
		return p.answered(send(true))
	}
	hook := fault.Hook
	if hook == nil {
		hook = func() {}
	}
	switch fault.Kind {
	case Before:
		hook()
		return fmt.Errorf("%s: %w", site, orDefault(fault.Err, ErrInjected))
	case NoResponse:
		_ = send(false) // whatever the API server said is lost
		hook()
		return fmt.Errorf("%s: %w", site, orDefault(fault.Err, ErrNoResponse))
	case Late:
		hook()
		return send(true)
	default:
		err := send(true)
		hook()
		return err
	}
}

func orDefault(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
