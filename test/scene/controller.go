package scene

import (
	"context"
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
}

// Config is the default configuration without servers. A process that stops in order hands over at once, so the lease
// may be as long as it is for users, and a busy machine does not lose it.
func Config() configv1alpha1.BerthConfiguration {
	config := configv1alpha1.Default()
	config.Metrics.BindAddress, config.Health.BindAddress = "0", "0"
	config.LeaderElection.RetryPeriod = metav1.Duration{Duration: 200 * time.Millisecond}
	return config
}

// ShortLease is for a process that will die without giving up its lease: its successor waits for seconds only.
func ShortLease(config *configv1alpha1.BerthConfiguration) {
	config.LeaderElection.LeaseDuration = metav1.Duration{Duration: 3 * time.Second}
	config.LeaderElection.RenewDeadline = metav1.Duration{Duration: 2 * time.Second}
	config.LeaderElection.WriteTimeout = metav1.Duration{Duration: time.Second}
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

// Ended is closed when the controller has ended, by Stop or because it lost the lease.
func (c *Controller) Ended() <-chan struct{} { return c.ended }

// Stop ends the controller in order and returns what Run returned. It may be called again.
func (c *Controller) Stop() error {
	c.stop()
	err := <-c.done
	c.done <- err
	return err
}
