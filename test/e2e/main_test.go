package e2e

import (
	"os"
	"testing"

	"github.com/berth-dev/berth/test/cluster"
)

var shared = cluster.Shared{Options: cluster.Options{
	Audit: true,
	Kueue: cluster.KueueOptions{DeviceClasses: map[string][]string{
		"berth.dev/shares": {"tpu-2x2", "tpu-4x4", "tpu-4x8", "tpu-8x8", "wide-200"},
	}},
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
