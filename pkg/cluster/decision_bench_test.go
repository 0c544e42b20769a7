package cluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// published writes a site's slices as the API has them.
func published(site *worlds.Site) []*resourcev1.ResourceSlice {
	yes := true
	quantity := func(milli int64) resource.Quantity { return *resource.NewMilliQuantity(milli, resource.DecimalSI) }
	var out []*resourcev1.ResourceSlice
	for _, p := range site.Slices {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: p.Pool.Driver, Pool: resourcev1.ResourcePool{Name: p.Pool.Name, Generation: p.Generation, ResourceSliceCount: p.SliceCount},
		}}
		if len(p.CounterSets) > 0 {
			s.Spec.AllNodes = &yes
		} else {
			s.Spec.PerDeviceNodeSelection = &yes
		}
		for _, set := range p.CounterSets {
			c := resourcev1.CounterSet{Name: set.Name, Counters: map[string]resourcev1.Counter{}}
			for _, counter := range set.Counters {
				c.Counters[counter.Name] = resourcev1.Counter{Value: quantity(counter.Milli)}
			}
			s.Spec.SharedCounters = append(s.Spec.SharedCounters, c)
		}
		for _, d := range p.Devices {
			out := dratest.NewDevice(d.Name, d.Attributes["shape"]).On(d.Hosts...).Device
			of := map[string]map[string]resourcev1.Counter{}
			for _, c := range d.Consumes {
				if of[c.CounterSet] == nil {
					of[c.CounterSet] = map[string]resourcev1.Counter{}
				}
				of[c.CounterSet][c.Counter] = resourcev1.Counter{Value: quantity(c.Milli)}
			}
			for set, counters := range of {
				out.ConsumesCounters = append(out.ConsumesCounters, resourcev1.DeviceCounterConsumption{CounterSet: set, Counters: counters})
			}
			s.Spec.Devices = append(s.Spec.Devices, out)
		}
		out = append(out, s)
	}
	return out
}

// halfTaken takes devices of up to largest hosts until half of the hosts are taken: each time the one that Scored takes.
func halfTaken(inv *inventory.Inventory, largest int) *ledger.Ledger {
	l := ledger.New(inv)
	rng := rand.New(rand.NewPCG(1, 1))
	placer := placement.NewScored(0)
	for i, taken := 0, 0; taken < len(inv.Hosts())/2; i++ {
		c := inv.Classes()[rng.IntN(len(inv.Classes()))]
		span := c.Members[0].Span
		if span > largest {
			continue
		}
		d := placer.Place(ask(c.Name, span, 1), placement.World{Inventory: inv, Ledger: l})
		if !d.Fits() {
			continue
		}
		device := d.PodSets[0].Claims[0].Instances[0].Devices[0]
		l.Take(ledger.Holding{Owner: fmt.Sprint("x/", i), Reservation: fmt.Sprint(i), Pool: device.Pool, Device: device.Name})
		taken += span
	}
	return l
}

// BenchmarkDecision is one decision by kube-scheduler's allocator, which takes the first device that fits, and one by
// Scored, which weighs them all, on the same pool with the same half of it taken. For Scored something else was taken
// each time, so that nothing is left from the decision before.
func BenchmarkDecision(b *testing.B) {
	for _, family := range []struct {
		name    string
		site    *worlds.Site
		largest int
		asks    []int
	}{
		{"kep8x8", worlds.KEP8x8("p"), 4, nil},
		{"cubes", worlds.Cubes(140)("p"), 32, []int{1, 4, 16}},
		{"torus", worlds.Torus("p"), 64, []int{1, 16, 32, 64}},
	} {
		inv := family.site.Inventory()
		l := halfTaken(inv, family.largest)
		other := l.Clone()
		for _, d := range inv.Pools()[0].Devices {
			if len(d.Hosts) == 1 && other.Free(d) {
				other.Take(ledger.Holding{Owner: "x/one-more", Pool: d.Pool, Device: d.Name})
				break
			}
		}
		both := [2]placement.World{{Inventory: inv, Ledger: l}, {Inventory: inv, Ledger: other}}
		type question struct {
			class string
			span  int
		}
		questions := []question{{"tpu-2x2", 1}}
		if family.asks != nil {
			questions = nil
			for _, n := range family.asks {
				questions = append(questions, question{fmt.Sprint("v5p-", n), n})
			}
		}
		var classes classLister
		for _, q := range questions {
			classes = append(classes, dratest.ByTopology(q.class, worlds.Driver, q.class))
		}
		all := published(family.site)
		for _, q := range questions {
			b.Run(fmt.Sprintf("%s/%s/by=structured", family.name, q.class), func(b *testing.B) {
				state := structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID]()}
				for _, h := range l.Holdings() {
					state.AllocatedDevices.Insert(structured.MakeDeviceID(h.Pool.Driver, h.Pool.Name, h.Device))
				}
				d := placement.NewScored(0).Place(ask(q.class, q.span, 1), both[0])
				if !d.Fits() {
					b.Fatal(d.Refusal)
				}
				// Of all nodes the one that Scored chose, so that the allocator succeeds at its first node.
				node := dratest.Node(d.PodSets[0].Hosts[0])
				claim := []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: *dratest.Request(q.class, 1)}}
				cache := cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true})
				measure(b, func(int) { allocate(b, state, classes, all, cache, node, claim) })
			})
			b.Run(fmt.Sprintf("%s/%s/by=scored", family.name, q.class), func(b *testing.B) {
				placer, g := placement.NewScored(0), ask(q.class, q.span, 1)
				measure(b, func(i int) {
					if !placer.Place(g, both[i%2]).Fits() {
						b.Fatal("does not fit")
					}
				})
			})
		}
	}
}

func allocate(b *testing.B, state structured.AllocatedState, classes classLister, all []*resourcev1.ResourceSlice, cache *cel.Cache, node *corev1.Node, claim []*resourcev1.ResourceClaim) {
	a, err := structured.NewAllocator(context.Background(), structured.Features{PartitionableDevices: true, DeviceTaints: true, ConsumableCapacity: true},
		state, classes, all, cache)
	if err != nil {
		b.Fatal(err)
	}
	results, err := a.Allocate(context.Background(), node, claim)
	if err != nil || len(results) != 1 {
		b.Fatalf("%d results, error %v", len(results), err)
	}
}

// measure also reports processor time, which other work on the machine does not change.
func measure(b *testing.B, do func(int)) {
	spent := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	do(0)
	do(1)
	b.ReportAllocs()
	from := spent()
	for i := 0; b.Loop(); i++ {
		do(i)
	}
	b.ReportMetric(float64(spent()-from)/float64(b.N), "cpu-ns/op")
}
