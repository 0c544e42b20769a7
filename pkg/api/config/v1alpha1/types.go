package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The type meta that a configuration file must carry.
const (
	APIVersion = "config.berth.dev/v1alpha1"
	Kind       = "BerthConfiguration"
)

// BerthConfiguration configures berth-controller. Use Default for the defaults: the zero value is not valid.
type BerthConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// leaderElection says how replicas agree on the one that allocates.
	LeaderElection LeaderElection `json:"leaderElection"`
	// clientConnection limits the requests to the API server.
	ClientConnection ClientConnection `json:"clientConnection"`
	// health is the endpoint of the liveness (/healthz) and readiness (/readyz) probes.
	Health Endpoint `json:"health"`
	// metrics is the endpoint of the Prometheus metrics (/metrics).
	Metrics Endpoint `json:"metrics"`
	// logging says what is logged and how.
	Logging Logging `json:"logging"`
	// seating is about gangs whose pods do not all appear.
	Seating Seating `json:"seating"`
	// reservation is about carrying out decisions.
	Reservation Reservation `json:"reservation"`
	// concurrency is how many objects are worked on at once.
	Concurrency Concurrency `json:"concurrency"`
}

// LeaderElection says how replicas agree on the one that allocates.
type LeaderElection struct {
	// enabled: turn it off only where nothing can ever start a second process, for example in a test. Default: true.
	Enabled bool `json:"enabled"`
	// namespace of the Lease. Default: the namespace that the process runs in, or berth-system outside a cluster.
	Namespace string `json:"namespace"`
	// name of the Lease. Default: berth-controller.
	Name string `json:"name"`
	// leaseDuration is how long a silent leader keeps the lease. Whole seconds, because a Lease counts in seconds; at
	// least renewDeadline + writeTimeout. Default: 15s.
	LeaseDuration metav1.Duration `json:"leaseDuration"`
	// renewDeadline is how long a leader tries to renew before it gives up and exits. Default: 10s.
	RenewDeadline metav1.Duration `json:"renewDeadline"`
	// retryPeriod is the pause between attempts to acquire or renew. renewDeadline must exceed it by more than a fifth,
	// for jitter. Default: 2s.
	RetryPeriod metav1.Duration `json:"retryPeriod"`
	// writeTimeout is how long one write may take, on the client and on the API server. A new leader waits this long
	// after the old lease has expired, so give all replicas the same value. Default: 5s.
	WriteTimeout metav1.Duration `json:"writeTimeout"`
}

// ClientConnection limits the requests of the process to the API server. Lease renewals are not counted.
type ClientConnection struct {
	// qps is how many requests are sent in a second on average. Default: 200.
	QPS float32 `json:"qps"`
	// burst is how many requests may be sent at once. Default: 400.
	Burst int32 `json:"burst"`
}

// Endpoint is a listener.
type Endpoint struct {
	// bindAddress is [host]:port; port 0 picks a free one; "0" serves nothing. Default: :8081 for health, :8080 for
	// metrics.
	BindAddress string `json:"bindAddress"`
}

// Off is the bindAddress of an endpoint that is not served.
const Off = "0"

// Logging says what is logged and how.
type Logging struct {
	// level is error, info or debug, or a number from 0 (info) to 10 for ever more detail. Default: info.
	Level string `json:"level"`
	// format is json or console. Default: json.
	Format LogFormat `json:"format"`
}

// LogFormat is how a log entry is written.
type LogFormat string

// Log formats.
const (
	LogJSON    LogFormat = "json"
	LogConsole LogFormat = "console"
)

// Seating is about gangs whose pods do not all appear.
type Seating struct {
	// timeout is how long after the hand-over every pod of a gang must exist, and for how long the scheduler may find no
	// place for one, where the check's GangReservationConfig does not say otherwise. Between 1s and 24h. Default: 5m.
	Timeout metav1.Duration `json:"timeout"`
}

// Reservation is about carrying out decisions.
type Reservation struct {
	// retryBackoffBase is the pause after the first failure; it doubles with each further one. Default: 1s.
	RetryBackoffBase metav1.Duration `json:"retryBackoffBase"`
	// retryBackoffMax is the longest pause. Default: 1m.
	RetryBackoffMax metav1.Duration `json:"retryBackoffMax"`
}

// Concurrency is how many objects are worked on at once. There is one line and so one decision at a time; these are the
// API writes that follow it. Each between 1 and 256.
type Concurrency struct {
	// reservations whose claims are created, allocated or released. Default: 8.
	Reservations int32 `json:"reservations"`
	// seats: gangs whose pods are being seated. Default: 8.
	Seats int32 `json:"seats"`
}
