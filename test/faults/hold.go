package faults

import (
	"fmt"
	"sync"
)

// Hold keeps one write at a Proxy. All methods may be called from any goroutine.
type Hold struct {
	match func(Write) bool
	left  int // matching writes until it is the one; guarded by the proxy
	pid   int // of the process to stop; 0 for none

	reached chan struct{} // closed when the write is here and the process stopped
	decided chan struct{} // closed by Release or Drop
	done    chan struct{} // closed when the write was answered

	mu      sync.Mutex
	arrived bool
	write   Write
	forward bool
	settled bool
	stopped bool
	status  int
	err     error
}

// HoldNth keeps the n-th write (from 1) that comes through the proxy from now on and matches; nil matches all but
// Housekeeping, which is never held. If pid is not 0 that process, which must be one the test itself has started, is
// stopped with SIGSTOP once the write is complete at the proxy. The end of the test releases what is still held.
func (p *Proxy) HoldNth(n, pid int, match func(Write) bool) *Hold {
	if match == nil {
		match = func(Write) bool { return true }
	}
	hold := &Hold{
		match: match, left: max(n, 1), pid: pid,
		reached: make(chan struct{}), decided: make(chan struct{}), done: make(chan struct{}),
	}
	p.writes.mu.Lock()
	defer p.writes.mu.Unlock()
	p.writes.holds = append(p.writes.holds, hold)
	p.t.Cleanup(hold.Release)
	return hold
}

// Reached returns a channel that is closed when the write is held and the process is stopped, or when that failed; see
// Err.
func (h *Hold) Reached() <-chan struct{} { return h.reached }

// Done returns a channel that is closed when the write was forwarded and answered, or dropped.
func (h *Hold) Done() <-chan struct{} { return h.done }

// Write returns the write that is held; empty before Reached.
func (h *Hold) Write() Write {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.write
}

// Status is the HTTP status that the API server answered the write with; 0 before Done and for a write that was dropped.
func (h *Hold) Status() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status
}

// Err returns why the write could not be held or the process not be stopped or continued.
func (h *Hold) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Release forwards the write and continues the process. The write is forwarded even if its sender no longer waits for
// the answer. A hold that was not reached is without effect from now on.
func (h *Hold) Release() { h.settle(true) }

// Drop answers the write with 502 Bad Gateway without forwarding it, and continues the process.
func (h *Hold) Drop() { h.settle(false) }

func (h *Hold) settle(forward bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.settled {
		return
	}
	h.settled, h.forward = true, forward || !h.arrived
	close(h.decided)
	if h.stopped {
		h.stopped = false
		if err := thaw(h.pid); err != nil {
			h.err = fmt.Errorf("continuing process %d: %w", h.pid, err)
		}
	}
}

// wait stops the process, waits for the decision and reports whether to forward.
func (h *Hold) wait(write Write) bool {
	h.mu.Lock()
	h.write, h.arrived = write, true
	if h.pid != 0 && !h.settled {
		if err := freeze(h.pid); err != nil {
			h.err = fmt.Errorf("stopping process %d: %w", h.pid, err)
		} else {
			h.stopped = true
		}
	}
	close(h.reached)
	h.mu.Unlock()

	<-h.decided
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.forward
}

// fail ends a hold whose write never arrived in full.
func (h *Hold) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	close(h.reached)
	close(h.done)
}

func (h *Hold) finished(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status = status
	close(h.done)
}

func (p *Proxy) releaseAll() {
	p.writes.mu.Lock()
	holds := p.writes.holds
	p.writes.holds = nil
	p.writes.mu.Unlock()
	for _, hold := range holds {
		hold.Release()
	}
}
