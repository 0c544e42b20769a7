package invariants

import (
	"context"
	goslices "slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// calm is how long a suspicion rests before it costs lists: most are a watch a few milliseconds behind.
	calm = 250 * time.Millisecond
	// patience is how long what looks innocent may wait for a suspicion to pay for the lists: short against keepFor.
	patience = 10 * time.Second
	// settleLimit bounds one quorum read.
	settleLimit = time.Minute
	// moreBreaches are logged after the first, which alone fails the test.
	moreBreaches = 5
)

// Watcher judges a cluster. All exported methods may be called from any goroutine.
type Watcher struct {
	t       testing.TB
	client  client.WithWatch
	options options
	started time.Time
	cancel  context.CancelFunc
	running sync.WaitGroup
	stop    sync.Once

	confirming sync.Mutex    // one confirmation at a time
	suspected  chan struct{} // has an element while suspicions wait

	mu       sync.Mutex
	objects  [kinds]map[types.NamespacedName]history
	changed  chan struct{} // closed at the next event
	forgot   time.Time     // when forget last ran
	memory   memory
	recalled map[moment]client.Object // nil: there was none
	queue    []suspicion              // they look like breaches
	innocent []suspicion              // they do not, so far
	breaches []*Breach
	breached chan struct{}
}

// suspicion is a judgement that is to be made again when more is known. Once settled is true, what the watcher does not
// know does not exist.
type suspicion func(settled bool) *Breach

// Option changes how Watch judges.
type Option func(*options)

type options struct {
	auditLog   string
	traceGrace time.Duration
	without    []int
}

// WithAuditLog names the API server's audit log (JSON lines of audit.k8s.io/v1 events, at least at level Metadata), so
// that a breach can be put down to a user and not only to a field manager.
func WithAuditLog(path string) Option { return func(o *options) { o.auditLog = path } }

// WithTraceGrace sets how long after a Workload and its last pod Berth may take to leave no trace (invariant 7) before
// Stop calls it a breach; default 30 s. AwaitNoTrace takes its limit from its context.
func WithTraceGrace(d time.Duration) Option { return func(o *options) { o.traceGrace = d } }

// Without switches invariants off, for a test that breaks them itself.
func Without(invariants ...int) Option {
	return func(o *options) { o.without = append(o.without, invariants...) }
}

// Watch starts to judge the cluster of cfg and returns when it has seen what there is. It needs get, list and watch on
// ResourceClaims, ResourceSlices, Pods, Nodes, and Kueue's and Berth's kinds; kinds that are not installed are awaited
// in the background. Start it after the cluster and before the controllers: it stops in t.Cleanup, so after those that
// were started later, and ends with a judgement of everything that was written.
func Watch(t testing.TB, cfg *rest.Config, opts ...Option) *Watcher {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatalf("invariants: %v", err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // it must keep up with everybody else together
	cfg.UserAgent = "berth-invariants"
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatalf("invariants: %v", err)
	}
	w := &Watcher{
		t: t, client: c, started: time.Now(),
		options:   options{traceGrace: 30 * time.Second},
		suspected: make(chan struct{}, 1),
		changed:   make(chan struct{}),
		breached:  make(chan struct{}),
		memory:    newMemory(),
		recalled:  map[moment]client.Object{},
	}
	for _, opt := range opts {
		opt(&w.options)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	var synced sync.WaitGroup
	for k := range kind(kinds) {
		w.objects[k] = map[types.NamespacedName]history{}
		synced.Add(1)
		w.running.Go(func() { w.follow(ctx, k, sync.OnceFunc(synced.Done)) })
	}
	w.running.Go(func() { w.confirmLoop(ctx) })
	t.Cleanup(w.Stop)
	all := make(chan struct{})
	go func() { defer close(all); synced.Wait() }()
	select {
	case <-all:
	case <-time.After(settleLimit):
		t.Fatalf("invariants: the API server did not answer within %s", settleLimit)
	}
	return w
}

// Breached returns a channel that is closed at the first breach.
func (w *Watcher) Breached() <-chan struct{} { return w.breached }

// Err returns the first breach, a *Breach, or nil.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.breaches) == 0 {
		return nil
	}
	return w.breaches[0]
}

