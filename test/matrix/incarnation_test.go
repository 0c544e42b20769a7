package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	"github.com/berth-dev/berth/pkg/controllers"
	"github.com/berth-dev/berth/pkg/observability"
	"github.com/berth-dev/berth/test/faults"
	"github.com/berth-dev/berth/test/scene"
)

// The times of the lease. They are near the shortest that leave a busy machine some slack.
const (
	leaseDuration = 5 * time.Second
	renewDeadline = 4 * time.Second
	retryPeriod   = 200 * time.Millisecond
	writeTimeout  = time.Second
)

// records are the kinds that a takeover waits for: a successor that lags in them does not lead yet. others are the rest
// of what Berth watches.
var (
	records = []string{"resourceclaims", "gangreservations", "workloads"}
	others  = []string{
		"jobs", "pods", "nodes", "resourceclaimtemplates", "resourceslices", "deviceclasses", "devicetaintrules",
		"admissionchecks", "resourceflavors", "clusterqueues", "acceleratorpools", "gangreservationconfigs",
	}
)

// incarnation is one process of Berth, in the test's own, with everything that can go wrong with it.
type incarnation struct {
	*scene.Controller
	wire           *faults.Wire
	records, other *faults.Lag
	health         string

	mu    sync.Mutex
	plans map[string]*faults.Plan // by namespace
}

// unhurried is for a process to which nothing happens: its writes are not made twice because the machine is busy.
func unhurried(c *configv1alpha1.BerthConfiguration) {
	c.LeaderElection.LeaseDuration = metav1.Duration{Duration: time.Minute}
	c.LeaderElection.RenewDeadline = metav1.Duration{Duration: 40 * time.Second}
	c.LeaderElection.WriteTimeout = metav1.Duration{Duration: 15 * time.Second}
}

// start starts a process and waits for nothing.
func (w *world) start(log *journal, change ...func(*configv1alpha1.BerthConfiguration)) *incarnation {
	t := w.t
	t.Helper()
	port, err := w.cluster.FreePort()
	must(t, err)
	in := &incarnation{
		wire: faults.NewWire(), records: faults.NewLag(), other: faults.NewLag(),
		health: fmt.Sprintf("127.0.0.1:%d", port), plans: map[string]*faults.Plan{},
	}
	in.Controller = scene.Start(t, w.cluster, scene.RunOptions{
		Configure: func(c *configv1alpha1.BerthConfiguration) {
			c.LeaderElection.LeaseDuration = metav1.Duration{Duration: leaseDuration}
			c.LeaderElection.RenewDeadline = metav1.Duration{Duration: renewDeadline}
			c.LeaderElection.RetryPeriod = metav1.Duration{Duration: retryPeriod}
			c.LeaderElection.WriteTimeout = metav1.Duration{Duration: writeTimeout}
			c.Health.BindAddress = in.health
			for _, f := range change {
				f(c)
			}
		},
		WrapClient: func(inner client.WithWatch) client.WithWatch { return faults.WrapEach(inner, in.planOf) },
		Change: func(o *controllers.Options) {
			o.REST.Wrap(in.other.Transport)
			o.REST.Wrap(in.records.Transport)
			o.REST.Wrap(in.wire.Transport)
			o.Logger = log.logger(t)
		},
	})
	return in
}

func (in *incarnation) planOf(namespace string) *faults.Plan {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.plans[namespace]
}

// plan says what happens to the writes of this process in one namespace.
func (in *incarnation) plan(namespace string, p *faults.Plan) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.plans[namespace] = p
}

// filled returns nil when the caches of the process are filled, whether it leads or not. Readiness alone does not say so
// of caches that are yet to be started.
func (in *incarnation) filled(ctx context.Context) error {
	if !in.other.Watched(others...) || !in.other.Watched(records...) {
		return errors.New("not everything is watched")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+in.health+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("readiness: %s", response.Status)
	}
	return nil
}

// dead reports whether the process was cut off, or has ended by itself.
func (in *incarnation) dead() bool {
	select {
	case <-in.Ended():
		return true
	default:
		return in.wire.IsCut()
	}
}

// leads returns nil when the process has taken over.
func (in *incarnation) leads(context.Context) error {
	select {
	case <-in.Leading():
		return nil
	default:
		return errors.New("it has not taken over")
	}
}

// holdsLease returns nil when the process has the lease, whether it has taken over or not.
func (in *incarnation) holdsLease(w *world) func(context.Context) error {
	return func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: "berth-system", Name: "berth-controller"}, lease); err != nil {
			return err
		}
		if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != in.Term() {
			return fmt.Errorf("the lease is held by %q", holder)
		}
		return nil
	}
}

// passes counts the passes over the line that all processes have made so far.
func passes() (uint64, error) {
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		return 0, err
	}
	for _, family := range families {
		if family.GetName() == "berth_pass_duration_seconds" {
			return family.GetMetric()[0].GetHistogram().GetSampleCount(), nil
		}
	}
	return 0, errors.New("passes are not counted")
}

// journal is what the processes log. It is kept only for failures.
type journal struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (j *journal) logger(t testing.TB) logr.Logger {
	t.Helper()
	l, err := observability.NewLogger(configv1alpha1.Logging{Level: "debug", Format: configv1alpha1.LogConsole}, j)
	must(t, err)
	return l
}

// Write is io.Writer.Write.
func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buffer.Write(line)
}

// cut returns what was logged since the last cut.
func (j *journal) cut() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := bytes.Clone(j.buffer.Bytes())
	j.buffer.Reset()
	return text
}
