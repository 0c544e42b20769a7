package worlds

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Driver of all pools here.
const Driver = "tpu.example.com"

// Limits of the resource API.
const (
	devicesPerSlice = 64
	setsPerSlice    = 8
)

// Site is hardware as its driver publishes it.
type Site struct {
	Hosts  []inventory.Host
	Slices []inventory.Published
	// Classes by name. A device also has its class as its attribute "shape".
	Classes map[string][]inventory.DeviceName
}

// Inventory of the site.
func (s *Site) Inventory() *inventory.Inventory {
	of := map[inventory.PoolID][]inventory.Published{}
	for _, sl := range s.Slices {
		of[sl.Pool] = append(of[sl.Pool], sl)
	}
	in := inventory.Input{Hosts: s.Hosts}
	for id, published := range of {
		in.Pools = append(in.Pools, inventory.NewPool(id, published))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Classes)) {
		in.Classes = append(in.Classes, inventory.ClassMatch{Name: name, Devices: s.Classes[name]})
	}
	return inventory.Build(in)
}

// Add puts another site beside this one.
func (s *Site) Add(o *Site) *Site {
	s.Hosts = append(s.Hosts, o.Hosts...)
	s.Slices = append(s.Slices, o.Slices...)
	if s.Classes == nil {
		s.Classes = map[string][]inventory.DeviceName{}
	}
	for name, devices := range o.Classes {
		s.Classes[name] = append(s.Classes[name], devices...)
	}
	return s
}

// Times makes the site that has n pools of a family.
func Times(n int, family func(pool string) *Site) *Site {
	all := &Site{}
	for i := range n {
		all.Add(family(fmt.Sprint("pool-", i)))
	}
	return all
}

// builder collects one pool.
type builder struct {
	site    *Site
	id      inventory.PoolID
	sets    []inventory.CounterSet
	set     map[string]int
	devices []inventory.PublishedDevice
}

func newBuilder(pool string) *builder {
	return &builder{site: &Site{Classes: map[string][]inventory.DeviceName{}}, id: inventory.PoolID{Driver: Driver, Name: pool}, set: map[string]int{}}
}

// host adds a host with room for 8 cores and 10 pods.
func (b *builder) host(i int) string {
	name := fmt.Sprintf("%s-h%d", b.id.Name, i)
	b.site.Hosts = append(b.site.Hosts, inventory.Host{
		Name: name, Hostname: name, Rank: name, Allocatable: map[string]int64{"cpu": 8000, "memory": 64 << 30 * 1000, "pods": 10_000},
	})
	return name
}

func (b *builder) counter(set, name string, units int64) {
	i, ok := b.set[set]
	if !ok {
		i = len(b.sets)
		b.set[set], b.sets = i, append(b.sets, inventory.CounterSet{Name: set})
	}
	b.sets[i].Counters = append(b.sets[i].Counters, inventory.Counter{Set: set, Name: name, Milli: units * 1000})
}

func (b *builder) device(class, name string, hosts []string, consumes []inventory.Charge) {
	b.devices = append(b.devices, inventory.PublishedDevice{
		Device:   inventory.Device{Pool: b.id, Generation: 1, Name: name, Hosts: hosts, Attributes: map[string]string{"shape": class}},
		Consumes: consumes,
	})
	b.site.Classes[class] = append(b.site.Classes[class], inventory.DeviceName{Pool: b.id, Name: name})
}

func units(set, counter string, n int64) inventory.Charge {
	return inventory.Charge{CounterSet: set, Counter: counter, Milli: n * 1000}
}

// done publishes the pool in as few slices as the API allows.
func (b *builder) done() *Site {
	var all []inventory.Published
	slice := func() *inventory.Published {
		all = append(all, inventory.Published{Name: fmt.Sprintf("%s-%d", b.id.Name, len(all)), Pool: b.id, Generation: 1})
		return &all[len(all)-1]
	}
	for sets := range slices.Chunk(b.sets, setsPerSlice) {
		slice().CounterSets = sets
	}
	for devices := range slices.Chunk(b.devices, devicesPerSlice) {
		slice().Devices = devices
	}
	for i := range all {
		all[i].SliceCount = int64(len(all))
	}
	b.site.Slices = all
	return b.site
}

// Tie puts every device into the interconnect domain that of names, told apart by a node label; an empty name is none.
func (s *Site) Tie(label string, of func(d *inventory.Device) string) *Site {
	for i := range s.Slices {
		for j := range s.Slices[i].Devices {
			d := &s.Slices[i].Devices[j].Device
			d.Domain = inventory.Domain{By: "label " + label, Value: of(d)}
		}
	}
	return s
}
