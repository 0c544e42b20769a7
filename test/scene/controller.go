package scene

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers"
	"github.com/berth-dev/berth/test/cluster"
)

// Controller is Berth running in the test's own process, under its own ServiceAccount.
type Controller struct {
	*controllers.Controller
	stop  context.CancelFunc
	done  chan error
	ended chan struct{}
	// stopped: the test wanted the end.
	stopped atomic.Bool
}

// ErrEnded is why a condition is no longer awaited: nobody is left to bring it about.
var ErrEnded = errors.New("the controller has ended")

// Config is the default configuration without servers. A process that stops in order hands over at once, so the lease
// may be long, and a busy machine does not lose it.
func Config() configv1alpha1.BerthConfiguration {
	config := configv1alpha1.Default()
	config.Metrics.BindAddress, config.Health.BindAddress = "0", "0"
	config.LeaderElection.LeaseDuration = metav1.Duration{Duration: 30 * time.Second}
	config.LeaderElection.RenewDeadline = metav1.Duration{Duration: 20 * time.Second}
	config.LeaderElection.RetryPeriod = metav1.Duration{Duration: time.Second}
	return config
}

// ShortWrites is for a process that will be stopped after writes without an answer: it gives up its lease when none of them
// can take effect any more, which is after twice the time that one may take.
func ShortWrites(config *configv1alpha1.BerthConfiguration) {
	config.LeaderElection.WriteTimeout = metav1.Duration{Duration: 2 * time.Second}
}

// RunOptions change how a controller runs.
type RunOptions struct {
	Configure  func(*configv1alpha1.BerthConfiguration)
	WrapClient func(client.WithWatch) client.WithWatch
	Change     func(*controllers.Options)
}

// Run starts a controller and waits until it leads. It is stopped at the end of the test.
func (s *Scene) Run(opts ...RunOptions) *Controller {
	s.Helper()
	c := Start(s.TB, s.Cluster, opts...)
	s.running = append(s.running, c)
	select {
	case <-c.Leading():
	case err := <-c.done:
		c.done <- err
		s.Fatalf("the controller ended before it led: %v", err)
	case <-time.After(Patience):
		s.Fatal("the controller does not come to lead")
	}
	return c
}

// Start starts a controller without waiting for anything.
func Start(t testing.TB, c *cluster.Cluster, opts ...RunOptions) *Controller {
	t.Helper()
	rest, err := c.ServiceAccountConfig(t.Context(), "berth-system", "berth-controller")
	if err != nil {
		t.Fatalf("connecting as Berth: %v", err)
	}
	o := controllers.Options{REST: rest, Config: Config(), Identity: "test", Logger: Logger(t)}
	for _, opt := range opts {
		if opt.Configure != nil {
			opt.Configure(&o.Config)
		}
		if opt.WrapClient != nil {
			o.WrapClient = opt.WrapClient
		}
		if opt.Change != nil {
			opt.Change(&o)
		}
	}
	b, err := controllers.New(o)
	if err != nil {
		t.Fatalf("building the controller: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	running := &Controller{Controller: b, stop: stop, done: make(chan error, 1), ended: make(chan struct{})}
	go func() {
		running.done <- b.Run(ctx)
		close(running.ended)
	}()
	t.Cleanup(func() { _ = running.Stop() })
	return running
}

// fallen is the first controller of Run that ended although nobody stopped it, as one does that loses its lease.
func (s *Scene) fallen() error {
	for _, c := range s.running {
		select {
		case <-c.ended:
		default:
			continue
		}
		if !c.stopped.Load() {
			err := <-c.done
			c.done <- err
			return fmt.Errorf("%w: %v", ErrEnded, err) //nolint:errorlint // what it died of is for people only
		}
	}
	return nil
}

// Ended is closed when the controller has ended, by Stop or because it lost the lease.
func (c *Controller) Ended() <-chan struct{} { return c.ended }

// Stop ends the controller in order and returns what Run returned. It may be called again.
func (c *Controller) Stop() error {
	c.stopped.Store(true)
	c.stop()
	err := <-c.done
	c.done <- err
	return err
}
