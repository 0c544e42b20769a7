package observability

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Metrics are the numbers of one process. All methods are safe for concurrent use.
type Metrics struct {
	passes       prometheus.Histogram
	waiting      *counts
	reservations *counts
	writes       *prometheus.CounterVec
	breaches     prometheus.Counter
	shares       *counts
	targets      *counts
	quotas       *prometheus.CounterVec
}

// NewMetrics registers a new set.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		passes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "berth_pass_duration_seconds",
			Help: "Time of one pass over the line, without the API writes that follow it.",
			// From a pass that changes nothing to one over thousands of gangs: 10 µs to 5 s.
			Buckets: []float64{.00001, .00005, .0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5},
		}),
		waiting: newCounts("berth_gangs_waiting",
			"Gangs that wait for devices, by the reason that their Workload shows.", "reason"),
		reservations: newCounts("berth_reservations",
			"GangReservations by phase.", "phase"),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_api_writes_total",
			Help: "Writes sent to the API server by verb, resource (with subresource) and result: OK, the reason of the refusal, Unanswered, or Other for a reason that only some plug-in has.",
		}, []string{"verb", "resource", "result"}),
		breaches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_ledger_breaches_total",
			Help: "Times that the ledger, which is kept up, was found not to say what the objects say, and was built anew. Any is a bug.",
		}),
		shares: newCounts("berth_fold_shares",
			"The number that a CapacityFold's targets divide among them.", "fold"),
		targets: newCounts("berth_fold_targets",
			"Targets of CapacityFolds by state: all but Following do not hold the number that they should.", "state"),
		quotas: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_fold_quota_writes_total",
			Help: "Quotas that were written for CapacityFolds, by the kind of their target.",
		}, []string{"kind"}),
	}
	for _, c := range []prometheus.Collector{m.passes, m.waiting, m.reservations, m.writes, m.breaches, m.shares, m.targets, m.quotas} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// ProcessMetrics are served by controller-runtime's metrics endpoint. There is one set however many controllers a
// process runs, because the endpoint's registry is global.
var ProcessMetrics = sync.OnceValues(func() (*Metrics, error) { return NewMetrics(ctrlmetrics.Registry) })

// ObservePass notes how long a pass over the line took.
func (m *Metrics) ObservePass(took time.Duration) { m.passes.Observe(took.Seconds()) }

// SetWaiting replaces how many gangs wait, by reason. A reason that is left out is no longer reported.
func (m *Metrics) SetWaiting(byReason map[string]int) { m.waiting.set(byReason) }

// SetReservations replaces how many reservations there are, by phase.
func (m *Metrics) SetReservations(byPhase map[string]int) { m.reservations.set(byPhase) }

// LedgerBreached notes that the ledger had to be built anew.
func (m *Metrics) LedgerBreached() { m.breaches.Inc() }

// SetFolds replaces the number of each CapacityFold, and how many targets of all of them are in each state.
func (m *Metrics) SetFolds(shares, targetsByState map[string]int) {
	m.shares.set(shares)
	m.targets.set(targetsByState)
}

// QuotaWritten notes that a quota was written into a target of the kind.
func (m *Metrics) QuotaWritten(kind string) { m.quotas.WithLabelValues(kind).Inc() }

// counts is a gauge with one label whose values change together: a scrape never sees half of a change, as it would
// between Reset and Set of a GaugeVec.
type counts struct {
	desc *prometheus.Desc

	mu     sync.Mutex
	values map[string]int
}

func newCounts(name, help, label string) *counts {
	return &counts{desc: prometheus.NewDesc(name, help, []string{label}, nil)}
}

func (c *counts) set(values map[string]int) {
	values = maps.Clone(values)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values = values
}

func (c *counts) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

func (c *counts) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	values := c.values // replaced, never changed
	c.mu.Unlock()
	for label, n := range values {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(n), label)
	}
}
