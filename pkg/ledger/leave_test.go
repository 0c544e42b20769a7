package ledger_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// crowded is random hardware of which random gangs hold a part: each one device and one pod, or only one of both.
type crowded struct {
	rng     *rand.Rand
	inv     *inventory.Inventory
	pool    *inventory.Pool
	ledger  *ledger.Ledger
	holders []string
}

func newCrowded(seed uint64) *crowded {
	rng := rand.New(rand.NewPCG(seed, 11))
	hardware := worlds.Random(rng, "p", 2+rng.IntN(4), 4+rng.IntN(8))
	if seed%2 == 1 {
		hardware = worlds.Mixed(rng, "p", 2+rng.IntN(3)) // with shared devices
	}
	c := &crowded{rng: rng, inv: hardware.Inventory()}
	c.pool = c.inv.Pools()[0]
	c.ledger = ledger.New(c.inv)
	for i := range 1 + rng.IntN(6) {
		name := fmt.Sprint("g", i)
		c.holders = append(c.holders, name)
		for range 1 + rng.IntN(2) {
			d := c.device()
			switch takes := c.takes(d); {
			case d.Shared && rng.IntN(4) > 0 && c.ledger.FreeFor(d, takes):
				c.ledger.Take(ledger.Holding{Owner: name, Reservation: name, Pool: c.pool.ID, Device: d.Name, Share: "a", Capacity: takes})
			case rng.IntN(5) > 0 && c.ledger.Free(d):
				c.ledger.Take(ledger.Holding{Owner: name, Reservation: name, Pool: c.pool.ID, Device: d.Name})
			}
		}
		if rng.IntN(2) == 0 {
			c.ledger.Use(c.host(), name+"/pod", map[string]int64{"cpu": int64(rng.IntN(8)) * 1000})
		}
		if rng.IntN(8) == 0 {
			c.ledger.Take(ledger.Holding{Owner: name, Reservation: name, Pool: c.pool.ID, Device: "vanished", Hosts: []string{c.host()}})
		}
	}
	return c
}

func (c *crowded) device() *inventory.Device { return c.pool.Devices[c.rng.IntN(len(c.pool.Devices))] }

// takes is a share of a shared device.
func (c *crowded) takes(d *inventory.Device) []inventory.Amount {
	var out []inventory.Amount
	for _, capacity := range d.Capacity {
		out = append(out, inventory.Amount{Name: capacity.Name, Milli: 1 + c.rng.Int64N(capacity.Milli)})
	}
	return out
}

func (c *crowded) host() string {
	hosts := c.pool.Plan().Hosts()
	return hosts[c.rng.IntN(len(hosts))]
}

func holderOf(pod string) string { return strings.TrimSuffix(pod, "/pod") }

// want is up to two devices with a pod on each of their hosts.
func (c *crowded) want() ledger.Want {
	w := ledger.Want{Seats: map[string]map[string]int64{}}
	for range 1 + c.rng.IntN(2) {
		d := c.device()
		switch {
		case slices.Contains(w.Devices, d):
			continue
		case d.Shared:
			w.Shares = append(w.Shares, ledger.Share{Device: d, Takes: c.takes(d)})
		default:
			w.Devices = append(w.Devices, d)
		}
		for _, h := range d.Hosts {
			if w.Seats[h] == nil {
				w.Seats[h] = map[string]int64{}
			}
			w.Seats[h]["cpu"] += int64(c.rng.IntN(6)) * 1000
			w.Seats[h][ledger.Pods] += 1000
		}
	}
	return w
}

// without is the ledger when some have gone.
func (c *crowded) without(gone []string) *ledger.Ledger {
	return c.ledger.Without(
		func(owner string) bool { return slices.Contains(gone, owner) },
		func(pod string) bool { return slices.Contains(gone, holderOf(pod)) },
	)
}

// had reports whether everything wanted can be had at once.
func had(l *ledger.Ledger, w ledger.Want) bool {
	trial := l.Try()
	for _, d := range w.Devices {
		if trial.Obstacle(d) != nil {
			return false
		}
		trial.Take(d)
	}
	for _, s := range w.Shares {
		if trial.ObstacleTo(s.Device, s.Takes) != nil {
			return false
		}
		trial.TakeShare(s.Device, s.Takes)
	}
	for host, requests := range w.Seats {
		if trial.Shortage(host, requests) != nil {
			return false
		}
	}
	return true
}

