package matrix

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/test/faults"
)

// Environment variables that choose the cells.
const (
	// envCells is "full" for all cells, or a text: then the cells are played whose names contain it. Unset: see choose.
	envCells = "BERTH_MATRIX"
	// envSeed is the seed of the choice; default 1.
	envSeed = "BERTH_MATRIX_SEED"
)

// allCells are the cells of one takeover, site by site.
func allCells(sites []site, how takeover) []cell {
	var all []cell
	for _, s := range sites {
		for _, kind := range kinds(how) {
			for _, a := range s.accidents() {
				all = append(all, cell{s, kind, how, a})
			}
		}
	}
	return all
}

// choose picks one cell for every site, kind and takeover, so that every site meets every accident at least once.
func choose(all []cell, seed uint64) []cell {
	random := rand.New(rand.NewPCG(seed, 0))
	deck := map[site][]accident{}
	var chosen []cell
	for _, c := range all {
		c.accident = ""
		if slices.Contains(chosen, c) {
			continue
		}
		chosen = append(chosen, c)
	}
	for i := range chosen {
		s := chosen[i].site
		if len(deck[s]) == 0 {
			deck[s] = slices.Clone(s.accidents())
			random.Shuffle(len(deck[s]), func(i, j int) { deck[s][i], deck[s][j] = deck[s][j], deck[s][i] })
		}
		chosen[i].accident, deck[s] = deck[s][0], deck[s][1:]
	}
	return chosen
}

// cellsToPlay returns the cells that the environment asks for.
func cellsToPlay(sites []site, which string, seed uint64) []cell {
	var all []cell
	for _, how := range []takeover{restart, laggard, survives} {
		all = append(all, allCells(sites, how)...)
	}
	switch which {
	case "":
		return choose(all, seed)
	case "full":
		return all
	}
	return slices.DeleteFunc(all, func(c cell) bool { return !strings.Contains(c.String(), which) })
}

func TestChoiceOfCells(t *testing.T) {
	sites := []site{{ends, faults.At("create pods#1")}, {ends, faults.At("delete pods")}, {evicted, faults.At("delete pods")}}
	all := cellsToPlay(sites, "full", 1)
	if want := (6 + 6 + 5) * (3 + 3 + 2); len(all) != want {
		t.Fatalf("%d cells, want %d", len(all), want)
	}
	for seed := range uint64(20) {
		chosen := cellsToPlay(sites, "", seed)
		if want := len(sites) * (3 + 3 + 2); len(chosen) != want {
			t.Fatalf("%d cells are chosen, want %d", len(chosen), want)
		}
		for _, c := range all {
			triple := func(o cell) bool { return o.site == c.site && o.kind == c.kind && o.takeover == c.takeover }
			pair := func(o cell) bool { return o.site == c.site && o.accident == c.accident }
			if !slices.ContainsFunc(chosen, triple) || !slices.ContainsFunc(chosen, pair) {
				t.Errorf("seed %d: nothing is chosen in the place of %s", seed, c)
			}
		}
	}
	if got := cellsToPlay(sites, "delete pods#1, no response, laggard, claim", 1); len(got) != 1 || got[0].site != sites[1] {
		t.Errorf("a name chooses %v", got)
	}
}
