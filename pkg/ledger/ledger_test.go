package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/reason"
)

var id = inventory.PoolID{Driver: "d", Name: "p"}

// hardware is four hosts with a counter each: n0…n3 alone, n0+n1, n2+n3, all; and a device without counters on n0.
func hardware() *inventory.Inventory {
	counters := inventory.Published{Name: "c", Pool: id, SliceCount: 2, CounterSets: []inventory.CounterSet{{Name: "cs"}}}
	devices := inventory.Published{Name: "s", Pool: id, SliceCount: 2}
	var in inventory.Input
	for i := range 4 {
		counters.CounterSets[0].Counters = append(counters.CounterSets[0].Counters, inventory.Counter{Set: "cs", Name: fmt.Sprint("h", i), Milli: 4000})
		in.Hosts = append(in.Hosts, inventory.Host{Name: fmt.Sprint("n", i), Allocatable: map[string]int64{"cpu": 4000, "pods": 3000}})
	}
	add := func(name string, hosts ...int) {
		d := inventory.PublishedDevice{Device: inventory.Device{Name: name}}
		for _, h := range hosts {
			d.Hosts = append(d.Hosts, fmt.Sprint("n", h))
			d.Consumes = append(d.Consumes, inventory.Charge{CounterSet: "cs", Counter: fmt.Sprint("h", h), Milli: 4000})
		}
		devices.Devices = append(devices.Devices, d)
	}
	for i := range 4 {
		add(fmt.Sprint("one-", i), i)
	}
	add("left", 0, 1)
	add("right", 2, 3)
	add("all", 0, 1, 2, 3)
	devices.Devices = append(devices.Devices, inventory.PublishedDevice{Device: inventory.Device{Name: "nic", Hosts: []string{"n0"}}})
	in.Pools = []*inventory.Pool{inventory.NewPool(id, []inventory.Published{counters, devices})}
	return inventory.Build(in)
}

func charge(counters ...string) []inventory.Charge {
	var out []inventory.Charge
	for _, c := range counters {
		out = append(out, inventory.Charge{CounterSet: "cs", Counter: c, Milli: 4000})
	}
	return out
}

func free(inv *inventory.Inventory, l *ledger.Ledger) []string {
	var names []string
	for _, d := range inv.Pool(id).Devices {
		if l.Free(d) {
			names = append(names, d.Name)
		}
	}
	return names
}