// Settle returns when everything that was written before the call has been judged, so that Err is final for it.
func (w *Watcher) Settle(ctx context.Context) error {
	if err := w.settle(ctx); err != nil {
		return err
	}
	return w.confirm(ctx)
}

// Stop judges what is left, checks invariant 7 for Workloads that are gone, and ends the watches. A second call does
// nothing.
func (w *Watcher) Stop() {
	w.t.Helper()
	w.stop.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
		defer cancel()
		if err := w.Settle(ctx); err != nil {
			w.t.Errorf("invariants: the end of the test could not be judged: %v", err)
		} else if err := w.judgeTraces(ctx); err != nil {
			w.t.Errorf("invariants: traces could not be looked for: %v", err)
		}
		w.cancel()
		w.running.Wait()
	})
}

// suspect judges now, with what is known, and queues what looks like a breach. It is for a rule that the events of every
// kind that matters to it apply again. The caller holds mu.
func (w *Watcher) suspect(judge suspicion) {
	if judge(false) != nil {
		w.enqueue(judge)
	}
}

// judgeTwice is for a rule that one event alone applies: what looks innocent is judged again when the watches of the other
// kinds have come as far. The caller holds mu.
func (w *Watcher) judgeTwice(judge suspicion) {
	if judge(false) != nil {
		w.enqueue(judge)
	} else {
		w.innocent = append(w.innocent, judge)
	}
}

// proven queues a breach that needs no confirmation. The caller holds mu.
func (w *Watcher) proven(b *Breach) {
	if b != nil {
		w.enqueue(func(bool) *Breach { return b })
	}
}

func (w *Watcher) enqueue(judge suspicion) {
	w.queue = append(w.queue, judge)
	select {
	case w.suspected <- struct{}{}:
	default:
	}
}

func (w *Watcher) confirmLoop(ctx context.Context) {
	impatient := time.NewTicker(patience)
	defer impatient.Stop()
	for {
		due := false
		select {
		case <-ctx.Done():
			return
		case <-w.suspected:
		case <-impatient.C:
			due = true
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(calm):
		}
		w.mu.Lock()
		queue := w.queue
		w.queue = nil
		for _, judge := range queue {
			w.judgeTwice(judge)
		}
		due = due || len(w.queue) > 0
		w.mu.Unlock()
		if !due {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, settleLimit)
		if err := w.confirm(limited); err != nil && ctx.Err() == nil {
			w.t.Logf("invariants: a suspicion could not be confirmed, trying again: %v", err)
		}
		cancel()
	}
}

// confirm reads from quorum and judges once more, for good, what is queued and what looked innocent. On an error the rest
// stays queued.
func (w *Watcher) confirm(ctx context.Context) error {
	w.confirming.Lock()
	defer w.confirming.Unlock()
	w.mu.Lock()
	batch := goslices.Concat(w.queue, w.innocent)
	w.queue, w.innocent = nil, nil
	w.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	err := w.settle(ctx)
	for len(batch) > 0 && err == nil {
		var b *Breach
		if b, err = w.judged(ctx, batch[0]); err == nil {
			batch = batch[1:]
		}
		if b != nil {
			w.report(b)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, judge := range batch {
		w.enqueue(judge)
	}
	return err
}

// report fails the test with the first breach and logs a few more: mostly they follow from it.
func (w *Watcher) report(b *Breach) {
	if goslices.Contains(w.options.without, b.Invariant) {
		return
	}
	w.attribute(b)
	w.mu.Lock()
	w.breaches = append(w.breaches, b)
	n := len(w.breaches)
	if n == 1 {
		close(w.breached)
	}
	w.mu.Unlock()
	switch {
	case n == 1:
		w.t.Errorf("%v", b)
	case n <= 1+moreBreaches:
		w.t.Logf("a further breach, perhaps a consequence of the first: %v", b)
	}
}
