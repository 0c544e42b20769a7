package controllers

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/snapshot/mirror"
)

// auditEvery is how often the ledger and the lists that are kept up are held against what they are kept up with.
const auditEvery = 10 * time.Minute

// audits looks for breaches while this process leads; the Cluster reports them.
type audits struct {
	world  *cluster.Cluster
	mirror *mirror.Mirror
	log    logr.Logger
}

var _ manager.LeaderElectionRunnable = audits{}

// NeedLeaderElection is manager.LeaderElectionRunnable.NeedLeaderElection.
func (audits) NeedLeaderElection() bool { return true }

// Start is manager.Runnable.Start.
func (a audits) Start(ctx context.Context) error {
	ticker := time.NewTicker(auditEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := a.mirror.Check(); err != nil {
				a.log.Error(err, "A list was not what its informer holds; it is now")
			}
			_ = a.world.Audit() // The Cluster reports a breach itself.
		}
	}
}
