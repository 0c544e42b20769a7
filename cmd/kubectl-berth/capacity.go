package main

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/render"
)

func newCapacity() *cobra.Command {
	command, _ := subcommand("capacity", "Count the hardware",
		"Count devices, shares (one host of one device) and hosts of the managed pools: what there is, what is usable, what is\n"+
			"free, and how much of it can be had at once.", capacity)
	return command
}

func capacity(command *cobra.Command, o *options) error {
	w, err := load(command, o, func(errors []string) report { return render.NewCapacityReport(nil, errors) })
	if err != nil {
		return err
	}
	r := w.capacity()
	return write(command, o, r, r.Warnings)
}

func (w *world) capacity() render.CapacityReport {
	r := render.NewCapacityReport(w.warnings, nil)
	for _, class := range w.Inventory.Classes() {
		r.Classes = append(r.Classes, w.class(class)...)
	}
	slices.SortStableFunc(r.Classes, func(a, b render.ClassCapacity) int {
		return cmp.Or(cmp.Compare(b.Hosts, a.Hosts), inventory.Natural(a.DeviceClass, b.DeviceClass))
	})
	for _, p := range w.Inventory.Pools() {
		r.Pools = append(r.Pools, poolOf(p))
	}
	for _, f := range w.objects.CapacityFolds {
		r.Folds = append(r.Folds, render.FoldCapacity{Name: f.Name, Message: noFolds})
	}
	r.Hosts = w.hosts()
	return r
}

// class counts the devices of a class, apart for each number of hosts that they span.
func (w *world) class(class *inventory.Class) []render.ClassCapacity {
	spans := map[int][]*inventory.Device{}
	for _, d := range class.Devices {
		spans[len(d.Hosts)] = append(spans[len(d.Hosts)], d)
	}
	if len(spans) == 0 {
		// Every device that it selects is in a pool that cannot be used.
		spans[0] = nil
	}
	empty := ledger.New(w.Inventory)
	var out []render.ClassCapacity
	for hosts, devices := range spans {
		c := render.ClassCapacity{DeviceClass: class.Name, Hosts: hosts, Devices: len(devices)}
		var usable, free []*inventory.Device
		for _, d := range devices {
			if !w.usable(d) {
				continue
			}
			usable = append(usable, d)
			if w.Ledger.Free(d) {
				free = append(free, d)
			}
		}
		c.Usable, c.Free = len(usable), len(free)
		atOnce, proved := largestSet(empty, usable)
		disjoint, provedToo := largestSet(w.Ledger, free)
		c.DisjointFree, c.Shares, c.FreeShares = disjoint, hosts*atOnce, hosts*disjoint
		c.Proved = proved && provedToo
		out = append(out, c)
	}
	return out
}

// usable reports whether the hardware of a device is well, whoever holds it.
func (w *world) usable(d *inventory.Device) bool {
	if d.Unusable != nil || len(d.Taints) > 0 || len(d.Hosts) == 0 {
		return false
	}
	return !slices.ContainsFunc(d.Hosts, func(name string) bool { return !w.well(name) })
}

func (w *world) well(host string) bool {
	h, known := w.Inventory.Host(host)
	return known && h.Blocked == nil
}

// hosts counts the hosts that managed devices name.
func (w *world) hosts() render.HostCapacity {
	named, offered, held := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, name := range w.Ledger.HeldHosts() {
		held[name] = true
	}
	for _, p := range w.Inventory.Pools() {
		multi := slices.ContainsFunc(p.Devices, func(d *inventory.Device) bool { return len(d.Hosts) > 1 })
		for _, d := range p.Devices {
			on := p.Usable() && (len(d.Hosts) > 1 || !multi) && w.usable(d) && w.Ledger.Free(d)
			for _, name := range d.Hosts {
				named[name] = true
				offered[name] = offered[name] || on
			}
		}
	}
	var c render.HostCapacity
	for name := range named {
		c.Total++
		if !w.well(name) {
			continue
		}
		c.Usable++
		if held[name] || w.Ledger.Quarantined(name) {
			continue
		}
		c.Free++
		if !offered[name] {
			c.Stranded++
		}
	}
	return c
}

func poolOf(p *inventory.Pool) render.PoolCapacity {
	c := render.PoolCapacity{Driver: p.ID.Driver, Pool: p.ID.Name, Generation: p.Generation, Complete: true, Valid: true}
	if p.Problem != nil {
		c.Reason, c.Message = string(p.Problem.Code), p.Problem.Message
		c.Complete = p.Problem.Code != reason.PoolIncomplete
		c.Valid = !c.Complete
	}
	return c
}
