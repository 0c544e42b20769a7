package dra_test

import (
	"math"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
)

// Quantities beyond an int64 are legal in counters. What there is is counted for no more than it is, and what is taken for
// no less, also where resource.Quantity says 0.
func TestCountersBeyondInt64(t *testing.T) {
	for value, want := range map[string]int64{
		"9E": math.MaxInt64, "10E": math.MaxInt64, "1e30": math.MaxInt64, "9223372036854775": 9223372036854775000, "1n": 1,
	} {
		t.Run(value, func(t *testing.T) {
			s := site(
				dratest.NewSlice("counters", driver, "pod-a").Of(2).Counters("cs", "1e40", "h1"),
				dratest.NewSlice("devices", driver, "pod-a").Of(2).Device(dratest.NewDevice("d", "x").On("node-1").Consumes("cs", value, "h1")),
			)
			s.DeviceClasses = []*resourcev1.DeviceClass{dratest.Class("all", "true")}
			p := read(s).Inventory.Pool(podA)
			if p.Problem != nil {
				t.Fatal(p.Problem)
			}
			if got := p.Counters[0].Milli; got != math.MaxInt64 {
				t.Errorf("there are %d", got)
			}
			if got := p.Devices[0].Charge[0].Milli; got != want {
				t.Errorf("takes %d, want %d", got, want)
			}
		})
	}
}
