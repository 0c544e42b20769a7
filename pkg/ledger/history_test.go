package ledger_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// entry is something that can be booked and taken back.
type entry struct {
	holding    *ledger.Holding
	quarantine string
	host, pod  string
	requests   map[string]int64
	pool       inventory.PoolID
}

func (e entry) do(l *ledger.Ledger) {
	switch {
	case e.holding != nil:
		l.Take(*e.holding)
	case e.quarantine != "":
		l.Quarantine(e.pool, e.quarantine)
	default:
		l.Use(e.host, e.pod, e.requests)
	}
}

func (e entry) undo(l *ledger.Ledger) bool {
	switch {
	case e.holding != nil:
		return l.Give(*e.holding)
	case e.quarantine != "":
		return l.Lift(e.pool, e.quarantine)
	default:
		return l.Leave(e.host, e.pod, e.requests)
	}
}

// editions are inventories with the same pools and hosts in different states: devices that vanish and come back, counters
// that change, pools and hosts that go.
func editions(rng *rand.Rand) []*inventory.Inventory {
	var out []*inventory.Inventory
	first := []*worlds.Site{worlds.KEP8x8("a"), worlds.Random(rng, "b", 6, 12), worlds.Rack("c")}
	for range 4 {
		var in inventory.Input
		for i, site := range first {
			if rng.IntN(5) == 0 {
				continue
			}
			published := slices.Clone(site.Slices)
			for k := range published {
				published[k].Devices = slices.Clone(published[k].Devices)
				if rng.IntN(2) == 0 {
					published[k].Devices = slices.DeleteFunc(published[k].Devices, func(inventory.PublishedDevice) bool { return rng.IntN(4) == 0 })
				}
			}
			if p := pools(out, i); p != nil && rng.IntN(2) == 0 {
				in.Pools = append(in.Pools, p) // The same *Pool, as from a cache.
			} else {
				in.Pools = append(in.Pools, inventory.NewPool(published[0].Pool, published))
			}
			for _, h := range site.Hosts {
				if rng.IntN(10) > 0 {
					in.Hosts = append(in.Hosts, h)
				}
			}
		}
		out = append(out, inventory.Build(in))
	}
	return out
}

func pools(all []*inventory.Inventory, i int) *inventory.Pool {
	for _, inv := range all {
		if p := inv.Pool(inventory.PoolID{Driver: worlds.Driver, Name: string(rune('a' + i))}); p != nil {
			return p
		}
	}
	return nil
}

func randomEntry(rng *rand.Rand, inv *inventory.Inventory) entry {
	name := string(rune('a' + rng.IntN(4)))
	id := inventory.PoolID{Driver: worlds.Driver, Name: name}
	host := fmt.Sprintf("%s-h%d", name, rng.IntN(20))
	switch rng.IntN(6) {
	case 0:
		return entry{quarantine: host, pool: id}
	case 1:
		e := entry{host: fmt.Sprintf("%s-h%d", name, rng.IntN(3)), pod: fmt.Sprint("x/p", rng.IntN(3)), requests: map[string]int64{"cpu": int64(rng.IntN(3000))}}
		switch rng.IntN(4) {
		case 0:
			e.requests["memory"] = math.MaxInt64 - int64(rng.IntN(3))
		case 1:
			e.requests["cpu"] = -5
		}
		return e
	}
	h := ledger.Holding{Owner: fmt.Sprint("x/o", rng.IntN(5)), Pool: id, Device: "never-published"}
	if p := inv.Pool(id); p != nil && len(p.Devices) > 0 && rng.IntN(8) > 0 {
		d := p.Devices[rng.IntN(len(p.Devices))]
		h.Device = d.Name
		if rng.IntN(3) == 0 {
			h.Charge, h.Hosts = d.Charge, d.Hosts
		}
	}
	if rng.IntN(2) == 0 {
		h.Reservation = fmt.Sprint("r", rng.IntN(4))
	}
	switch rng.IntN(8) {
	case 0:
		h.Charge = []inventory.Charge{{CounterSet: "hosts", Counter: "h1", Milli: math.MaxInt64}}
	case 1:
		h.Charge = []inventory.Charge{{CounterSet: "hosts", Counter: "h3", Milli: 2000}, {CounterSet: "hosts", Counter: "h0", Milli: 1500}, {CounterSet: "hosts", Counter: "h3", Milli: 500}}
	case 2:
		h.Charge, h.Hosts = []inventory.Charge{{CounterSet: "former", Counter: "h3", Milli: 1}}, []string{host}
	}
	return entry{holding: &h}
}

