package performance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// families are the pools that decisions are compared on, half of each taken.
var families = []struct {
	name string
	site func() *worlds.Site
	// largest span that is taken.
	largest   int
	questions []question
}{
	{"kep8x8", func() *worlds.Site { return worlds.KEP8x8("p") }, 4, []question{{"tpu-2x2", 1, 1}, {"tpu-2x2", 1, 3}}},
	{"cubes", func() *worlds.Site { return worlds.Cubes(140)("p") }, 32, []question{{"v5p-1", 1, 1}, {"v5p-4", 4, 1}, {"v5p-16", 16, 1}, {"v5p-16", 16, 8}}},
	{"torus", func() *worlds.Site { return worlds.Torus("p") }, 64, []question{{"v5p-1", 1, 1}, {"v5p-16", 16, 1}, {"v5p-32", 32, 1}, {"v5p-64", 64, 1}, {"v5p-16", 16, 8}}},
}

// question is a gang of k devices of a class.
type question struct {
	class   string
	span, k int
}

func (q question) String() string {
	if q.k == 1 {
		return q.class
	}
	return fmt.Sprintf("%s-k%d", q.class, q.k)
}

// referee is kube-scheduler's allocator on a site: the first device that fits.
type referee struct {
	slices  []*resourcev1.ResourceSlice
	classes classLister
	cache   *cel.Cache
}

func newReferee(site *worlds.Site) *referee {
	r := &referee{slices: dratest.Publish(site.Slices), cache: cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true})}
	for class := range site.Classes {
		r.classes = append(r.classes, dratest.ByTopology(class, worlds.Driver, class))
	}
	return r
}

type classLister []*resourcev1.DeviceClass

func (l classLister) List() ([]*resourcev1.DeviceClass, error) { return l, nil }

func (l classLister) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, c := range l {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no class %s", name)
}

// taken is what a ledger says in the allocator's words.
func taken(l *ledger.Ledger) sets.Set[structured.DeviceID] {
	out := sets.New[structured.DeviceID]()
	for _, h := range l.Holdings() {
		out.Insert(structured.MakeDeviceID(h.Pool.Driver, h.Pool.Name, h.Device))
	}
	return out
}

// allocate asks for one device on a node, as the scheduler does for a pod, and returns it, or nothing.
func (r *referee) allocate(b *testing.B, state sets.Set[structured.DeviceID], node *corev1.Node, class string) []structured.DeviceID {
	b.Helper()
	claim := []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: *dratest.Request(class, 1)}}
	a, err := structured.NewAllocator(context.Background(), structured.Features{PartitionableDevices: true, DeviceTaints: true, ConsumableCapacity: true},
		structured.AllocatedState{AllocatedDevices: state}, r.classes, r.slices, r.cache)
	if err != nil {
		b.Fatal(err)
	}
	results, err := a.Allocate(context.Background(), node, claim)
	if err != nil {
		b.Fatal(err)
	}
	var out []structured.DeviceID
	for _, result := range results {
		for _, d := range result.Devices.Results {
			out = append(out, structured.MakeDeviceID(d.Driver, d.Pool, d.Device))
		}
	}
	return out
}

