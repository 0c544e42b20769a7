package dra

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// Cache remembers what the last Read read of ResourceSlices, and nothing from before it. It is safe for concurrent use.
type Cache struct {
	mutex sync.Mutex
	eval  evaluator
	// epoch counts changes of node names and labels.
	epoch    int
	nodes    map[string]*corev1.Node
	topology *topology
	pools    map[inventory.PoolID]*poolEntry
	verdicts map[version]map[string]verdict
}

// version tells contents of ResourceSlices apart. A list from an informer has its items at fresh addresses each time, so
// an address says nothing about an object that the API server versioned. It does about one from a file: a snapshot's
// objects never change.
type version struct {
	name            string
	uid             types.UID
	resourceVersion string
	unversioned     *resourcev1.ResourceSlice
}

func versionOf(s *resourcev1.ResourceSlice) version {
	v := version{name: s.Name, uid: s.UID, resourceVersion: s.ResourceVersion}
	if v.resourceVersion == "" {
		v.unversioned = s
	}
	return v
}

type poolEntry struct {
	epoch   int
	read    readBy
	taints  string
	slices  []*resourcev1.ResourceSlice // by name
	pool    *inventory.Pool
	missing []inventory.Host
}

// readBy is what of an AcceleratorPool's spec decides how a pool is read.
type readBy struct {
	rankLabel    string
	interconnect berth.Interconnect
}

func readByOf(spec *berth.AcceleratorPoolSpec) readBy {
	return readBy{rankLabel: spec.RankLabel, interconnect: ptr.Deref(spec.Interconnect, berth.Interconnect{})}
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{eval: newEvaluator(), pools: map[inventory.PoolID]*poolEntry{}, verdicts: map[version]map[string]verdict{}}
}

// View is the hardware in one snapshot.
type View struct {
	Inventory *inventory.Inventory
	Managed   Managed

	topology *topology
}

// Read makes a View. The result does not depend on what was read before.
func (c *Cache) Read(s *snapshot.Snapshot) *View {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.observe(s.Nodes)

	managed := NewManaged(s.AcceleratorPools)
	published := map[inventory.PoolID][]*resourcev1.ResourceSlice{}
	var unmanaged []*resourcev1.ResourceSlice
	for _, sl := range s.ResourceSlices {
		if id := poolOf(sl); managed.Owner(id) != nil {
			published[id] = append(published[id], sl)
		} else {
			unmanaged = append(unmanaged, sl)
		}
	}
	in := inventory.Input{Hosts: nodes.Hosts(s.Nodes)}
	serveExtended(in.Hosts, s.DeviceClasses)
	entries := make(map[inventory.PoolID]*poolEntry, len(published))
	for id, slicesOf := range published {
		e := c.pool(id, slicesOf, &managed.Owner(id).Spec, s.DeviceTaintRules)
		entries[id] = e
		in.Pools = append(in.Pools, e.pool)
		in.Hosts = append(in.Hosts, e.missing...)
	}
	c.pools = entries
	in.Classes = c.classes(s.DeviceClasses, unmanaged)
	return &View{Inventory: inventory.Build(in), Managed: managed, topology: c.topology}
}

// observe starts a new epoch when a node's name or labels differ from the last time.
func (c *Cache) observe(list []*corev1.Node) {
	same := c.topology != nil && len(list) == len(c.nodes)
	for _, n := range list {
		old, known := c.nodes[n.Name]
		same = same && known && (old == n || maps.Equal(old.Labels, n.Labels))
	}
	if same {
		return
	}
	c.epoch++
	c.topology = newTopology(list)
	c.nodes = c.topology.byName
}

func (c *Cache) pool(id inventory.PoolID, list []*resourcev1.ResourceSlice, owner *berth.AcceleratorPoolSpec, rules []*resourcev1.DeviceTaintRule) *poolEntry {
	slices.SortFunc(list, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	taints := ruleTaints(rules, id)
	e := &poolEntry{epoch: c.epoch, read: readByOf(owner), taints: taintsKey(taints), slices: list}
	if old, ok := c.pools[id]; ok && old.epoch == e.epoch && old.read == e.read && old.taints == e.taints &&
		slices.EqualFunc(old.slices, list, func(a, b *resourcev1.ResourceSlice) bool { return versionOf(a) == versionOf(b) }) {
		return old
	}
	var all []inventory.Published
	for _, s := range list {
		p, missing := published(s, c.topology, owner, taints)
		all = append(all, p)
		e.missing = append(e.missing, missing...)
	}
	slices.SortFunc(e.missing, func(a, b inventory.Host) int { return cmp.Compare(a.Name, b.Name) })
	e.missing = slices.CompactFunc(e.missing, func(a, b inventory.Host) bool { return a.Name == b.Name })
	e.pool = inventory.NewPool(id, all)
	return e
}

// classes evaluates every DeviceClass on the slices of the newest generation of every managed pool, and looks for one
// unmanaged device where it selects none of them.
func (c *Cache) classes(list []*resourcev1.DeviceClass, unmanaged []*resourcev1.ResourceSlice) []inventory.ClassMatch {
	kept := map[version]map[string]verdict{}
	judge := func(class *resourcev1.DeviceClass, key string, s *resourcev1.ResourceSlice) verdict {
		at := versionOf(s)
		if kept[at] == nil {
			kept[at] = map[string]verdict{}
		}
		v, known := kept[at][key]
		if !known {
			if v, known = c.verdicts[at][key]; !known {
				v = c.eval.slice(class, s)
			}
			kept[at][key] = v
		}
		return v
	}
	ids := slices.SortedFunc(maps.Keys(c.pools), inventory.ComparePools)
	slices.SortFunc(unmanaged, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	var out []inventory.ClassMatch
	for _, class := range list {
		m := inventory.ClassMatch{Name: class.Name, Problem: c.eval.compile(class)}
		if m.Problem != "" {
			out = append(out, m)
			continue
		}
		key := selectorsKey(class)
		for _, id := range ids {
			e := c.pools[id]
			for _, s := range e.slices {
				if s.Spec.Pool.Generation != e.pool.Generation {
					continue
				}
				v := judge(class, key, s)
				for _, d := range v.devices {
					m.Devices = append(m.Devices, inventory.DeviceName{Pool: id, Name: d})
				}
				if m.Problem == "" {
					m.Problem = v.problem
				}
			}
		}
		for _, s := range unmanaged {
			if m.Unmanaged || len(m.Devices) > 0 {
				break
			}
			m.Unmanaged = len(judge(class, key, s).devices) > 0
		}
		out = append(out, m)
	}
	c.verdicts = kept
	return out
}
