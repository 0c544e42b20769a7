package main

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	calculator "github.com/berth-dev/berth/pkg/capacity"
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
	calculate, unheld := &calculator.Calculator{}, w.unheld()
	for _, class := range w.Inventory.Classes() {
		r.Classes = append(r.Classes, w.class(calculate, unheld, class))
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

// class counts the devices of a class: as things are, and as if nothing were held.
func (w *world) class(calculate *calculator.Calculator, unheld *ledger.Ledger, class *inventory.Class) render.ClassCapacity {
	now, ever := calculate.Of(w.Inventory, w.Ledger, class.Name), calculate.Of(w.Inventory, unheld, class.Name)
	c := render.ClassCapacity{
		DeviceClass: class.Name, Devices: now.Devices, Usable: now.Usable, Free: now.Free,
		Shares: ever.Together, FreeShares: now.Together, Proved: now.Proved && ever.Proved,
	}
	for _, span := range class.Spans() {
		c.Hosts = max(c.Hosts, span.Hosts)
	}
	for _, devices := range now.Largest {
		c.DisjointFree += len(devices)
	}
	return c
}

// unheld is the ledger of a world in which nothing is held; what is quarantined stays out of use.
func (w *world) unheld() *ledger.Ledger {
	l := ledger.New(w.Inventory)
	for _, r := range w.objects.Reservations {
		for _, q := range r.Status.Quarantine {
			l.Quarantine(inventory.PoolID{Driver: q.Driver, Name: q.Pool}, q.Node)
		}
	}
	return l
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
