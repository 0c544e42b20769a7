package line_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
)

// asking is a gang of so many hosts for each of the classes.
func asking(uid string, hosts int, classes ...string) gang.Gang {
	g := gang.Gang{UID: uid, PodSets: []gang.PodSet{{Name: "main", Count: hosts}}}
	for _, c := range classes {
		g.PodSets[0].Claims = append(g.PodSets[0].Claims, gang.Claim{PodClaim: c, Requests: []gang.Request{{Name: c, Class: c, Count: 1}}})
	}
	return g
}

func TestDemand(t *testing.T) {
	root := math.Sqrt2
	waits := func(gangs ...gang.Gang) (all []line.Entry) {
		for _, g := range gangs {
			all = append(all, line.Entry{Gang: g})
		}
		return all
	}
	for _, row := range []struct {
		name    string
		served  map[string]gang.Gang // by "hours ago"
		waiting []line.Entry
		want    placement.Demand
	}{
		{name: "nobody"},
		{"by hosts, not by gangs", nil, waits(asking("a", 16, "big"), asking("b", 4, "small"), asking("c", 4, "small")), placement.Demand{"big": 1, "small": 0.5}},
		{"several classes of one gang", nil, waits(asking("a", 4, "x", "y", "x")), placement.Demand{"x": 1, "y": 1}},
		{"who got devices a day ago counts half", map[string]gang.Gang{"24h": asking("a", 8, "old"), "0h": asking("b", 8, "new")}, nil, placement.Demand{"new": 1, "old": 0.5}},
		{"who waits counts in full", map[string]gang.Gang{"24h": asking("a", 8, "old")}, waits(asking("b", 8, "new")), placement.Demand{"new": 1, "old": 0.5}},
		{"rounded", nil, waits(asking("a", 10, "x"), asking("b", 7, "y"), asking("c", 9, "z")), placement.Demand{"x": 1, "y": 1 / root, "z": 1}},
		{"long ago is not asked for", map[string]gang.Gang{"336h": asking("a", 8, "old")}, waits(asking("b", 8, "new")), placement.Demand{"new": 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := line.NewDemand()
			for ago, g := range row.served {
				age, err := time.ParseDuration(ago)
				if err != nil {
					t.Fatal(err)
				}
				d.Served(g, start.Add(-age))
				d.Served(g, start) // It was moved since.
			}
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
			if diff := cmp.Diff(row.want, d.Weights(start, row.waiting), near); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Weights do not creep: they are equal to the bit while time goes by and nobody asks.
func TestDemandStaysTheSame(t *testing.T) {
	d := line.NewDemand()
	for i := range 50 {
		d.Served(asking(string(rune('a'+i)), 1+i, []string{"x", "y", "z"}[i%3]), start.Add(time.Duration(i)*time.Hour))
	}
	want := d.Weights(start, nil)
	for minute := range 1000 {
		if got := d.Weights(start.Add(time.Duration(minute)*time.Minute), nil); !cmp.Equal(got, want) {
			t.Fatalf("minute %d: %v, and it was %v", minute, got, want)
		}
	}
}

// Numbers stay finite however long it lasts.
func TestDemandForEver(t *testing.T) {
	d := line.NewDemand()
	at := start
	for i := range 2000 {
		at = at.Add(24 * time.Hour)
		d.Served(asking(time.Duration(i).String(), 4, []string{"x", "y"}[i%2]), at)
	}
	got := d.Weights(at, nil)
	if got["y"] != 1 || math.Abs(got["x"]-0.5) > 1e-9 {
		t.Errorf("%v", got)
	}
	d.Forget(func(string) bool { return false })
	if d.Serves(time.Duration(7).String()) || !cmp.Equal(d.Weights(at, nil), got) {
		t.Error("who is gone is known still, or counts no more")
	}
}
