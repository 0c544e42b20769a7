package dra

import (
	"math"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/inventory"
)

// serveExtended lets hosts have as much as anybody asks of an extended resource that a DeviceClass serves. As in the
// scheduler that goes for hosts that have none of it themselves: there the devices count, and what they are short of is for
// the scheduler to say.
func serveExtended(hosts []inventory.Host, classes []*resourcev1.DeviceClass) {
	for _, class := range classes {
		name := ptr.Deref(class.Spec.ExtendedResourceName, "")
		if name == "" {
			continue
		}
		for _, h := range hosts {
			if h.Allocatable[name] == 0 {
				h.Allocatable[name] = math.MaxInt64
			}
		}
	}
}
