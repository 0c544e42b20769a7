package guard

import (
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berth-dev/berth/test/cluster"
)

// The grace period is near the shortest at which nodes do not flap on a busy machine: two tests wait for a lost host.
var shared = cluster.Shared{Options: cluster.Options{Audit: true, NodeMonitorGracePeriod: 12 * time.Second}}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // the controller under test has a logger of its own
	os.Exit(shared.Main(m))
}
