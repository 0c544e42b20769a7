package fold

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
	// shares is its number, once that is written down.
	shares int
	*kept
}

// target is one target of a fold and what was found of it.
type target struct {
	berth.FoldTarget
	found
	// charged is what Kueue charges to it.
	charged int
}

// kept is what is remembered of a fold from look to look. What must outlive the process is in the fold's status.
type kept struct {
	// settled is the number of the hardware, once known.
	settled fold.Settled
	known   bool
	// looked is true when a look has read all targets from the API server. Until then a cache may be behind what a former
	// leader wrote.
	looked bool
	// wrote is when the status was written last, and waits since when something of it waits to be written.
	wrote, waits time.Time
	// targets by name.
	targets map[targetName]*keptTarget
}

type targetName struct {
	kind berth.FoldTargetKind
	name string
}

// keptTarget is what is remembered of one target.
type keptTarget struct {
	// confirmed is the number that was decided and then seen there; negative for none.
	confirmed int
	// newest is the newest version that the API server showed. The cache may be behind that for a moment.
	newest version
	// refused is the last write that the API server refused.
	refused *refusal
}

type version struct {
	uid        types.UID
	generation int64
}

// refusal is a write that is not worth trying again before the object or the number is another, or some time has passed.
type refusal struct {
	of      version
	want    int
	message string
	at      time.Time
}

// target returns what is remembered of a target.
func (k *kept) target(name targetName) *keptTarget {
	t := k.targets[name]
	if t == nil {
		t = &keptTarget{confirmed: -1}
		k.targets[name] = t
	}
	return t
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
		f := folded{now: now, object: object, compiled: c, shares: int(object.Status.Shares), kept: r.keep(object.UID)}
		under := map[string]bool{}
		for _, t := range object.Spec.Targets {
			found := cached(s, t)
			found.stale = !f.looked || f.target(nameOf(t)).newest.after(found.version)
			queues := books.Queues(t)
			for q := range queues {
				under[q] = true
			}
			f.targets = append(f.targets, target{FoldTarget: t, found: found, charged: books.Charged(c, queues)})
		}
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
		shares[f.object.Name] = f.shares
	}
	return shares
}

// keep returns what is remembered of a fold.
func (r *reconciler) keep(uid types.UID) *kept {
	k := r.kept[uid]
	if k == nil {
		k = &kept{targets: map[targetName]*keptTarget{}}
		r.kept[uid] = k
	}
	return k
}

// forget drops what is remembered of folds and targets that are no more.
func (r *reconciler) forget(s *snapshot.Snapshot) {
	there := map[types.UID]*berth.CapacityFold{}
	for _, f := range s.CapacityFolds {
		there[f.UID] = f
	}
	for uid, k := range r.kept {
		f := there[uid]
		if f == nil {
			delete(r.kept, uid)
			continue
		}
		named := map[targetName]bool{}
		for _, t := range f.Spec.Targets {
			named[nameOf(t)] = true
		}
		for name := range k.targets {
			if !named[name] {
				delete(k.targets, name)
			}
		}
	}
}

func nameOf(t berth.FoldTarget) targetName { return targetName{t.Kind, t.Name} }

// after reports whether a version is later than what was found of the same object.
func (v version) after(found version) bool {
	return v.uid != "" && (v.uid != found.uid && found.uid == "" || v.uid == found.uid && v.generation > found.generation)
}
