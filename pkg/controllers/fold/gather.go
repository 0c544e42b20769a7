package fold

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/render"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// view is everything that one look decides on.
type view struct {
	snapshot *snapshot.Snapshot
	folds    []folded
	// deleted are folds that are on their way out and wait for Berth.
	deleted []*berth.CapacityFold
}

// folded is one fold and what was found of it.
type folded struct {
	now      time.Time
	object   *berth.CapacityFold
	compiled fold.Compiled
	// observed and losses are empty for a fold that makes no sense.
	observed fold.Observation
	losses   []string
	targets  []target
	// left are numbers that it wrote before its spec changed, and will not write any more.
	left []stay
	// written is its status as it was written down last.
	written *berth.CapacityFoldStatus
	*kept
}

// target is one target of a fold and what was found of it.
type target struct {
	berth.FoldTarget
	found
	// charged is what Kueue charges to it.
	charged int
}

// gather reads what there is. Without a fold it costs next to nothing.
func (r *reconciler) gather(ctx context.Context) (*view, error) {
	var any berth.CapacityFoldList
	if err := r.Client.List(ctx, &any, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing CapacityFolds: %w", err)
	}
	if len(any.Items) == 0 {
		clear(r.kept)
		return &view{}, nil
	}
	s, err := snapshot.Read(ctx, r.Client, r.TaintRules)
	if err != nil {
		return nil, err
	}
	v := &view{snapshot: s}
	byName := map[string]*berth.CapacityFold{}
	for _, f := range s.CapacityFolds {
		byName[f.Name] = f
		if f.DeletionTimestamp != nil && bound(f) {
			v.deleted = append(v.deleted, f)
		}
	}
	r.forget(s)
	if len(s.CapacityFolds) == len(v.deleted) {
		return v, nil
	}
	world := r.Cluster.World(s)
	compiled := r.compiler.Compile(s.CapacityFolds, world.Inventory)
	r.calculate.Sweep()
	now := r.Now()
	books := adaptkueue.NewBooks(s, compiled)
	for i, c := range compiled {
		object := byName[c.Name]
		f := folded{now: now, object: object, compiled: c, written: &object.Status, kept: r.keep(object.UID)}
		under := map[string]bool{}
		for _, t := range object.Spec.Targets {
			found := cached(s, t)
			found.stale = !f.looked || f.target(nameOf(t)).newest.after(found.version)
			for q := range books.Queues(t) {
				under[q] = true
			}
			f.targets = append(f.targets, target{FoldTarget: t, found: found, charged: books.Charged(c, t)})
		}
		f.left = leftBehind(s, &f)
		if c.Problem == nil {
			f.observed = c.Observe(&r.calculate, world.Inventory, world.Ledger, books.Gangs(i, under))
			f.losses = render.Losses(c.Losses(world.Inventory, world.Ledger))
		}
		v.folds = append(v.folds, f)
	}
	return v, nil
}

// shares of each fold.
func (v *view) shares() map[string]int {
	shares := map[string]int{}
	for _, f := range v.folds {
		shares[f.object.Name] = int(f.written.Shares)
	}
	return shares
}

// states is how many targets of all folds stand in each.
func (v *view) states() map[string]int {
	states := map[string]int{}
	for _, f := range v.folds {
		for _, t := range f.written.Targets {
			states[string(t.State)]++
		}
	}
	return states
}
