package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/berth-dev/berth/pkg/cluster/leadership"
	"github.com/berth-dev/berth/pkg/controllers/shell"
	"github.com/berth-dev/berth/pkg/observability"
)

// component names the process in events and in the requests that it sends.
const component = "berth-controller"

// graceBeyondWrites is how long, after the last write of a stopping process must have ended, its controllers may take to
// return. Together with giving up the lease (at most renewDeadline) it fits into a pod's usual 30 s.
const graceBeyondWrites = 5 * time.Second

// Controller is one process: a candidate for leadership and, once elected, the allocator.
type Controller struct {
	manager  manager.Manager
	guard    *leadership.Guard
	takeover *leadership.Takeover
}

// New connects to the API server and puts everything together; nothing runs yet. Several can live in one process.
func New(o Options) (*Controller, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	metrics, err := observability.ProcessMetrics()
	if err != nil {
		return nil, err
	}
	guard, lock, err := elect(o)
	if err != nil {
		return nil, err
	}

	connection := limited(o)
	var counted client.WithWatch
	options := manager.Options{
		Scheme: scheme,
		Logger: o.Logger,
		Cache:  cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: trimmed()},
		NewClient: func(connection *rest.Config, options client.Options) (client.Client, error) {
			c, err := writeClient(o, connection, options)
			if err != nil {
				return nil, err
			}
			counted = metrics.CountWrites(c)
			return guard.Client(counted), nil
		},
		Metrics:                metricsserver.Options{BindAddress: o.Config.Metrics.BindAddress},
		HealthProbeBindAddress: o.Config.Health.BindAddress,
		Controller: config.Controller{
			// Names are unique in a process that runs one Controller; tests run several.
			SkipNameValidation: ptr.To(true),
			// A stand-by keeps its caches filled, so that a takeover does not begin with a list of every pod.
			EnableWarmup: ptr.To(true),
		},
		GracefulShutdownTimeout: ptr.To(o.Config.LeaderElection.WriteTimeout.Duration + graceBeyondWrites),
	}
	if lock != nil {
		options.LeaderElection = true
		options.LeaderElectionID = o.Config.LeaderElection.Name
		options.LeaderElectionResourceLockInterface = lock
		options.LeaseDuration = &o.Config.LeaderElection.LeaseDuration.Duration
		options.RenewDeadline = &o.Config.LeaderElection.RenewDeadline.Duration
		options.RetryPeriod = &o.Config.LeaderElection.RetryPeriod.Duration
		// The lock refuses to release while a write could still take effect.
		options.LeaderElectionReleaseOnCancel = true
	}
	mgr, err := manager.New(connection, options)
	if err != nil {
		return nil, fmt.Errorf("building the manager: %w", err)
	}

	takeover := leadership.NewTakeover(guard, counted, mgr.GetAPIReader(), mgr.GetCache(), o.Logger)
	if err := mgr.Add(takeover); err != nil {
		return nil, err
	}
	if err := addProbes(mgr); err != nil {
		return nil, err
	}
	dependencies := &shell.Dependencies{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Ready:    takeover.Wait,
		Config:   o.Config,
		Recorder: mgr.GetEventRecorder(component),
		Metrics:  metrics,
		Log:      o.Logger,
		Now:      time.Now,
		Term:     guard.Term(),
	}
	add := []Setup{setup}
	if o.Setups != nil {
		add = o.Setups
	}
	for _, add := range add {
		if err := add(mgr, dependencies); err != nil {
			return nil, err
		}
	}
	return &Controller{manager: mgr, guard: guard, takeover: takeover}, nil
}

// Run runs until ctx ends, and then returns nil after everything has stopped. The lease is given up then, unless a write may
// still take effect: then it runs out. It returns an error when the lease is lost or something cannot go on; the process must
// then exit, and the Controller cannot be run again.
func (c *Controller) Run(ctx context.Context) error {
	return c.manager.Start(ctx)
}

// Leading is closed when this process has been elected and has taken over.
func (c *Controller) Leading() <-chan struct{} { return c.takeover.Done() }

// Term names this process's leadership; it stands in the Lease and in AnnotationLeader.
func (c *Controller) Term() string { return c.guard.Term() }

// limited is how everything but the lease reaches the API server: one limit for the whole process, where
// controller-runtime would give every kind of object its own.
func limited(o Options) *rest.Config {
	connection := rest.CopyConfig(o.REST)
	connection.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(o.Config.ClientConnection.QPS, int(o.Config.ClientConnection.Burst))
	connection.Timeout = 0
	if connection.UserAgent == "" {
		connection.UserAgent = component
	}
	return connection
}

// writeClient has a connection of its own, because its time-out is told to the API server as well: a write that the
// guard has given up must not lie in the server's queue for longer. Watches and long lists cannot have a time-out.
func writeClient(o Options, connection *rest.Config, options client.Options) (client.WithWatch, error) {
	connection = rest.CopyConfig(connection)
	connection.Timeout = o.Config.LeaderElection.WriteTimeout.Duration
	http, err := rest.HTTPClientFor(connection)
	if err != nil {
		return nil, err
	}
	options.HTTPClient = http
	options.FieldOwner = component
	c, err := client.NewWithWatch(connection, options)
	if err != nil {
		return nil, err
	}
	if o.WrapClient != nil {
		c = o.WrapClient(c)
	}
	return c, nil
}
