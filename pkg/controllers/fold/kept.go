package fold

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/snapshot"
)

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
	// wroteFlavor and wroteResource are those of the numbers that this process wrote; "" before.
	wroteFlavor, wroteResource string
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