// BenchmarkDecision is one decision by kube-scheduler's allocator, which takes the first device that fits, and one by
// Scored, which weighs them all, on the same pool with the same half of it taken. For Scored one host came or went since
// its last decision, as when gangs follow each other; at scored-anew all that is taken is another, so that nothing of its
// last decision helps it. The allocator is asked for the node that Scored chose, so that it succeeds at its first; for k
// devices it is asked k times, because it knows no gangs. At new-pod-shape each gang's pods ask for a cpu and memory that
// nobody asked for before, which the allocator does not look at.
func BenchmarkDecision(b *testing.B) {
	for _, family := range families {
		site := family.site()
		inv, r := site.Inventory(), newReferee(site)
		l := halfTaken(inv, rand.New(rand.NewPCG(1, 1)), family.largest)
		other := halfTaken(inv, rand.New(rand.NewPCG(2, 1)), family.largest)
		both := byTurns(inv, l)
		anew := [2]placement.World{both[0], {Inventory: inv, Ledger: other}}
		var allocator mean
		structured := func(name string, q question) {
			b.Run(name+"/by=structured", func(b *testing.B) {
				d := placement.NewScored(0).Place(ask(q.class, q.span, q.k), both[0])
				if !d.Fits() {
					b.Fatal(d.Refusal)
				}
				state := taken(l)
				allocator.add(measure(b, func(int) {
					now := state.Clone()
					for i := range q.k {
						got := r.allocate(b, now, dratest.Node(d.PodSets[0].Hosts[i*q.span]), q.class)
						if len(got) != 1 {
							b.Fatalf("got %v", got)
						}
						now.Insert(got...)
					}
				}))
			})
		}
		scored := func(name string, q question, turns [2]placement.World, requests func(int) map[string]int64) {
			b.Run(name, func(b *testing.B) {
				placer, g := placement.NewScored(0), ask(q.class, q.span, q.k)
				allocator.faster(b, measure(b, func(i int) {
					if requests != nil {
						g.PodSets[0].Requests = requests(i)
					}
					if !placer.Place(g, turns[i%2]).Fits() {
						b.Fatal("does not fit")
					}
				}))
			})
		}
		for _, q := range family.questions {
			allocator = mean{}
			name := family.name + "/" + q.String()
			structured(name, q)
			scored(name+"/by=scored", q, both, nil)
			scored(name+"/by=scored-anew", q, anew, nil)
		}
		q := family.questions[len(family.questions)-2] // The last of one device.
		allocator = mean{}
		name := family.name + "/" + q.String() + "-new-pod-shape"
		structured(name, q)
		scored(name+"/by=scored", q, both, func(i int) map[string]int64 {
			return map[string]int64{"cpu": int64(1 + i%4000), "memory": int64(i), "pods": 1000}
		})
	}
}

// refusing is a ledger in which no device of the class is free: of each that was, one host is held.
func refusing(inv *inventory.Inventory, l *ledger.Ledger, class string) *ledger.Ledger {
	l = l.Clone()
	single := map[string]*inventory.Device{}
	for _, d := range inv.Pools()[0].Devices {
		if len(d.Hosts) == 1 {
			single[d.Hosts[0]] = d
		}
	}
	for i, d := range inv.Class(class).Devices {
		if l.Free(d) {
			s := single[d.Hosts[0]]
			l.Take(ledger.Holding{Owner: fmt.Sprint("x/one-of-", i), Pool: s.Pool, Device: s.Name})
		}
	}
	return l
}

// BenchmarkRefusal is the answer that nothing fits, with its reason: for kube-scheduler's allocator on one node, after which
// the scheduler asks for the next. again is the same question when nothing was touched since.
func BenchmarkRefusal(b *testing.B) {
	for _, family := range families[1:] {
		site := family.site()
		inv, r := site.Inventory(), newReferee(site)
		half := halfTaken(inv, rand.New(rand.NewPCG(1, 1)), family.largest)
		for _, q := range []question{{"v5p-16", 16, 1}, {"v5p-64", 64, 1}} {
			l := refusing(inv, half, q.class)
			both := byTurns(inv, l)
			g := ask(q.class, q.span, q.k)
			var allocator mean
			b.Run(fmt.Sprintf("%s/%s/by=structured", family.name, q), func(b *testing.B) {
				state, node := taken(l), dratest.Node(inv.Class(q.class).Devices[0].Hosts[0])
				allocator.add(measure(b, func(int) {
					if got := r.allocate(b, state, node, q.class); len(got) != 0 {
						b.Fatalf("got %v", got)
					}
				}))
			})
			place := func(b *testing.B, worlds ...placement.World) {
				placer := placement.NewScored(0)
				allocator.faster(b, measure(b, func(i int) {
					if placer.Place(g, worlds[i%len(worlds)]).Fits() {
						b.Fatal("fits")
					}
				}))
			}
			b.Run(fmt.Sprintf("%s/%s/by=scored", family.name, q), func(b *testing.B) { place(b, both[:]...) })
			b.Run(fmt.Sprintf("%s/%s/by=scored-again", family.name, q), func(b *testing.B) { place(b, both[0]) })
		}
		b.Run(family.name+"/all-hosts/by=scored", func(b *testing.B) {
			g := gang.Gang{}
			g.PodSets = append(g.PodSets, ask("v5p-1", 1, 5000).PodSets...)
			placer := placement.NewScored(0)
			both := byTurns(inv, half)
			measure(b, func(i int) {
				if placer.Place(g, both[i%2]).Fits() {
					b.Fatal("fits")
				}
			})
		})
	}
}
