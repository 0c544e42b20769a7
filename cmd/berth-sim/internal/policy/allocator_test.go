package policy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-dev/berth/cmd/berth-sim/internal/hardware"
	"github.com/berth-dev/berth/cmd/berth-sim/internal/policy"
	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/pkg/snapshot"
	"github.com/berth-dev/berth/test/race"
)

// ask is a gang of one device.
func ask(class string, hosts int) gang.Gang {
	return gang.Gang{PodSets: []gang.PodSet{{Name: "main", Count: hosts, Claims: []gang.Claim{{
		PodClaim: "c", Requests: []gang.Request{{Name: "r", Class: class, Count: 1}},
	}}}}}
}

// published writes a site as API objects: its slices, a node for each host, and a class for each of its classes.
func published(site *worlds.Site) *snapshot.Snapshot {
	yes := true
	s := &snapshot.Snapshot{AcceleratorPools: []*v1alpha1.AcceleratorPool{dratest.Pool(worlds.Driver)}}
	amount := func(milli int64) resourcev1.Counter {
		return resourcev1.Counter{Value: *resource.NewMilliQuantity(milli, resource.DecimalSI)}
	}
	for _, h := range site.Hosts {
		s.Nodes = append(s.Nodes, dratest.Node(h.Name))
	}
	for class := range site.Classes {
		s.DeviceClasses = append(s.DeviceClasses, dratest.ByTopology(class, worlds.Driver, class))
	}
	for _, p := range site.Slices {
		out := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: p.Pool.Driver, Pool: resourcev1.ResourcePool{Name: p.Pool.Name, Generation: p.Generation, ResourceSliceCount: p.SliceCount},
		}}
		if len(p.CounterSets) > 0 {
			out.Spec.AllNodes = &yes
		} else {
			out.Spec.PerDeviceNodeSelection = &yes
		}
		for _, set := range p.CounterSets {
			c := resourcev1.CounterSet{Name: set.Name, Counters: map[string]resourcev1.Counter{}}
			for _, counter := range set.Counters {
				c.Counters[counter.Name] = amount(counter.Milli)
			}
			out.Spec.SharedCounters = append(out.Spec.SharedCounters, c)
		}
		for _, d := range p.Devices {
			dev := dratest.NewDevice(d.Name, d.Attributes["shape"]).On(d.Hosts...).Device
			of := map[string]map[string]resourcev1.Counter{}
			for _, c := range d.Consumes {
				if of[c.CounterSet] == nil {
					of[c.CounterSet] = map[string]resourcev1.Counter{}
				}
				of[c.CounterSet][c.Counter] = amount(c.Milli)
			}
			for set, counters := range of {
				dev.ConsumesCounters = append(dev.ConsumesCounters, resourcev1.DeviceCounterConsumption{CounterSet: set, Counters: counters})
			}
			out.Spec.Devices = append(out.Spec.Devices, dev)
		}
		s.ResourceSlices = append(s.ResourceSlices, out)
	}
	return s
}

type classes []*resourcev1.DeviceClass

func (l classes) List() ([]*resourcev1.DeviceClass, error) { return l, nil }
func (l classes) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, c := range l {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no class %s", name)
}

// allocator is kube-scheduler's, asked about one node after the other.
type allocator struct {
	snapshot *snapshot.Snapshot
	nodes    []*corev1.Node
	cel      *cel.Cache
}

func newAllocator(s *snapshot.Snapshot, inv *inventory.Inventory) *allocator {
	byName := map[string]*corev1.Node{}
	for _, n := range s.Nodes {
		byName[n.Name] = n
	}
	a := &allocator{snapshot: s, cel: cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true})}
	for _, name := range inv.Hosts() {
		a.nodes = append(a.nodes, byName[name])
	}
	return a
}

