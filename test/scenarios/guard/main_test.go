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
	// Short, for the sake of the tests that wait for a lost host, and long enough for a busy machine.
	NodeMonitorGracePeriod: 20 * time.Second,
	Kueue: cluster.KueueOptions{DeviceClasses: map[string][]string{
		"berth.dev/shares": append([]string{"late-one", "late-all"}, cluster.DefaultDeviceClasses["berth.dev/shares"]...),
	}},
}}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // the controller under test has a logger of its own
	os.Exit(shared.Main(m))
}
