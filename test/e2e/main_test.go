package e2e

import (
	"os"
	"testing"

	"github.com/berth-dev/berth/test/cluster"
)

var shared = cluster.Shared{Options: cluster.Options{Audit: true}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
