package lifecycle

import (
	"os"
	"testing"
	"time"

	"github.com/berth-dev/berth/test/cluster"
)

var shared = cluster.Shared{Options: cluster.Options{
	// It counts what Berth wrote.
	Audit: true,
	// Short, for the sake of the test that waits for a lost host, and long enough for a busy machine.
	NodeMonitorGracePeriod: 20 * time.Second,
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
