package hardware

import (
	"testing"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// TestScenario09_SlicesWithdrawnUnderRunningGang: a driver that restarts takes its ResourceSlices away and publishes them
// again later.
func TestScenario09_SlicesWithdrawnUnderRunningGang(t *testing.T) {
	s := begin(t)
	r := standard(s, "restarts")
	st := s.Follow()
	run(s)
	gang := s.Submit(scene.Gang("gang", quad, 4))
	s.AwaitSeated(gang)
	s.AwaitReserved(gang, r.on("rack-4-0", r.hosts[:4]))
	before := portrait(s, gang)

	r.withdraw(1)
	r.awaitShapes()
	r.awaitCondition(berth.PoolReady, "False NoPools: no ResourceSlice of the driver matches: is the driver running, and is its name spelled the same?")
	other := s.Submit(scene.Gang("other", quad, 4))
	s.AwaitReserved(other, "False ShapeUnknown: DeviceClass rack-4 selects no device that is published now")
	if after := portrait(s, gang); after != before {
		t.Errorf("the gang was touched: it was\n%s\nand is\n%s", before, after)
	}

	// What the gang has is taken still, for those that come after.
	r.publish(r.devices(8, 4, 2, 1)...)
	s.AwaitSeated(other)
	s.AwaitReserved(other, r.on("rack-4-1", r.hosts[4:]))
	if after := portrait(s, gang); after != before {
		t.Errorf("the gang was touched: it was\n%s\nand is\n%s", before, after)
	}
	st.Never("retry")
	s.Finish(gang)
	s.Finish(other)
	s.AwaitNoTrace()
}
