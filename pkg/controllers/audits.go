package controllers

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/berth-dev/berth/pkg/cluster"
)

// auditEvery is how often the ledger that is kept up is held against one that is built from nothing.
const auditEvery = 10 * time.Minute

// audits looks for breaches while this process leads; the Cluster reports them.
type audits struct{ world *cluster.Cluster }

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
			_ = a.world.Audit() // The Cluster reports a breach itself.
		}
	}
}
