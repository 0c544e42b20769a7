package matrix

import (
	"time"

	"github.com/berth-dev/berth/test/cluster"
)

// options of the clusters. Each test has its own, so that they run beside each other: there is one lease in a cluster.
var options = cluster.Options{
	Audit: true,
	// No node fails here, and seventy leases that are renewed every five seconds cost more than a gang.
	NodeMonitorGracePeriod: time.Minute,
	Kueue:                  cluster.KueueOptions{DeviceClasses: map[string][]string{shares: {wholeClass, halfClass}}},
}