// line is a ledger with what is booked in it.
type line struct {
	inv    *inventory.Inventory
	ledger *ledger.Ledger
	booked []entry
}

func (l *line) copy() *line {
	return &line{l.inv, l.ledger.Clone(), slices.Clone(l.booked)}
}

// step books something or takes something back. It is false when that could not be taken back.
func (l *line) step(rng *rand.Rand, from *inventory.Inventory) bool {
	if len(l.booked) == 0 || rng.IntN(9) < 5 {
		e := randomEntry(rng, from)
		e.do(l.ledger)
		l.booked = append(l.booked, e)
		return true
	}
	i := rng.IntN(len(l.booked))
	ok := l.booked[i].undo(l.ledger)
	l.booked = slices.Delete(l.booked, i, i+1)
	return ok
}

// Invariant 5: whatever happened before, a ledger says what one says that was built anew from what is booked now. Two
// ledgers that share what they can go on side by side.
func TestKeptUpEqualsBuiltAnew(t *testing.T) {
	moves, clones, vanished := 0, 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 11))
		all := editions(rng)
		a := &line{inv: all[0], ledger: ledger.New(all[0])}
		b := a.copy()
		for step := range 400 {
			switch rng.IntN(40) {
			case 0:
				inv := all[rng.IntN(len(all))]
				moved := &line{inv, a.ledger.Onto(inv), slices.Clone(a.booked)}
				if rng.IntN(2) == 0 {
					b = a
				}
				a = moved
				moves++
			case 1:
				b = a.copy()
				if rng.IntN(2) == 0 {
					a, b = b, a
				}
				clones++
			default:
				if rng.IntN(3) == 0 {
					a, b = b, a
				}
				if !a.step(rng, all[rng.IntN(len(all))]) {
					t.Fatalf("seed %d, step %d: something booked cannot be taken back", seed, step)
				}
			}
			if step%10 == 0 {
				for _, l := range []*line{a, b} {
					if diff := ledger.Differ(l.ledger, anew(rng, l.inv, l.booked)); diff != "" {
						t.Fatalf("seed %d, step %d: kept up and built anew: %s", seed, step, diff)
					}
				}
			}
			if step%80 == 0 {
				agree(t, a.inv, a.ledger)
			}
		}
		for _, h := range a.ledger.Holdings() {
			if a.inv.Pool(h.Pool) != nil && a.inv.Device(h.Pool, h.Device) == nil {
				vanished++
			}
		}
		for _, e := range a.booked {
			e.undo(a.ledger)
		}
		if diff := ledger.Differ(a.ledger, ledger.New(a.inv)); diff != "" {
			t.Fatalf("seed %d: something is left: %s", seed, diff)
		}
	}
	if moves < 100 || clones < 100 || vanished < 20 {
		t.Errorf("too little variety: %d moves, %d clones, %d vanished devices", moves, clones, vanished)
	}
}

func anew(rng *rand.Rand, inv *inventory.Inventory, booked []entry) *ledger.Ledger {
	shuffled := slices.Clone(booked)
	rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	l := ledger.New(inv)
	for _, e := range shuffled {
		e.do(l)
	}
	return l
}

