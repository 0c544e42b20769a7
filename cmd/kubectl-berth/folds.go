package main

import (
	"cmp"

	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	calculator "github.com/berth-dev/berth/pkg/capacity"
	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/render"
)

// folds counts what the controller would write, the oldest fold first. There is one observation and no time, so nothing is
// held back by the hysteresis. What is charged is read from the Workloads of the input.
func (w *world) folds(calculate *calculator.Calculator) []render.FoldCapacity {
	var compiler fold.Compiler
	compiled := compiler.Compile(w.Inventory, adaptkueue.Folds(w.objects.CapacityFolds))
	objects := map[string]*berth.CapacityFold{}
	for _, f := range w.objects.CapacityFolds {
		objects[f.Name] = f
	}
	books := adaptkueue.NewBooks(&w.objects.Snapshot, compiled)
	var out []render.FoldCapacity
	for i := range compiled {
		c, object := &compiled[i], objects[compiled[i].Name]
		f := render.FoldCapacity{
			Name: c.Name, Flavor: c.Flavor, Resource: c.Resource, Mode: string(cmp.Or(object.Spec.Mode, berth.FoldPhysical)),
			Losses: []string{}, Targets: []render.FoldQuota{},
		}
		if c.Problem != nil {
			f.Reason, f.Message = string(c.Problem.Code), c.Problem.Message
			f.Proved = true
			out = append(out, f)
			continue
		}
		f.Ready, f.Tiling = true, c.NotTiling == nil
		if !f.Tiling {
			f.Reason, f.Message = string(c.NotTiling.Code), c.NotTiling.Message
		}
		under := map[string]bool{}
		for _, t := range object.Spec.Targets {
			for q := range books.Queues(t) {
				under[q] = true
			}
		}
		o := c.Observe(calculate, w.Inventory, w.Ledger, books.Gangs(i, under))
		atLeast, _ := o.Hardware(c.Live)
		f.Shares = max(0, atLeast-o.Uncharged(c.Live))
		f.Published, f.Usable, f.Held, f.Free, f.Proved = c.Published, o.Usable, o.Held, o.Free, o.Proved
		f.Losses = append(f.Losses, render.Losses(c.Losses(w.Inventory, w.Ledger))...)
		f.Targets = append(f.Targets, w.divide(f.Shares, *c, object, books)...)
		out = append(out, f)
	}
	return out
}

// divide is what each target of a fold should hold.
func (w *world) divide(number int, c fold.Compiled, object *berth.CapacityFold, books *adaptkueue.Books) []render.FoldQuota {
	shares := make([]fold.Share, 0, len(object.Spec.Targets))
	for _, t := range object.Spec.Targets {
		s := fold.Share{
			// Files may hold what the API server would refuse.
			Weight: max(0, int(ptr.Deref(t.Weight, 1))), Min: max(0, int(t.Min)), Max: -1, Charged: books.Charged(c, t),
		}
		if t.Max != nil {
			s.Max = max(0, int(*t.Max))
		}
		if q := adaptkueue.QuotaIn(w.groups(t), c.Flavor, c.Resource); q != nil {
			s.Holds = max(0, int(q.NominalQuota.Value()))
		}
		shares = append(shares, s)
	}
	out := make([]render.FoldQuota, 0, len(shares))
	for i, n := range fold.Divide(number, shares) {
		out = append(out, render.FoldQuota{Kind: string(object.Spec.Targets[i].Kind), Name: object.Spec.Targets[i].Name, Quota: n})
	}
	return out
}

// groups are the quotas of a target of the input.
func (w *world) groups(t berth.FoldTarget) []kueue.ResourceGroup {
	if t.Kind == berth.FoldClusterQueue {
		if q := w.queues.Cluster(t.Name); q != nil {
			return q.Spec.ResourceGroups
		}
		return nil
	}
	for _, c := range w.objects.Cohorts {
		if c.Name == t.Name {
			return c.Spec.ResourceGroups
		}
	}
	return nil
}