// first is the device that the allocator gives on the first node on which it gives any; empty for none.
func (a *allocator) first(t *testing.T, class string, taken sets.Set[structured.DeviceID]) string {
	t.Helper()
	ctx := context.Background()
	alloc, err := structured.NewAllocator(ctx, structured.Features{PartitionableDevices: true, DeviceTaints: true, ConsumableCapacity: true},
		structured.AllocatedState{AllocatedDevices: taken}, classes(a.snapshot.DeviceClasses), a.snapshot.ResourceSlices, a.cel)
	if err != nil {
		t.Fatal(err)
	}
	claim := []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: *dratest.Request(class, 1)}}
	for _, node := range a.nodes {
		results, err := alloc.Allocate(ctx, node, claim)
		if err != nil {
			t.Fatal(err)
		}
		if len(results) == 1 {
			d := results[0].Devices.Results[0]
			return d.Pool + "/" + d.Device
		}
	}
	return ""
}

// TestFirstFitIsTheAllocator plays random histories of gangs that come and go on every family of hardware, and at each step
// compares the device of each class that firstfit takes with the one that kube-scheduler's allocator gives.
func TestFirstFitIsTheAllocator(t *testing.T) {
	compared, refused, part := 0, 0, 1
	if race.Enabled {
		part = 5
	}
	for name, row := range map[string]struct {
		site  *worlds.Site
		steps int
	}{
		"kep":  {worlds.KEP8x8("p"), 120},
		"rack": {worlds.Rack("p"), 80},
		// The names of pools are compared as bytes: pool-10 comes before pool-2.
		"eleven pools": {worlds.Times(11, func(pool string) *worlds.Site { return worlds.Groups(pool, 2, [][]int{{0, 1}, {1}, {0}}) }), 60},
		"cubes":        {worlds.Cubes(2)("p"), 25},
		"windows":      {worlds.Windows("p", worlds.Extent{X: 2, Y: 1, Z: 2}, []worlds.Extent{{X: 2, Y: 1, Z: 1}, {X: 1, Y: 1, Z: 2}, {X: 2, Y: 1, Z: 2}}), 20},
		"random":       {worlds.Random(rand.New(rand.NewPCG(7, 7)), "p", 7, 25), 120},
	} {
		t.Run(name, func(t *testing.T) {
			s := published(row.site)
			h := hardware.OfSnapshot(s)
			placer, err := policy.New(policy.FirstFit, policy.Options{Hardware: h})
			if err != nil {
				t.Fatal(err)
			}
			alloc := newAllocator(s, h.Inventory)
			rng := rand.New(rand.NewPCG(3, 3))
			var held []ledger.Holding
			for step := range row.steps / part {
				l := h.Ledger()
				taken := sets.New[structured.DeviceID]()
				for _, hold := range held {
					l.Take(hold)
					taken.Insert(structured.MakeDeviceID(hold.Pool.Driver, hold.Pool.Name, hold.Device))
				}
				var offers []ledger.Holding
				for _, o := range h.Offers() {
					want := alloc.first(t, o.Class, taken)
					got := ""
					d := placer.Place(ask(o.Class, o.Hosts), placement.World{Inventory: h.Inventory, Ledger: l})
					if d.Fits() {
						dev := d.PodSets[0].Claims[0].Instances[0].Devices[0]
						got = dev.Pool.Name + "/" + dev.Name
						offers = append(offers, ledger.Holding{Owner: fmt.Sprint(step), Reservation: fmt.Sprint(step), Pool: dev.Pool, Device: dev.Name})
					} else {
						refused++
					}
					if got != want {
						t.Fatalf("step %d, %d held: %s: firstfit takes %q, the allocator gives %q", step, len(held), o.Class, got, want)
					}
					compared++
				}
				// A random walk: something comes, or something goes.
				if len(offers) > 0 && rng.IntN(5) < 3 {
					held = append(held, offers[rng.IntN(len(offers))])
				} else if len(held) > 0 {
					i := rng.IntN(len(held))
					held = append(held[:i], held[i+1:]...)
				}
			}
		})
	}
	if compared < 2000/part || refused < 200/part {
		t.Errorf("only %d answers were compared, %d of them refusals", compared, refused)
	}
}
