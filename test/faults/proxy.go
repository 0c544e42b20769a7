package faults

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Proxy is an HTTPS server on the loopback interface that forwards to an API server. Credentials in headers (tokens,
// impersonation) pass through; client certificates cannot. Watches are delivered event by event.
type Proxy struct {
	t      testing.TB
	url    string
	ca     []byte
	writes proxyLog
}

// proxyLog is what the proxy knows of writes.
type proxyLog struct {
	mu     sync.Mutex
	counts map[string]int
	seen   []Write
	holds  []*Hold
}

// Write is one write that came through a Proxy.
type Write struct {
	Site
	Group, Namespace, Name string
	UserAgent              string
	// Total numbers the writes through this proxy from 1, without Housekeeping.
	Total int
}

// Housekeeping reports whether a write is not part of what a controller is for: events, leases, and questions about
// access. Their number depends on time; Writes and holds pass over them.
func (w Write) Housekeeping() bool {
	switch w.Resource {
	case "events", "leases", "subjectaccessreviews", "selfsubjectaccessreviews", "tokenreviews":
		return true
	}
	return false
}

// NewProxy starts a proxy to the API server of cfg; it ends with the test. Of cfg it uses the address and how to trust
// it, never the credentials: who has none is anonymous to the API server.
func NewProxy(t testing.TB, cfg *rest.Config) *Proxy {
	t.Helper()
	trust := rest.AnonymousClientConfig(cfg)
	transport, err := rest.TransportFor(trust)
	if err != nil {
		t.Fatalf("proxy: %v", err)
	}
	base, _, err := rest.DefaultServerUrlFor(trust)
	if err != nil {
		t.Fatalf("proxy: %v", err)
	}
	p := &Proxy{t: t, writes: proxyLog{counts: map[string]int{}}}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(base)
		},
		Transport:     transport,
		FlushInterval: -1, // an event of a watch must not wait for the next
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if !errors.Is(err, context.Canceled) { // the end of a watch
				t.Logf("proxy: %s %s: %v", r.Method, r.URL.Path, err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	// TLS, although nobody listens in on the loopback interface: client-go takes no credentials from a kubeconfig whose
	// server is plain HTTP.
	server := httptest.NewUnstartedServer(p.handler(forward))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that are killed by the test
	server.StartTLS()
	p.url = server.URL
	p.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	t.Cleanup(func() {
		p.releaseAll()
		server.CloseClientConnections() // watches would not end by themselves
		server.Close()
	})
	return p
}

// URL is the address of the proxy, such as https://127.0.0.1:41234.
func (p *Proxy) URL() string { return p.url }

// Config returns a copy of cfg, credentials included, that goes through the proxy.
func (p *Proxy) Config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Host = p.url
	cfg.TLSClientConfig = rest.TLSClientConfig{CAData: p.ca}
	return cfg
}

// Writes returns the writes so far in the order they arrived, without Housekeeping. It includes those that are held.
func (p *Proxy) Writes() []Write {
	p.writes.mu.Lock()
	defer p.writes.mu.Unlock()
	return slices.Clone(p.writes.seen)
}

func (p *Proxy) handler(forward http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write, ok := writeOf(r)
		if !ok || write.Housekeeping() {
			forward.ServeHTTP(w, r)
			return
		}
		hold := p.count(&write)
		if hold == nil {
			forward.ServeHTTP(w, r)
			return
		}
		// The whole request must be here before its sender is stopped, and from now on it is on its way: that the sender
		// gives up does not call it back.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			p.t.Logf("proxy: reading %s: %v", write.Site, err)
			hold.fail(err)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		ctx, done := context.WithCancel(context.WithoutCancel(r.Context()))
		defer done()
		// It must be a context that can end: given one that cannot, ReverseProxy asks the connection instead.
		r = r.WithContext(ctx)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !hold.wait(write) {
			w.WriteHeader(http.StatusBadGateway)
			hold.finished(0)
			return
		}
		noting := &statusWriter{ResponseWriter: w}
		forward.ServeHTTP(noting, r)
		hold.finished(noting.status)
	})
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the reverse proxy flush.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// count registers a write and returns the hold that waits for it.
func (p *Proxy) count(write *Write) *Hold {
	p.writes.mu.Lock()
	defer p.writes.mu.Unlock()
	p.writes.counts[write.Class()]++
	write.N = p.writes.counts[write.Class()]
	write.Total = len(p.writes.seen) + 1
	p.writes.seen = append(p.writes.seen, *write)
	for i, hold := range p.writes.holds {
		if !hold.match(*write) {
			continue
		}
		if hold.left--; hold.left == 0 {
			p.writes.holds = slices.Delete(p.writes.holds, i, i+1)
			return hold
		}
	}
	return nil
}

func writeOf(r *http.Request) (Write, bool) {
	to := parsePath(r.URL.Path)
	verb := verbOf(r, to)
	if verb == "" || to.resource == "" {
		return Write{}, false
	}
	return Write{
		Site:  Site{Verb: verb, Resource: to.resource, Subresource: to.subresource},
		Group: to.group, Namespace: to.namespace, Name: to.name,
		UserAgent: r.UserAgent(),
	}, true
}
