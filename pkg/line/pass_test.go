package line_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// entry is a gang of one host, queued at a minute.
func entry(queue, name string, minute int) line.Entry {
	return line.Entry{
		Gang:  gang.Gang{Key: gang.Key{Namespace: "ml", Name: name}, UID: name, PodSets: []gang.PodSet{{Name: "main", Count: 1}}},
		Queue: queue, QueuedAt: time.Unix(0, 0).Add(time.Duration(minute) * time.Minute),
	}
}

func of(e line.Entry, hosts int) line.Entry        { e.Gang.PodSets[0].Count = hosts; return e }
func urgent(e line.Entry, p int32) line.Entry      { e.Priority = p; return e }
func in(e line.Entry, namespace string) line.Entry { e.Gang.Key.Namespace = namespace; return e }

// room is a placer with a number of free seats on one host.
type room struct{ free int }

// Place looks at the ledger for what was given out already: Pass books that before it asks about the next gang.
func (r *room) Place(g gang.Gang, w placement.World) placement.Decision {
	n := g.PodSets[0].Count
	if used := len(w.Ledger.Blockers("room")); n > r.free-used {
		return placement.Decision{Refusal: &reason.Refusal{Code: reason.NoFreeSlice, Message: fmt.Sprintf("%d of %d", r.free-used, n)}}
	}
	return placement.Decision{PodSets: []placement.PodSet{{Name: "main", Hosts: slices.Repeat([]string{"room"}, n)}}}
}

func input(entries []line.Entry, held map[string]int, free int) line.Input {
	for i := range entries {
		entries[i].NoTarget = true
	}
	inv := inventory.Build(inventory.Input{})
	return line.Input{Waiting: entries, Held: held, Placer: &room{free}, World: placement.World{Inventory: inv, Ledger: ledger.New(inv)}}
}

// pass tells in which order the gangs were asked about; those that got nothing are in brackets.
func pass(entries []line.Entry, held map[string]int, free int) string {
	var told []string
	for _, o := range line.Pass(input(entries, held, free)).Outcomes {
		name := o.Entry.Gang.Key.Name
		if !o.Decision.Fits() {
			name = "(" + name + ")"
		}
		told = append(told, name)
	}
	return strings.Join(told, " ")
}

func TestPass(t *testing.T) {
	for _, row := range []struct {
		name    string
		entries []line.Entry
		held    map[string]int
		free    int
		want    string
	}{
		{name: "nobody"},
		{"who came first", []line.Entry{entry("q", "b", 2), entry("q", "a", 3), entry("q", "c", 1)}, nil, 9, "c b a"},
		{"priority before time", []line.Entry{entry("q", "a", 1), urgent(entry("q", "b", 2), 5), urgent(entry("q", "c", 3), -1)}, nil, 9, "b a c"},
		{"equals by name", []line.Entry{entry("q", "b", 1), entry("q", "a", 1)}, nil, 9, "a b"},
		{"equals by namespace first", []line.Entry{in(entry("q", "a", 1), "z"), in(entry("q", "b", 1), "x")}, nil, 9, "b a"},
		{"who does not fit lets others try", []line.Entry{of(entry("q", "big", 1), 4), entry("q", "small", 2)}, nil, 3, "(big) small"},
		{"what one got the next does not get", []line.Entry{of(entry("q", "a", 1), 2), of(entry("q", "b", 2), 2)}, nil, 3, "a (b)"},

		{"queues take turns", []line.Entry{entry("x", "x1", 1), entry("x", "x2", 2), entry("y", "y1", 3), entry("y", "y2", 4)}, nil, 9, "x1 y1 x2 y2"},
		{"by hosts, not by gangs", []line.Entry{of(entry("x", "x1", 1), 3), entry("x", "x2", 2), entry("y", "y1", 3), entry("y", "y2", 4), entry("y", "y3", 5), entry("y", "y4", 6)}, nil, 9, "x1 y1 y2 y3 x2 y4"},
		{"who holds less is first", []line.Entry{entry("x", "x1", 1), entry("y", "y1", 2)}, map[string]int{"x": 1}, 9, "y1 x1"},
		{"what others hold does not matter", []line.Entry{entry("x", "x1", 1), entry("y", "y1", 2)}, map[string]int{"z": 7, "": 3}, 9, "x1 y1"},
		{"priority decides between queues that hold the same", []line.Entry{entry("x", "x1", 1), urgent(entry("y", "y1", 2), 1)}, map[string]int{"x": 2, "y": 2}, 9, "y1 x1"},
		{"priority does not help a queue that holds more", []line.Entry{entry("x", "x1", 1), urgent(entry("y", "y1", 2), 1)}, map[string]int{"y": 1}, 9, "x1 y1"},
		{"who gets nothing does not lose its turn", []line.Entry{of(entry("x", "x1", 1), 9), entry("x", "x2", 2), entry("y", "y1", 3)}, nil, 3, "(x1) x2 y1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := pass(row.entries, row.held, row.free); got != row.want {
				t.Errorf("\n got %s\nwant %s", got, row.want)
			}
		})
	}
}

func TestPassChangesNothingThatItWasGiven(t *testing.T) {
	held := map[string]int{"x": 1}
	entries := []line.Entry{entry("x", "b", 2), entry("x", "a", 1)}
	pass(entries, held, 9)
	if held["x"] != 1 || len(held) != 1 || entries[0].Gang.Key.Name != "b" {
		t.Errorf("held %v, entries %v", held, entries)
	}
}

func TestPassCarriesTheRefusal(t *testing.T) {
	out := line.Pass(input([]line.Entry{entry("q", "a", 1)}, nil, 0)).Outcomes
	if len(out) != 1 || out[0].Decision.Refusal.Message != "0 of 1" {
		t.Errorf("%+v", out)
	}
}

// A pass depends on who waits and on nothing else: not on the order in which they were listed, nor on chance.
func TestPassIsReproducible(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var entries []line.Entry
		held := map[string]int{}
		for i := range 2 + rng.IntN(20) {
			queue := string(rune('a' + rng.IntN(4)))
			held[queue] = rng.IntN(4)
			e := of(entry(queue, fmt.Sprintf("g%02d", i), rng.IntN(3)), 1+rng.IntN(4))
			entries = append(entries, urgent(in(e, string(rune('m'+rng.IntN(2)))), int32(rng.IntN(2))))
		}
		want := pass(slices.Clone(entries), held, 20)
		for range 5 {
			rng.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
			if got := pass(entries, held, 20); got != want {
				t.Fatalf("seed %d:\n got %s\nwant %s", seed, got, want)
			}
		}
		if strings.Count(want, "g") != len(entries) {
			t.Fatalf("seed %d: %d gangs wait and the pass was %s", seed, len(entries), want)
		}
	}
}
