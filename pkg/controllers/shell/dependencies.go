package shell

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	"github.com/berth-dev/berth/pkg/observability"
)

// Dependencies are the same for all controllers of one process. None is nil.
type Dependencies struct {
	// Client reads from the cache, without managed fields; what it returns may be changed freely. Its writes are
	// refused with leadership.ErrNotLeader while the lease could have lapsed, and each ends within the write time-out.
	//
	// A write is not ended by cancelling its context, because its outcome would be unknown; the context's deadline counts.
	// Every write that changes an object must carry the resourceVersion it was decided on: only then does the takeover
	// by a new leader make late writes fail. Package leadership says why a gate that is taken off needs only the UID.
	Client client.Client

	// Live reads from the API server with quorum. Use it where a stale answer could give a device away twice.
	Live client.Reader

	// Ready returns nil once this process is the leader and has taken over from the one before. Every reconciler calls
	// it first. It returns the error of ctx if that ends earlier.
	Ready func(ctx context.Context) error

	// Config is the validated configuration.
	Config configv1alpha1.BerthConfiguration

	// Recorder writes events on users' objects. Events are not guarded: they decide nothing.
	Recorder events.EventRecorder

	// Metrics are the process's numbers; several Controllers in one process share them.
	Metrics *observability.Metrics

	// Log is the process's logger.
	Log logr.Logger

	// Now is the clock; tests may set it.
	Now func() time.Time

	// Term names this leadership: it is unique among all processes and restarts. It is the value of
	// AnnotationLeader on claims that this process creates.
	Term string
}
