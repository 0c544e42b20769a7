package main

import (
	"cmp"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	"github.com/berth-dev/berth/pkg/cluster"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/render"
	"github.com/berth-dev/berth/pkg/snapshot/files"
)

// world is what the files describe.
type world struct {
	placement.World
	// placer is the controller's.
	placer  placement.Placer
	objects *files.Objects
	lookup  adaptkueue.Lookup
	queues  adaptkueue.Queues
	// unrecorded are Workloads that have a slice and whose reservation is not in the input.
	unrecorded map[types.NamespacedName]bool
	// warnings for people, in the order in which they arise.
	warnings []string
}

func newWorld(o *files.Objects) *world {
	c := cluster.New()
	w := &world{
		World: c.World(&o.Snapshot), placer: placement.NewScored(0), objects: o, warnings: o.Warnings,
		unrecorded: map[types.NamespacedName]bool{},
	}
	var folds adaptkueue.FoldCompiler
	w.lookup = adaptkueue.NewLookup(&o.Snapshot, w.Inventory, folds.Compile(o.CapacityFolds, w.Inventory))
	w.queues = adaptkueue.NewQueues(o.LocalQueues, o.ClusterQueues, o.ResourceFlavors, o.WorkloadPriorityClasses, o.PriorityClasses)
	w.inspect()
	return w
}

// inspect warns of hardware that is there and cannot be used, and of what is taken twice.
func (w *world) inspect() {
	managed := dra.NewManaged(w.objects.AcceleratorPools)
	selects := map[string]bool{}
	for _, p := range w.Inventory.Pools() {
		if owner := managed.Owner(p.ID); owner != nil {
			selects[owner.Name] = true
		}
		if p.Problem != nil {
			w.warn("%s (%s): nothing of it is given out", p.Problem.Message, p.Problem.Code)
		}
	}
	for _, p := range w.objects.AcceleratorPools {
		overlaps := managed.Overlaps(p, w.Inventory.Pools())
		for _, o := range overlaps {
			w.warn("AcceleratorPool %s: %s", p.Name, o)
		}
		if !selects[p.Name] && len(overlaps) == 0 {
			w.warn("AcceleratorPool %s selects no pool: no ResourceSlice of driver %s matches", p.Name, p.Spec.Driver)
		}
	}
	for _, class := range slices.SortedFunc(slices.Values(w.objects.DeviceClasses), func(a, b *resourcev1.DeviceClass) int { return cmp.Compare(a.Name, b.Name) }) {
		switch c := w.Inventory.Class(class.Name); {
		case c.State == inventory.ClassBroken:
			w.warn("DeviceClass %s selects nothing: %s", c.Name, c.Problem)
		case c.State == inventory.ClassManaged && c.Problem != "":
			w.warn("DeviceClass %s does not select devices that its selectors fail on: %s", c.Name, c.Problem)
		}
	}
	for _, r := range w.objects.Reservations {
		if !r.Holds() {
			w.warn("GangReservation %s/%s is a target: the controller keeps what it names for %s, and here it is offered to all", r.Namespace, r.Name, r.Spec.WorkloadRef.Name)
		}
	}
	w.missing()
	w.unreserved()
	w.vanished()
	for _, d := range w.Ledger.Overdrawn() {
		what := "counter " + d.CounterSet + "/" + d.Counter
		if d.Device != "" {
			what = "device " + d.Device
		}
		w.warn("more of %s of pool %s is taken than there is (%s)", what, d.Pool, render.Some(d.Owners))
	}
}

// vanished warns of devices that somebody holds and nobody publishes: they take hardware that no count shows.
func (w *world) vanished() {
	for _, h := range w.Ledger.Holdings() {
		if w.Inventory.Device(h.Pool, h.Device) != nil {
			continue
		}
		what := "what it had stays taken"
		if len(h.Hosts) == 0 {
			what = "where it stood is not known, so nothing of the pool is given out"
		}
		w.warn("%s holds device %s/%s, which is not published now: %s", h.Owner, h.Pool.Name, h.Device, what)
	}
}

// missing warns of what objects of the input refer to and the input lacks. A fleet of hosts without Nodes is warned of
// already, and so is a Kueue of which nothing is there.
func (w *world) missing() {
	if len(w.objects.Nodes) > 0 {
		var hosts []string
		for _, name := range w.Inventory.Hosts() {
			if h, _ := w.Inventory.Host(name); h.Blocked != nil && h.Blocked.Code == reason.HostMissing {
				hosts = append(hosts, name)
			}
		}
		if len(hosts) > 0 {
			w.warn("devices stand on hosts that do not exist as Nodes and are not given out: %s", render.Some(hosts))
		}
	}
	for _, q := range w.objects.LocalQueues {
		if name := string(q.Spec.ClusterQueue); w.queues.Cluster(name) == nil && len(w.objects.ClusterQueues) > 0 {
			w.warn("LocalQueue %s/%s leads to ClusterQueue %s, which is not in the input", q.Namespace, q.Name, name)
		}
	}
}

func (w *world) warn(format string, args ...any) {
	w.warnings = append(w.warnings, fmt.Sprintf(format, args...))
}

// nodes translates values of the hostname label into names of nodes, where they are known.
func (w *world) nodes(hostnames []string) []string {
	byHostname := map[string]string{}
	for _, name := range w.Inventory.Hosts() {
		if h, ok := w.Inventory.Host(name); ok && h.Hostname != "" && byHostname[h.Hostname] == "" {
			byHostname[h.Hostname] = name
		}
	}
	out := make([]string, 0, len(hostnames))
	for _, h := range hostnames {
		if name := byHostname[h]; name != "" {
			h = name
		}
		out = append(out, h)
	}
	return out
}
