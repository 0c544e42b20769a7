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

	// A connection of its own: renewals must not queue behind the controllers' requests, and a renewal that hangs must
	// end early enough for another attempt.
	connection := rest.AddUserAgent(rest.CopyConfig(o.REST), "leader-election")
	connection.Timeout = max(time.Second, settings.RenewDeadline.Duration/2)
	connection.RateLimiter = nil
	connection.QPS, connection.Burst = 0, 0
	leases, err := coordinationv1client.NewForConfig(connection)
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
