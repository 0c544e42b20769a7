package kueue

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/inventory"
)

// Territories are the hosts that stand for flavors. Gangs that ask for the same share one answer. It is not safe for
// concurrent use.
type Territories struct {
	folds []fold.Compiled
	hosts []string
	// answers by the map that they extend and by what was assigned.
	answers map[territoryKey]map[string]string
}

type territoryKey struct {
	base     uintptr
	assigned string
}

// NewTerritories of folds on an inventory. Folds that make no sense have no hosts.
func NewTerritories(folds []fold.Compiled, inv *inventory.Inventory) *Territories {
	t := &Territories{answers: map[territoryKey]map[string]string{}}
	for _, f := range folds {
		if f.Problem == nil {
			t.folds = append(t.folds, f)
		}
	}
	if len(t.folds) > 0 {
		t.hosts = inv.Hosts()
	}
	return t
}

// Close adds to the hosts that pods may not use those that are not their flavors': what Kueue charges to one flavor must not
// come out of another one's hardware. For each resource of a fold that the pods are charged for, the hosts of other flavors
// are closed, and where the assigned flavor has a fold all hosts but its own. The map is not changed.
func (t *Territories) Close(ineligible map[string]string, assigned *kueue.PodSetAssignment) map[string]string {
	if t == nil || len(t.folds) == 0 || assigned == nil {
		return ineligible
	}
	flavors := map[string]string{}
	for _, f := range t.folds {
		if flavor := assigned.Flavors[corev1.ResourceName(f.Resource)]; flavor != "" {
			flavors[f.Resource] = string(flavor)
		}
	}
	if len(flavors) == 0 {
		return ineligible
	}
	resources := slices.Sorted(maps.Keys(flavors))
	key := territoryKey{base: reflect.ValueOf(ineligible).Pointer()}
	for _, r := range resources {
		key.assigned += r + "=" + flavors[r] + "\n"
	}
	if known, ok := t.answers[key]; ok {
		return known
	}
	out := maps.Clone(ineligible)
	if out == nil {
		out = map[string]string{}
	}
	for _, r := range resources {
		t.close(out, r, flavors[r])
	}
	t.answers[key] = out
	return out
}

func (t *Territories) close(out map[string]string, resource, flavor string) {
	var own []fold.Compiled
	for _, f := range t.folds {
		switch {
		case f.Resource != resource:
		case f.Flavor == flavor:
			own = append(own, f)
		default:
			for h := range f.Hosts {
				if _, closed := out[h]; !closed {
					out[h] = fmt.Sprintf("belongs to flavor %s, and Kueue assigned %s", f.Flavor, flavor)
				}
			}
		}
	}
	if len(own) == 0 {
		return
	}
	for _, h := range t.hosts {
		if _, closed := out[h]; !closed && !slices.ContainsFunc(own, func(f fold.Compiled) bool { _, in := f.Hosts[h]; return in }) {
			out[h] = fmt.Sprintf("does not belong to flavor %s, which Kueue assigned", flavor)
		}
	}
}
