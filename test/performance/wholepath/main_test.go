package wholepath

import (
	"os"
	"testing"

	"github.com/berth-dev/berth/test/cluster"
)

// shares is the resource that Kueue charges for the devices of all classes.
const shares = "berth.dev/shares"

// Classes: a device on one host, one over four, and one over wideHosts.
const (
	single = "v5p-1"
	four   = "v5p-4"
	wide   = "wide"
)

// Pods succeed as soon as they run: what takes time is the control plane's work.
var shared = cluster.Shared{Options: cluster.Options{
	Audit: true,
	KWOK:  cluster.KWOKOptions{Completion: cluster.CompleteAtOnce},
	Kueue: cluster.KueueOptions{DeviceClasses: map[string][]string{shares: {single, four, wide}}},
}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
