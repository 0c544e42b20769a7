package guard

import (
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berth-dev/berth/test/cluster"
)

var shared = cluster.Shared{Options: cluster.Options{
	Audit: true,
	// Near the shortest at which nodes do not flap on a busy machine: some tests wait for a lost host.
	NodeMonitorGracePeriod: 12 * time.Second,
	Kueue: cluster.KueueOptions{DeviceClasses: map[string][]string{
		"berth.dev/shares": append([]string{"late-one", "late-all"}, cluster.DefaultDeviceClasses["berth.dev/shares"]...),
	}},
}}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // the controller under test has a logger of its own
	os.Exit(shared.Main(m))
}