// agree holds what is kept for each device against its definition.
func agree(t *testing.T, inv *inventory.Inventory, l *ledger.Ledger) {
	t.Helper()
	for at, p := range inv.Pools() {
		occ := l.Occupied(at)
		var some []int32
		var one, together []string
		for i, d := range p.Devices {
			if (i+at)%3 > 0 {
				some, one = append(some, int32(i)), append(one, l.Holders(d)...)
			}
		}
		l.EachHolder(at, some, func(owner string) { together = append(together, owner) })
		slices.SortFunc(one, inventory.Natural)
		if one = slices.Compact(one); !slices.Equal(one, together) {
			t.Fatalf("%s: devices are held by %v, asked of together by %v", p.ID, one, together)
		}
		for i, d := range p.Devices {
			short := occ.Short != nil && occ.Short[i] != 0
			holders := l.Holders(d)
			if short != (len(holders) > 0) {
				t.Fatalf("%s: short %v, held by %v", d.ID(), short, holders)
			}
			var each []string
			l.EachHolder(at, []int32{int32(i)}, func(owner string) { each = append(each, owner) })
			if !slices.Equal(each, holders) {
				t.Fatalf("%s: held by %v, asked of several by %v", d.ID(), holders, each)
			}
			free := !short
			for _, h := range d.Hosts {
				free = free && !(l.Quarantined(h) && occ.Shut != nil && occ.Shut[i] > 0)
			}
			if p.Usable() && l.Free(d) != free {
				t.Fatalf("%s: free is %v", d.ID(), l.Free(d))
			}
			standers := map[string]struct{}{}
			l.Standers(at, []int32{int32(i)}, standers)
			if want := standing(l, p, d); occ.Standing != nil && int(occ.Standing[i]) != want || len(standers) != want {
				t.Fatalf("%s: %d holders stand in it, counted %d, named %v", d.ID(), want, occ.Standing[i], standers)
			}
		}
	}
}

// standing counts the identities that hold the device or anything that cannot be held beside it.
func standing(l *ledger.Ledger, p *inventory.Pool, d *inventory.Device) int {
	found := map[string]bool{}
	for _, h := range l.Holdings() {
		if h.Pool != p.ID {
			continue
		}
		alone := ledger.New(l.Inventory())
		alone.Take(h)
		// A counter that is too small for the device by itself excludes it from everybody, and from no holder in particular.
		if len(alone.Holders(d)) > 0 {
			found[h.Reservation+"/"+map[bool]string{true: "", false: h.Owner}[h.Ours()]] = true
		}
	}
	return len(found)
}

func TestUndoingWhatWasNotBooked(t *testing.T) {
	inv := hardware()
	l := ledger.New(inv)
	h := ledger.Holding{Owner: "x/a", Pool: id, Device: "one-1", Hosts: []string{"n1"}}
	l.Take(h)
	l.Quarantine(id, "n2")
	l.Use("n0", "ml/a", map[string]int64{"cpu": 500})
	before := l.Clone()
	other := h
	other.Hosts = nil
	for name, undone := range map[string]bool{
		"another holding":  l.Give(other),
		"another owner":    l.Give(ledger.Holding{Owner: "x/b", Pool: id, Device: "one-1"}),
		"another pool":     l.Give(ledger.Holding{Owner: "x/a", Pool: inventory.PoolID{Driver: "d", Name: "q"}, Device: "one-1"}),
		"another host":     l.Lift(id, "n1"),
		"another request":  l.Leave("n0", "ml/a", map[string]int64{"cpu": 501}),
		"another pod":      l.Leave("n0", "ml/b", map[string]int64{"cpu": 500}),
		"a host not there": l.Leave("n9", "ml/a", map[string]int64{"cpu": 500}),
	} {
		if undone {
			t.Errorf("%s was undone", name)
		}
	}
	if diff := ledger.Differ(before, l); diff != "" {
		t.Error(diff)
	}
	if !l.Give(h) || !l.Lift(id, "n2") || !l.Leave("n0", "ml/a", map[string]int64{"cpu": 500}) {
		t.Error("what was booked cannot be undone")
	}
}
