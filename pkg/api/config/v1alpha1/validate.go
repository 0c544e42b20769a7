package v1alpha1

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of the numbers in a configuration.
const (
	maxSeatingTimeout = 24 * time.Hour
	maxConcurrency    = 256
)

// Validate returns every fault of the configuration, or nil.
func (c *BerthConfiguration) Validate() field.ErrorList {
	var faults field.ErrorList
	if c.APIVersion != APIVersion {
		faults = append(faults, field.NotSupported(field.NewPath("apiVersion"), c.APIVersion, []string{APIVersion}))
	}
	if c.Kind != Kind {
		faults = append(faults, field.NotSupported(field.NewPath("kind"), c.Kind, []string{Kind}))
	}
	faults = append(faults, c.LeaderElection.validate(field.NewPath("leaderElection"))...)

	connection := field.NewPath("clientConnection")
	if qps := c.ClientConnection.QPS; !(qps > 0 && qps <= math.MaxInt32) { // not a number is neither
		faults = append(faults, field.Invalid(connection.Child("qps"), fmt.Sprint(qps), "must be above 0"))
	}
	if c.ClientConnection.Burst < 1 {
		faults = append(faults, field.Invalid(connection.Child("burst"), c.ClientConnection.Burst, "must be at least 1"))
	}
	faults = append(faults, c.Health.validate(field.NewPath("health"))...)
	faults = append(faults, c.Metrics.validate(field.NewPath("metrics"))...)
	if a := c.Health.BindAddress; a != Off && a == c.Metrics.BindAddress && !anyPort(a) {
		faults = append(faults, field.Invalid(field.NewPath("metrics", "bindAddress"), a, "is the address of health, too"))
	}

	logging := field.NewPath("logging")
	if _, err := c.Logging.Verbosity(); err != nil {
		faults = append(faults, field.Invalid(logging.Child("level"), c.Logging.Level, err.Error()))
	}
	if f := c.Logging.Format; f != LogJSON && f != LogConsole {
		faults = append(faults, field.NotSupported(logging.Child("format"), f, []LogFormat{LogJSON, LogConsole}))
	}

	if t := c.Seating.Timeout.Duration; t < time.Second || t > maxSeatingTimeout {
		faults = append(faults, field.Invalid(field.NewPath("seating", "timeout"), t.String(), "must be between 1s and 24h"))
	}

	reservation := field.NewPath("reservation")
	base, longest := c.Reservation.RetryBackoffBase.Duration, c.Reservation.RetryBackoffMax.Duration
	if base <= 0 {
		faults = append(faults, field.Invalid(reservation.Child("retryBackoffBase"), base.String(), "must be above 0"))
	}
	if longest < base {
		faults = append(faults, field.Invalid(reservation.Child("retryBackoffMax"), longest.String(), fmt.Sprintf("must be at least retryBackoffBase (%s)", base)))
	}

	concurrency := field.NewPath("concurrency")
	faults = append(faults, atOnce(concurrency.Child("reservations"), c.Concurrency.Reservations)...)
	faults = append(faults, atOnce(concurrency.Child("seats"), c.Concurrency.Seats)...)
	return faults
}

func atOnce(path *field.Path, n int32) field.ErrorList {
	if n < 1 || n > maxConcurrency {
		return field.ErrorList{field.Invalid(path, n, fmt.Sprintf("must be between 1 and %d", maxConcurrency))}
	}
	return nil
}

func (l *LeaderElection) validate(path *field.Path) field.ErrorList {
	var faults field.ErrorList
	positive := func(name string, d time.Duration) {
		if d <= 0 {
			faults = append(faults, field.Invalid(path.Child(name), d.String(), "must be above 0"))
		}
	}
	lease, renew, retry, write := l.LeaseDuration.Duration, l.RenewDeadline.Duration, l.RetryPeriod.Duration, l.WriteTimeout.Duration
	positive("writeTimeout", write) // it bounds writes without leader election, too
	if !l.Enabled {
		return faults
	}
	for _, message := range validation.ValidateNamespaceName(l.Namespace, false) {
		faults = append(faults, field.Invalid(path.Child("namespace"), l.Namespace, message))
	}
	for _, message := range utilvalidation.IsDNS1123Subdomain(l.Name) {
		faults = append(faults, field.Invalid(path.Child("name"), l.Name, message))
	}
	positive("leaseDuration", lease)
	positive("renewDeadline", renew)
	positive("retryPeriod", retry)
	if lease%time.Second != 0 {
		faults = append(faults, field.Invalid(path.Child("leaseDuration"), lease.String(), "must be whole seconds, because a Lease counts in seconds"))
	}
	// Then a write that starts just before the leader gives up renewing still has its whole time inside the lease.
	if lease < renew+write {
		faults = append(faults, field.Invalid(path.Child("leaseDuration"), lease.String(),
			fmt.Sprintf("must be at least renewDeadline + writeTimeout (%s + %s = %s)", renew, write, renew+write)))
	}
	// client-go lets its jitter lengthen a retryPeriod by up to a fifth.
	if renew*5 <= retry*6 {
		faults = append(faults, field.Invalid(path.Child("renewDeadline"), renew.String(),
			fmt.Sprintf("must exceed 1.2 times retryPeriod (%s)", retry*6/5)))
	}
	return faults
}

func (e *Endpoint) validate(path *field.Path) field.ErrorList {
	if e.BindAddress == Off {
		return nil
	}
	_, port, err := net.SplitHostPort(e.BindAddress)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("bindAddress"), e.BindAddress, `must be [host]:port with a port from 0 to 65535, or "0" for no endpoint`)}
	}
	return nil
}

func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port == "0"
}

// maxVerbosity is where client-go prints whole requests.
const maxVerbosity = 10

// Verbosity is the level as logr counts it: −1 only errors, 0 info, 1 debug, up to 10.
func (l *Logging) Verbosity() (int, error) {
	switch l.Level {
	case "error":
		return -1, nil
	case "info":
		return 0, nil
	case "debug":
		return 1, nil
	}
	n, err := strconv.Atoi(l.Level)
	if err != nil || n < 0 || n > maxVerbosity {
		return 0, fmt.Errorf("must be error, info, debug or a number from 0 to %d", maxVerbosity)
	}
	return n, nil
}
