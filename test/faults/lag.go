package faults

import (
	"io"
	"net/http"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
)

// Lag delays what watches deliver, so that caches fed by them fall behind. Other reads are not delayed: a controller
// that asks the API server itself gets the truth.
//
//	lag := faults.NewLag()
//	cfg.Wrap(lag.Transport)     // before the controller's manager or cache is made from cfg
//	lag.Hold("resourceclaims")
//	…
//	lag.Release()
//
// Many configurations may share one Lag. It may be used from any goroutine.
type Lag struct {
	mu        sync.Mutex
	all       bool
	resources []string
	watched   map[string]bool
	changed   chan struct{} // closed when the next Hold or Release happens
}

// NewLag returns a Lag that holds nothing.
func NewLag() *Lag { return &Lag{watched: map[string]bool{}, changed: make(chan struct{})} }

// Hold stops the watches of the given resources (plurals), or all if none is named: running ones deliver nothing more
// and new ones nothing at all. It adds to what is already held.
func (l *Lag) Hold(resources ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = l.all || len(resources) == 0
	l.resources = append(l.resources, resources...)
	l.announce()
}

// Release lets all watches deliver what they have kept, in order.
func (l *Lag) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all, l.resources = false, nil
	l.announce()
}

// Watched reports whether a watch of each of the resources was ever begun. A cache fills itself from its watch: one that
// is held before that stays empty.
func (l *Lag) Watched(resources ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.ContainsFunc(resources, func(resource string) bool { return !l.watched[resource] })
}

func (l *Lag) begun(resource string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched[resource] = true
}

func (l *Lag) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// held reports whether the watches of resource are held, and a channel that is closed when that may change.
func (l *Lag) held(resource string) (bool, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all || slices.Contains(l.resources, resource), l.changed
}

// Transport wraps next; it has the form that rest.Config.Wrap wants.
func (l *Lag) Transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil || !isWatch(request) || response.StatusCode != http.StatusOK {
			return response, err
		}
		resource := parsePath(request.URL.Path).resource
		l.begun(resource)
		response.Body = &laggingBody{
			ReadCloser: response.Body,
			lag:        l,
			resource:   resource,
			done:       request.Context().Done(),
			closed:     make(chan struct{}),
		}
		return response, nil
	})
}

// Config returns a copy of cfg whose watches obey l.
func (l *Lag) Config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(l.Transport)
	return cfg
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func isWatch(r *http.Request) bool {
	switch r.URL.Query().Get("watch") {
	case "", "0", "false":
		return false
	}
	return r.Method == http.MethodGet
}

// laggingBody is the body of a watch. The check comes after the read: a read that was already waiting for an event when
// the hold began must not deliver it.
type laggingBody struct {
	io.ReadCloser
	lag      *Lag
	resource string
	done     <-chan struct{} // of the request
	closed   chan struct{}
	once     sync.Once
}

func (b *laggingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for {
		held, changed := b.lag.held(b.resource)
		if !held {
			return n, err
		}
		select {
		case <-changed:
		case <-b.closed:
			return 0, io.ErrClosedPipe
		case <-b.done:
			return 0, io.ErrUnexpectedEOF
		}
	}
}

func (b *laggingBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}