func TestFree(t *testing.T) {
	take := func(owner, device string) ledger.Holding {
		return ledger.Holding{Owner: owner, Pool: id, Device: device}
	}
	gone := func(charge []inventory.Charge, hosts ...string) ledger.Holding {
		h := take("x/gone", "gone")
		h.Charge, h.Hosts = charge, hosts
		return h
	}
	tests := map[string]struct {
		take []ledger.Holding
		want []string
	}{
		"nothing taken":                {nil, []string{"all", "left", "nic", "one-0", "one-1", "one-2", "one-3", "right"}},
		"a part":                       {[]ledger.Holding{take("a", "one-1")}, []string{"nic", "one-0", "one-2", "one-3", "right"}},
		"the whole":                    {[]ledger.Holding{take("a", "all")}, []string{"nic"}},
		"without counters":             {[]ledger.Holding{take("a", "nic")}, []string{"all", "left", "one-0", "one-1", "one-2", "one-3", "right"}},
		"gone, charge on record":       {[]ledger.Holding{gone(charge("h2"), "n2")}, []string{"left", "nic", "one-0", "one-1", "one-3"}}, // Scenario 5.
		"gone, counters renamed":       {[]ledger.Holding{gone([]inventory.Charge{{CounterSet: "old", Counter: "h2", Milli: 1}}, "n2")}, []string{"left", "nic", "one-0", "one-1", "one-3"}},
		"gone, only hosts known":       {[]ledger.Holding{gone(nil, "n0")}, []string{"one-1", "one-2", "one-3", "right"}},
		"gone, nothing known":          {[]ledger.Holding{gone(nil)}, nil},
		"another pool":                 {[]ledger.Holding{{Owner: "a", Pool: inventory.PoolID{Driver: "D", Name: "p"}, Device: "all"}}, []string{"all", "left", "nic", "one-0", "one-1", "one-2", "one-3", "right"}},
		"published, grown since taken": {[]ledger.Holding{{Owner: "a", Pool: id, Device: "one-1", Charge: charge("h3")}}, []string{"nic", "one-0", "one-2"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inv := hardware()
			l := ledger.New(inv)
			for _, h := range test.take {
				l.Take(h)
			}
			if diff := cmp.Diff(test.want, free(inv, l)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTakeOncePerReservation(t *testing.T) {
	inv := hardware()
	l := ledger.New(inv)
	intent := ledger.Holding{Owner: "ml/res", Reservation: "uid", Pool: id, Device: "left", Charge: charge("h0", "h1"), Hosts: []string{"n0", "n1"}}
	claim := ledger.Holding{Owner: "ml/berth.res-0", Reservation: "uid", Pool: id, Device: "left"}
	for _, h := range []ledger.Holding{intent, claim, intent, claim} {
		l.Take(h)
	}
	if got := l.Left(id, "cs", "h0"); got != 0 || len(l.Overdrawn()) != 0 {
		t.Errorf("left %d, overdrawn %v", got, l.Overdrawn())
	}
	l.Take(ledger.Holding{Owner: "x/thief", Pool: id, Device: "one-1"})
	l.Take(ledger.Holding{Owner: "x/other", Pool: id, Device: "left"})
	want := []ledger.Overdraw{
		{Pool: id, Device: "left", Owners: []string{"ml/berth.res-0", "x/other"}},
		{Pool: id, CounterSet: "cs", Counter: "h0", Milli: 4000, Owners: []string{"ml/berth.res-0", "x/other"}},
		{Pool: id, CounterSet: "cs", Counter: "h1", Milli: 8000, Owners: []string{"ml/berth.res-0", "x/other", "x/thief"}},
	}
	if diff := cmp.Diff(want, l.Overdrawn()); diff != "" {
		t.Error(diff)
	}
	if got := l.Left(id, "cs", "h1"); got != -8000 {
		t.Errorf("left %d", got)
	}
	if diff := cmp.Diff([]string{"n0", "n1"}, l.HeldHosts()); diff != "" {
		t.Error(diff)
	}
}

func TestRoom(t *testing.T) {
	l := ledger.New(hardware())
	two := map[string]int64{"cpu": 2000}
	check := func(host string, requests map[string]int64, want int) {
		t.Helper()
		if got := l.Room(host, requests); got != want {
			t.Errorf("room on %s is %d, want %d", host, got, want)
		}
	}
	check("n0", two, 2)
	check("n0", nil, 3)
	check("n0", map[string]int64{"gpu": 1}, 0)
	check("unknown", nil, 0)
	l.Use("n0", "ml/a", map[string]int64{"cpu": 500})
	check("n0", two, 1)
	l.Use("n0", "ml/b", map[string]int64{"cpu": 9000})
	check("n0", two, 0)
	check("n0", nil, 1)
	trial := l.Try()
	want := &ledger.Shortage{Host: "n0", Resource: "cpu", Needs: 2000, Has: 0, Pods: []string{"ml/b", "ml/a"}}
	if diff := cmp.Diff(want, trial.Shortage("n0", two)); diff != "" {
		t.Error(diff)
	}
	trial.Seat("n1", two)
	trial.Seat("n1", two)
	want = &ledger.Shortage{Host: "n1", Resource: "cpu", Needs: 6000, Has: 4000}
	if diff := cmp.Diff(want, trial.Shortage("n1", two)); diff != "" {
		t.Error(diff)
	}
	trial.Unseat("n1", two)
	if short := trial.Shortage("n1", two); short != nil {
		t.Error(short)
	}
}

func TestOvercommitted(t *testing.T) {
	l := ledger.New(hardware())
	cpu, nic := map[string]int64{"cpu": 1000}, map[string]int64{"nic.example.com/vf": 1000}
	check := func(host string, requests map[string]int64, want bool) {
		t.Helper()
		if got := l.Overcommitted(host, requests); got != want {
			t.Errorf("overcommitted in %v on %s: %v", requests, host, got)
		}
	}
	l.Use("n0", "x/vf", map[string]int64{"cpu": 1000, "nic.example.com/vf": 1000})
	l.Use("unknown", "x/other", map[string]int64{"cpu": 9000})
	check("n0", cpu, false)
	check("n0", nic, true)
	check("n0", map[string]int64{"nic.example.com/vf": 0}, false)
	check("n1", nic, false)
	check("unknown", cpu, false)
	l.Use("n0", "ml/a", map[string]int64{"cpu": 3001})
	check("n0", cpu, true)
	check("n0", nil, false)
	l.Use("n0", "ml/b", nil)
	l.Use("n0", "ml/c", nil)
	check("n0", nil, true) // It has room for three pods.
}

func TestTrialLeavesNoTrace(t *testing.T) {
	inv := hardware()
	l := ledger.New(inv)
	l.Quarantine(id, "n3")
	trial := l.Try()
	left, all := inv.Device(id, "left"), inv.Device(id, "all")
	trial.Take(left)
	if o := trial.Obstacle(all); o == nil || o.Code != reason.NoFreeSlice || len(o.Owners) != 0 {
		t.Errorf("%+v", o)
	}
	trial.Drop(left)
	if o := trial.Obstacle(all); o == nil || o.Code != reason.Quarantined || o.Hosts[0] != "n3" {
		t.Errorf("%+v", o)
	}
	if !l.Free(left) || !l.Quarantined("n3") || l.Quarantined("n0") {
		t.Error("the ledger changed")
	}
}

// random fills a ledger with n random entries.
func random(rng *rand.Rand, l *ledger.Ledger, n int) {
	names := []string{"one-0", "one-1", "left", "right", "all", "nic", "gone", "lost"}
	for range n {
		switch rng.IntN(4) {
		case 0:
			l.Use(fmt.Sprint("n", rng.IntN(4)), fmt.Sprint("p", rng.IntN(5)), map[string]int64{"cpu": int64(rng.IntN(3000))})
		case 1:
			l.Quarantine(id, fmt.Sprint("n", rng.IntN(4)))
		default:
			h := ledger.Holding{Owner: fmt.Sprint("o", rng.IntN(4)), Pool: id, Device: names[rng.IntN(len(names))]}
			if rng.IntN(2) == 0 {
				h.Reservation = fmt.Sprint("r", rng.IntN(3))
				h.Charge = charge(fmt.Sprint("h", rng.IntN(5)))
				h.Hosts = []string{fmt.Sprint("n", rng.IntN(4))}
			}
			l.Take(h)
		}
	}
}

func print(inv *inventory.Inventory, l *ledger.Ledger) string {
	text := fmt.Sprint(l.Holdings(), l.Overdrawn(), l.HeldHosts(), free(inv, l))
	for _, d := range inv.Pool(id).Devices {
		text += fmt.Sprint(d.Name, l.Holders(d))
	}
	for _, h := range inv.Hosts() {
		text += fmt.Sprint(h, l.Blockers(h), l.Quarantined(h), l.Room(h, map[string]int64{"cpu": 100}))
	}
	return text
}

func TestCloneIsIndependent(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		inv := hardware()
		l := ledger.New(inv)
		random(rng, l, 10)
		before := print(inv, l)
		c := l.Clone()
		if diff := cmp.Diff(before, print(inv, c)); diff != "" {
			t.Fatalf("seed %d: clone differs: %s", seed, diff)
		}
		random(rng, c, 10)
		if diff := cmp.Diff(before, print(inv, l)); diff != "" {
			t.Fatalf("seed %d: original changed: %s", seed, diff)
		}
	}
}

func TestOrderOfHoldingsDoesNotMatter(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		inv := hardware()
		l := ledger.New(inv)
		random(rng, l, 12)
		// What was merged stays merged, so a shuffled replay of everything that was taken must give the same.
		var all []ledger.Holding
		for range 3 {
			all = append(all, l.Holdings()...)
		}
		a, b := ledger.New(inv), ledger.New(inv)
		for _, h := range all {
			a.Take(h)
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, h := range all {
			b.Take(h)
		}
		if diff := cmp.Diff(print(inv, a), print(inv, b)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}
