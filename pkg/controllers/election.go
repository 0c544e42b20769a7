package controllers

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/berth-dev/berth/pkg/cluster/leadership"
)

// elect returns the guard of a new term and the lock that feeds it; the lock is nil without leader election.
func elect(o Options) (*leadership.Guard, *leadership.Lock, error) {
	settings := o.Config.LeaderElection
	options := leadership.Options{
		Term:         leadership.NewTerm(o.Identity, o.UID, time.Now()),
		WriteTimeout: settings.WriteTimeout.Duration,
	}
	if !settings.Enabled {
		return leadership.NewGuard(options), nil, nil
	}
	options.LeaseDuration = settings.LeaseDuration.Duration
	guard := leadership.NewGuard(options)

	leases, err := coordinationv1client.NewForConfig(leaseConnection(o.REST, settings.RenewDeadline.Duration))
	if err != nil {
		return nil, nil, fmt.Errorf("connecting for leader election: %w", err)
	}
	lock, err := leadership.NewLock(&resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: settings.Namespace, Name: settings.Name},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: guard.Term()},
	}, guard)
	return guard, lock, err
}

// leaseConnection is a connection of its own for the lease: renewals must not queue behind the controllers' requests, and
// a renewal that hangs must end early enough for another attempt.
func leaseConnection(base *rest.Config, renewDeadline time.Duration) *rest.Config {
	connection := rest.AddUserAgent(rest.CopyConfig(base), "leader-election")
	connection.Timeout = max(time.Second, renewDeadline/2)
	// No limit: the retry period paces the requests. client-go takes a QPS of 0 for its default of 5; less than 0 means
	// none.
	connection.RateLimiter = nil
	connection.QPS = -1
	return connection
}
