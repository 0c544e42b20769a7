package faults

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// ErrCut is the answer to every request over a Wire that was cut.
var ErrCut = errors.New("injected fault: the wire is cut")

// Wire is how a process reaches the API server. When it is cut, the rest of the world sees what it sees of a process
// that died: no write, no renewal of a lease, no orderly end. Cutting is for good. It may be used from any goroutine.
type Wire struct {
	once sync.Once
	cut  chan struct{}
}

// NewWire returns a Wire that is whole.
func NewWire() *Wire { return &Wire{cut: make(chan struct{})} }

// Cut ends everything on the wire. A request that is under way may or may not take effect; its sender does not learn it.
func (w *Wire) Cut() { w.once.Do(func() { close(w.cut) }) }

// IsCut reports whether the wire was cut.
func (w *Wire) IsCut() bool {
	select {
	case <-w.cut:
		return true
	default:
		return false
	}
}

// Transport wraps next; it has the form that rest.Config.Wrap wants.
func (w *Wire) Transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if w.IsCut() {
			return nil, ErrCut
		}
		response, err := next.RoundTrip(request)
		if w.IsCut() {
			if err == nil {
				_ = response.Body.Close()
			}
			return nil, ErrCut
		}
		if err != nil {
			return nil, err
		}
		body := &cutBody{ReadCloser: response.Body, cut: w.cut, closed: make(chan struct{})}
		go body.watch()
		response.Body = body
		return response, nil
	})
}

// Config returns a copy of cfg that goes over the wire.
func (w *Wire) Config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(w.Transport)
	return cfg
}

// cutBody ends with the wire, so that a watch does not outlive it.
type cutBody struct {
	io.ReadCloser
	cut    <-chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (b *cutBody) watch() {
	select {
	case <-b.cut:
		_ = b.ReadCloser.Close()
	case <-b.closed:
	}
}

func (b *cutBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	select {
	case <-b.cut:
		return 0, ErrCut
	default:
		return n, err
	}
}

func (b *cutBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}