// Who is in the way is held against every set of holders that could go.
func TestInTheWay(t *testing.T) {
	ways := 0
	for seed := range uint64(3000) {
		c := newCrowded(seed)
		w := c.want()
		// A random order, in which the position is the rank.
		order := slices.Clone(c.holders)
		c.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		rank := func(name string) int { return slices.Index(order, name) }
		got, ok := c.ledger.InTheWay(w, holderOf, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
		if all := had(c.without(c.holders), w); ok != all {
			t.Fatalf("seed %d: it says %v, and with nobody there it is %v\n%+v\n%+v", seed, ok, all, w, c.ledger.Holdings())
		}
		if !ok {
			continue
		}
		if len(got) > 0 {
			ways++
		}
		if !had(c.without(got), w) {
			t.Fatalf("seed %d: it is not enough that %v go", seed, got)
		}
		for i := range got {
			if left := slices.Delete(slices.Clone(got), i, i+1); had(c.without(left), w) {
				t.Fatalf("seed %d: %v go although %v are enough", seed, got, left)
			}
		}
		if !slices.IsSortedFunc(got, func(a, b string) int { return rank(a) - rank(b) }) {
			t.Fatalf("seed %d: %v is not in the order %v", seed, got, order)
		}
		if len(got) == 0 {
			continue
		}
		last := rank(got[len(got)-1])
		if earlier := order[:last]; had(c.without(earlier), w) {
			t.Fatalf("seed %d: %v go in the order %v although it is enough that %v do", seed, got, order, earlier)
		}
	}
	if ways < 1000 {
		t.Errorf("only %d wants had somebody in the way", ways)
	}
}

// What is free where several things are kept is held against every order in which those can come to be had.
func TestKeeping(t *testing.T) {
	free, taken := 0, 0
	for seed := range uint64(3000) {
		c := newCrowded(seed)
		var kept []ledger.Kept
		for range 1 + c.rng.IntN(3) {
			w := c.want()
			if leaving, ok := c.ledger.InTheWay(w, holderOf, cmp.Compare[string]); ok && together(c, kept, w) {
				kept = append(kept, ledger.Kept{Want: w, Leaving: leaving})
			}
		}
		if !c.all(kept) {
			continue // Together they need more to leave than each does, and nobody can be let in without harm.
		}
		guard := c.ledger.Keeping("kept", kept, holderOf)
		d := c.device()
		w := ledger.Want{Devices: []*inventory.Device{d}, Seats: map[string]map[string]int64{}}
		if d.Shared {
			w.Devices, w.Shares = nil, []ledger.Share{{Device: d, Takes: c.takes(d)}}
		}
		for _, h := range d.Hosts {
			w.Seats[h] = map[string]int64{"cpu": int64(c.rng.IntN(4)) * 1000, ledger.Pods: 1000}
		}
		got := had(guard, w)
		// More than necessary is kept of free devices, although somebody who leaves for another one may share their counters,
		// of counters that several shares take once, and of shared devices that somebody leaves.
		more := slices.ContainsFunc(kept, func(k ledger.Kept) bool {
			return len(k.Shares) > 0 || len(k.Leaving) > 0 && slices.ContainsFunc(k.Devices, c.ledger.Free) ||
				slices.ContainsFunc(c.ledger.Holdings(), func(h ledger.Holding) bool { return h.Share != "" && slices.Contains(k.Leaving, h.Owner) })
		})
		if want := c.always(kept, w); got != want && (got || !more) {
			t.Fatalf("seed %d: %s is free %v, and should be %v\n%+v\n%+v\n%+v", seed, d.ID(), got, want, kept, w, c.ledger.Holdings())
		}
		if got {
			free++
		} else if had(c.ledger, w) {
			taken++
		}
	}
	if free < 300 || taken < 100 {
		t.Errorf("%d were free and %d kept", free, taken)
	}
}

// together reports whether one more thing can be kept beside others when everybody is gone.
func together(c *crowded, kept []ledger.Kept, w ledger.Want) bool {
	l := c.without(c.holders)
	for i, k := range kept {
		give(l, fmt.Sprint("k", i), k.Want)
	}
	return had(l, w)
}

// give books a want.
func give(l *ledger.Ledger, name string, w ledger.Want) {
	for _, d := range w.Devices {
		l.Take(ledger.Holding{Owner: name, Reservation: name, Pool: d.Pool, Device: d.Name})
	}
	for i, s := range w.Shares {
		l.Take(ledger.Holding{Owner: name, Reservation: name, Pool: s.Device.Pool, Device: s.Device.Name, Share: fmt.Sprint(i), Capacity: s.Takes})
	}
	for h, requests := range w.Seats {
		l.Use(h, name+"/pod", requests)
	}
}

// all reports whether everything kept can be had at once when its leavers are gone.
func (c *crowded) all(kept []ledger.Kept) bool {
	var gone []string
	for _, k := range kept {
		gone = append(gone, k.Leaving...)
	}
	l := c.without(gone)
	for i, k := range kept {
		if !had(l, k.Want) {
			return false
		}
		give(l, fmt.Sprint("k", i), k.Want)
	}
	return true
}

// always tries all orders: it must be possible to have w now and beside any of what is kept, once the leavers of that are gone.
func (c *crowded) always(kept []ledger.Kept, w ledger.Want) bool {
	for bits := range 1 << len(kept) {
		var gone []string
		for i, k := range kept {
			if bits&(1<<i) != 0 {
				gone = append(gone, k.Leaving...)
			}
		}
		l := c.without(gone)
		for i, k := range kept {
			if bits&(1<<i) != 0 {
				give(l, fmt.Sprint("k", i), k.Want)
			}
		}
		if !had(l, w) {
			return false
		}
	}
	return true
}

func TestWithoutLeavesTheLedgerAlone(t *testing.T) {
	c := newCrowded(1)
	before := c.ledger.Holdings()
	nobody := c.without(c.holders)
	if len(nobody.Holdings()) != 0 || len(c.ledger.Holdings()) != len(before) {
		t.Errorf("%v is left, and %v was taken", nobody.Holdings(), c.ledger.Holdings())
	}
	for _, h := range c.inv.Hosts() {
		if pods := nobody.Blockers(h); len(pods) > 0 {
			t.Errorf("%v stand on %s", pods, h)
		}
	}
}
