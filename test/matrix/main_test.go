package matrix

import (
	"os"
	"testing"
	"time"

	"github.com/berth-dev/berth/test/cluster"
)

var shared = cluster.Shared{Options: cluster.Options{
	Audit: true,
	// No node fails here, and seventy leases that are renewed every five seconds cost more than a gang.
	NodeMonitorGracePeriod: time.Minute,
	Kueue:                  cluster.KueueOptions{DeviceClasses: map[string][]string{shares: {wholeClass, halfClass}}},
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
