package invariants

import (
	"fmt"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var tallied = poolKey{"gpu.example.com", "rack"}

// tallyView has the counter host of 4, devices big and other that are shared, with a memory of 80 and 40 and 4 of the
// counter each, and half-0 and half-1 that are not, with 2 of the counter each.
func tallyView() *view {
	takes := func(n string) map[counterKey]resource.Quantity {
		return map[counterKey]resource.Quantity{{"set", "host"}: resource.MustParse(n)}
	}
	return &view{
		counters: takes("4"),
		devices: map[string]device{
			"big":    {shared: true, charge: takes("4"), capacity: amounts{"memory": resource.MustParse("80Gi"), "lanes": resource.MustParse("4")}},
			"other":  {shared: true, charge: takes("4"), capacity: amounts{"memory": resource.MustParse("40Gi")}},
			"half-0": {charge: takes("2"), capacity: amounts{"memory": resource.MustParse("10Gi")}},
			"half-1": {charge: takes("2")},
		},
	}
}

// whole is an allocation that is no share.
func whole(device string) resourcev1.DeviceRequestAllocationResult {
	return resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: tallied.driver, Pool: tallied.pool, Device: device}
}

// share is an allocation that is one, of capacity name after name and quantity after quantity.
func share(device string, consumed ...string) resourcev1.DeviceRequestAllocationResult {
	r := whole(device)
	r.ShareID = ptr.To(types.UID("one of its own"))
	r.ConsumedCapacity = amounts{}
	for i := 0; i < len(consumed); i += 2 {
		r.ConsumedCapacity[resourcev1.QualifiedName(consumed[i])] = resource.MustParse(consumed[i+1])
	}
	return r
}

func elsewhere(r resourcev1.DeviceRequestAllocationResult) resourcev1.DeviceRequestAllocationResult {
	r.Pool = "another"
	return r
}

func admin(r resourcev1.DeviceRequestAllocationResult) resourcev1.DeviceRequestAllocationResult {
	r.AdminAccess = ptr.To(true)
	return r
}

