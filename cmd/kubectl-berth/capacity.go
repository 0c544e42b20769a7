package main

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	calculator "github.com/berth-dev/berth/pkg/capacity"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/render"
)

func newCapacity() *cobra.Command {
	command, _ := subcommand("capacity", "Count the hardware",
		"Count devices, shares (one host of one device) and hosts of the managed pools: what there is, what is usable, what is\n"+
			"free, and how much of it can be had at once. CapacityFolds of the input tell what quota that makes.", capacity)
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
	calculate := &calculator.Calculator{}
	for _, class := range w.Inventory.Classes() {
		r.Classes = append(r.Classes, w.class(calculate, class))
	}
	slices.SortStableFunc(r.Classes, func(a, b render.ClassCapacity) int {
		return cmp.Or(cmp.Compare(b.Hosts, a.Hosts), inventory.Natural(a.DeviceClass, b.DeviceClass))
	})
	for _, p := range w.Inventory.Pools() {
		r.Pools = append(r.Pools, poolOf(p))
	}
	r.Folds = append(r.Folds, w.folds(calculate)...)
	r.Hosts = w.hosts()
	return r
}

// class counts the devices of a class: as things are, and as if nothing were held.
func (w *world) class(calculate *calculator.Calculator, class *inventory.Class) render.ClassCapacity {
	now := calculate.Of(w.Inventory, w.Ledger, class.Name)
	c := render.ClassCapacity{
		DeviceClass: class.Name, Devices: now.Devices, Usable: now.Usable, Free: now.Free,
		Shares: now.Whole, FreeShares: now.Together, Proved: now.Proved && now.WholeProved,
	}
	for _, span := range class.Spans() {
		c.Hosts = max(c.Hosts, span.Hosts)
	}
	for _, devices := range now.Largest {
		c.DisjointFree += len(devices)
	}
	return c
}

// hosts counts the hosts that managed devices name.
func (w *world) hosts() render.HostCapacity {
	c := calculator.CountHosts(w.Inventory, w.Ledger, func(inventory.PoolID) bool { return true })
	return render.HostCapacity{Total: c.Total, Usable: c.Usable, Free: c.Free, Stranded: c.Stranded}
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
