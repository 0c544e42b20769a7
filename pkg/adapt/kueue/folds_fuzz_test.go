package kueue

import (
	"reflect"
	"testing"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/snapshot/fuzztest"
)

// FuzzFolds compiles whatever CapacityFolds and hardware come: the order of the objects does not matter, no two folds that
// make sense have a host or a quota in common, and one that makes none says why.
func FuzzFolds(f *testing.F) {
	fuzztest.Add(f)
	site := fuzztest.Site()
	b := fuzztest.New(site)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := b.Broken(data, site)
		inv := dra.NewCache().Read(s).Inventory
		var compiler FoldCompiler
		folds := compiler.Compile(s.CapacityFolds, inv)
		owner := map[string]string{}
		var problems []string
		for i := range folds {
			if folds[i].Problem != nil {
				if folds[i].Problem.Code == "" || folds[i].Problem.Message == "" {
					t.Errorf("CapacityFold %s makes no sense, and does not say why", folds[i].Name)
				}
				problems = append(problems, folds[i].Problem.Error())
				continue
			}
			for h := range folds[i].Hosts {
				if owner[h] != "" {
					t.Errorf("host %s belongs to CapacityFolds %s and %s", h, owner[h], folds[i].Name)
				}
				owner[h] = folds[i].Name
			}
			if folds[i].Published < 0 || len(folds[i].Counted) == 0 {
				t.Errorf("CapacityFold %s: %d shares of %v", folds[i].Name, folds[i].Published, folds[i].Counted)
			}
		}
		var again FoldCompiler
		r := fuzztest.Reversed(s)
		var problemsAgain []string
		for _, f := range again.Compile(r.CapacityFolds, dra.NewCache().Read(r).Inventory) {
			if f.Problem != nil {
				problemsAgain = append(problemsAgain, f.Problem.Error())
			}
		}
		if !reflect.DeepEqual(problems, problemsAgain) {
			t.Errorf("in another order %q, before %q", problemsAgain, problems)
		}
		lookup := NewLookup(s, inv, folds)
		for _, wl := range s.Workloads {
			req, refusal := Read(wl, lookup)
			if refusal != nil {
				continue
			}
			if why := NotCharged(wl, req.Gang, lookup); why != nil && why.Message == "" {
				t.Error("a gang is not charged, and nobody says for what")
			}
			for _, set := range req.Gang.PodSets {
				assigned := assignment(wl, kueue.PodSetReference(set.Name))
				if assigned == nil {
					continue
				}
				flavor := string(assigned.Flavors["berth.dev/shares"])
				for i := range folds {
					if folds[i].Problem != nil || folds[i].Resource != "berth.dev/shares" || flavor == "" || folds[i].Flavor == flavor {
						continue
					}
					for h := range folds[i].Hosts {
						if _, closed := set.Ineligible[h]; !closed {
							t.Errorf("host %s of flavor %s is open to a gang of flavor %s", h, folds[i].Flavor, flavor)
						}
					}
				}
			}
		}
	})
}