func TestTally(t *testing.T) {
	type results = []resourcev1.DeviceRequestAllocationResult
	const in = " in pool gpu.example.com/rack, which is "
	for _, test := range []struct {
		name   string
		claims []results // the last one is judged
		want   string
		other  string // the claim that is shown beside it
	}{
		{"alone", []results{{whole("half-0")}}, "", ""},
		{"side by side", []results{{whole("half-0")}, {whole("half-1")}}, "", ""},
		{"a device twice", []results{{whole("half-0")}, {whole("half-0")}},
			"device half-0 of pool gpu.example.com/rack is then allocated 2 times", "claim-0"},
		{"a device twice in one claim", []results{{whole("half-0"), whole("half-0")}},
			"device half-0 of pool gpu.example.com/rack is then allocated 2 times", ""},
		{"a device twice, but not judged", []results{{whole("half-0")}, {whole("half-0")}, {elsewhere(whole("half-0"))}}, "", ""},
		{"shares of a device that has none", []results{{share("half-0", "memory", "1Gi")}, {share("half-0", "memory", "1Gi")}},
			"device half-0 of pool gpu.example.com/rack is then allocated 2 times", "claim-0"},
		{"a counter", []results{{whole("half-0")}, {share("big", "memory", "1Gi")}},
			"of counter set/host" + in + "4, 6 is then taken", "claim-0"},
		{"shares that fill a device", []results{{share("big", "memory", "30Gi")}, {share("big", "memory", "50Gi")}}, "", ""},
		{"shares in one claim", []results{{share("big", "memory", "30Gi"), share("big", "memory", "30Gi")}, {share("big", "memory", "20Gi")}}, "", ""},
		{"a share too many", []results{{share("big", "memory", "30Gi")}, {share("big", "memory", "30Gi")}, {share("big", "memory", "30Gi")}},
			"of capacity memory of device big" + in + "80Gi, 90Gi is then taken", "claim-0"},
		{"a thousandth too much", []results{{share("big", "lanes", "2500m")}, {share("big", "lanes", "1501m")}},
			"of capacity lanes of device big" + in + "4, 4001m is then taken", "claim-0"},
		{"too large by itself", []results{{share("other", "memory", "41Gi")}},
			"of capacity memory of device other" + in + "40Gi, 41Gi is then taken", ""},
		{"one capacity is left, another is not", []results{{share("big", "memory", "1Gi", "lanes", "3")}, {share("big", "memory", "1Gi", "lanes", "2")}},
			"of capacity lanes of device big" + in + "4, 5 is then taken", "claim-0"},
		{"one of two results", []results{{share("big", "memory", "80Gi")}, {elsewhere(share("big", "memory", "80Gi")), share("big", "memory", "1Gi")}},
			"of capacity memory of device big" + in + "80Gi, 81Gi is then taken", "claim-0"},
		{"a share that takes nothing", []results{{share("big", "memory", "80Gi")}, {share("big")}}, "", ""},
		{"overdrawn, but not judged", []results{{share("other", "memory", "30Gi")}, {share("other", "memory", "30Gi")}, {elsewhere(whole("big"))}}, "", ""},
		{"shares of two devices on one counter", []results{{share("big", "memory", "1Gi")}, {share("other", "memory", "1Gi")}},
			"of counter set/host" + in + "4, 8 is then taken", "claim-0"},
		{"a shared device as a whole", []results{{whole("big")}}, "", ""},
		{"a share beside the whole", []results{{whole("big")}, {share("big", "memory", "1Gi")}},
			"device big of pool gpu.example.com/rack, which can be shared, is then allocated whole 1 times and in 1 shares", "claim-0"},
		{"the whole twice", []results{{whole("big")}, {whole("big")}},
			"device big of pool gpu.example.com/rack, which can be shared, is then allocated whole 2 times and in 0 shares", "claim-0"},
		{"admin access to a full device", []results{{share("big", "memory", "80Gi")}, {admin(share("big", "memory", "80Gi")), admin(whole("half-0"))}}, "", ""},
		{"beside admin access", []results{{admin(whole("big"))}, {share("big", "memory", "80Gi")}}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			tally := newTally(tallyView(), tallied)
			var claim *resourcev1.ResourceClaim
			for i, r := range test.claims {
				claim = &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("claim-%d", i)}}
				claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: r}}
				tally.take(claim)
			}
			what, other := tally.excess(claim)
			name := ""
			if other != nil {
				name = other.Name
			}
			if what != test.want || name != test.other {
				t.Errorf("it says %q beside %q, want %q beside %q", what, name, test.want, test.other)
			}
		})
	}
}

// What a driver took off a capacity a moment ago is not held against an allocator, and what it made of a device neither.
func TestKinderCapacity(t *testing.T) {
	m := newMemory()
	publish := func(rv uint64, seen time.Time, memory string, shared bool) {
		m.publish(&resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
			Driver: tallied.driver, Pool: resourcev1.ResourcePool{Name: tallied.pool, Generation: int64(rv)},
			Devices: []resourcev1.Device{{
				Name: "big", AllowMultipleAllocations: &shared,
				Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}},
			}},
		}}, version{since: rv, rv: rv, seen: seen})
	}
	start := time.Unix(1000, 0)
	publish(1, start, "80Gi", true)
	publish(2, start.Add(10*time.Second), "40Gi", false)
	pool := m.pools[tallied]
	for _, test := range []struct {
		after  time.Duration // the first edition
		memory string
		shared bool
	}{
		{11 * time.Second, "80Gi", true},
		{16 * time.Second, "40Gi", false},
	} {
		d := kinder(pool.at(2, farFuture), pool.at(2, start.Add(test.after-driverGrace))).devices["big"]
		if have := d.capacity["memory"]; have.Cmp(resource.MustParse(test.memory)) != 0 || d.shared != test.shared {
			t.Errorf("%s after the first edition it has %s, shared %v; want %s, %v", test.after, have.String(), d.shared, test.memory, test.shared)
		}
	}
}
