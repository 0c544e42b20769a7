package lifecycle

import (
	"os"
	"testing"

	"github.com/berth-dev/berth/test/cluster"
)

// The audit log counts what Berth wrote.
var shared = cluster.Shared{Options: cluster.Options{Audit: true}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
