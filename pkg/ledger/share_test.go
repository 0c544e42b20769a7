package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// sharing is one host with a counter of four: two devices a and b that may be shared and take three and one of it, and an
// exclusive one that takes two. Each shared one has 10 of mem and 4 of slots.
func sharing() *inventory.Inventory {
	counters := inventory.Published{Name: "c", Pool: id, SliceCount: 2, CounterSets: []inventory.CounterSet{{Name: "cs", Counters: []inventory.Counter{{Set: "cs", Name: "h", Milli: 4}}}}}
	devices := inventory.Published{Name: "s", Pool: id, SliceCount: 2}
	for name, takes := range map[string]int64{"a": 3, "b": 1, "whole": 2} {
		d := inventory.PublishedDevice{Device: inventory.Device{Name: name, Hosts: []string{"n"}}, Consumes: []inventory.Charge{{CounterSet: "cs", Counter: "h", Milli: takes}}}
		if name != "whole" {
			d.Shared, d.Capacity = true, []inventory.Capacity{{Name: "mem", Milli: 10}, {Name: "slots", Milli: 4}}
		}
		devices.Devices = append(devices.Devices, d)
	}
	return inventory.Build(inventory.Input{
		Hosts: []inventory.Host{{Name: "n", Allocatable: map[string]int64{"pods": 10_000}}},
		Pools: []*inventory.Pool{inventory.NewPool(id, []inventory.Published{counters, devices})},
	})
}

func amounts(mem, slots int64) []inventory.Amount {
	return []inventory.Amount{{Name: "mem", Milli: mem}, {Name: "slots", Milli: slots}}
}

func shareOf(owner, reservation, device, share string, mem, slots int64) ledger.Holding {
	return ledger.Holding{Owner: owner, Reservation: reservation, Pool: id, Device: device, Share: share, Capacity: amounts(mem, slots)}
}

func TestSharesAddUp(t *testing.T) {
	inv := sharing()
	a, whole := inv.Device(id, "a"), inv.Device(id, "whole")
	l := ledger.New(inv)
	if !l.FreeFor(a, amounts(10, 4)) || l.FreeFor(a, amounts(11, 1)) || !l.Free(a) || l.FreeFor(whole, nil) {
		t.Fatal("an empty pool")
	}
	// A reservation and its claims say the same of two shares; a stranger has a third one.
	l.Take(shareOf("ml/g", "r", "a", "c-0 r", 3, 1))
	l.Take(shareOf("ml/g", "r", "a", "c-1 r", 2, 1))
	l.Take(shareOf("ml/c-0", "r", "a", "c-0 r", 4, 1))
	l.Take(shareOf("x/s", "", "a", "s r", 1, 1))
	if l.Free(a) || !l.FreeFor(a, amounts(3, 1)) || l.FreeFor(a, amounts(4, 1)) || l.FreeFor(a, amounts(0, 2)) {
		t.Errorf("holdings %v", l.Holdings())
	}
	if got := l.Left(id, "cs", "h"); got != 1 {
		t.Errorf("%d left of the counter: three shares take it once", got)
	}
	if got := l.Shares(a, amounts(1, 0), 99); got != 3 {
		t.Errorf("room for %d shares", got)
	}
	if got := l.Shares(a, amounts(0, 0), 99); got != 99 {
		t.Errorf("room for %d shares that take nothing", got)
	}
	if l.Free(whole) || !l.FreeFor(inv.Device(id, "b"), amounts(1, 1)) {
		t.Error("the counter")
	}
	if diff := cmp.Diff([]string{"ml/c-0", "x/s"}, l.HoldersOf(a, amounts(4, 1))); diff != "" {
		t.Error(diff)
	}
	if over := l.Overdrawn(); len(over) != 0 {
		t.Errorf("overdrawn %v", over)
	}
	occ := l.Occupied(0)
	at, _ := inv.Pools()[0].Plan().Position(a)
	if occ.Standing[at] != 2 || occ.Irregular {
		t.Errorf("%d stand in it, irregular %v", occ.Standing[at], occ.Irregular)
	}

	// One more is too much, and so is one who has it alone.
	l.Take(shareOf("x/t", "", "a", "t r", 4, 0))
	want := []ledger.Overdraw{{Pool: id, Device: "a", Counter: "mem", Milli: 1, Owners: []string{"ml/c-0", "x/s", "x/t"}}}
	if diff := cmp.Diff(want, l.Overdrawn()); diff != "" {
		t.Error(diff)
	}
	l.Give(shareOf("x/t", "", "a", "t r", 4, 0))
	l.Take(ledger.Holding{Owner: "x/alone", Pool: id, Device: "a"})
	if l.FreeFor(a, amounts(0, 0)) || len(l.Overdrawn()) == 0 {
		t.Error("somebody has it alone")
	}
	l.Give(ledger.Holding{Owner: "x/alone", Pool: id, Device: "a"})

	// Whoever gives a share back gives back what it took, and the last one the counter.
	for _, h := range []ledger.Holding{shareOf("ml/g", "r", "a", "c-0 r", 3, 1), shareOf("ml/c-0", "r", "a", "c-0 r", 4, 1), shareOf("x/s", "", "a", "s r", 1, 1)} {
		if !l.Give(h) {
			t.Fatalf("%+v was not there", h)
		}
	}
	if !l.FreeFor(a, amounts(8, 3)) || l.FreeFor(a, amounts(9, 0)) || l.Left(id, "cs", "h") != 1 {
		t.Errorf("holdings %v", l.Holdings())
	}
	l.Give(shareOf("ml/g", "r", "a", "c-1 r", 2, 1))
	if diff := ledger.Differ(ledger.New(inv), l); diff != "" {
		t.Error(diff)
	}
}

// A share of a device that has neither counters nor capacities takes nothing, but whoever had the device alone would not get it.
func TestAShareOfNothingIsSeen(t *testing.T) {
	inv := inventory.Build(inventory.Input{Pools: []*inventory.Pool{inventory.NewPool(id, []inventory.Published{{
		Name: "s", Pool: id, SliceCount: 1,
		Devices: []inventory.PublishedDevice{{Device: inventory.Device{Name: "d", Hosts: []string{"n"}, Shared: true}}},
	}})}})
	l := ledger.New(inv)
	nothing := l.Fingerprint(0)
	share, alone := ledger.Holding{Owner: "x/a", Pool: id, Device: "d", Share: "r"}, ledger.Holding{Owner: "x/a", Pool: id, Device: "d"}
	l.Take(share)
	shared := l.Fingerprint(0)
	l.Give(share)
	l.Take(alone)
	if whole := l.Fingerprint(0); shared == nothing || whole == nothing || shared == whole {
		t.Errorf("nothing is %x, a share %x, all of it %x", nothing, shared, whole)
	}
	l.Give(alone)
	if l.Fingerprint(0) != nothing {
		t.Error("giving all back leaves something")
	}
}

// What vanished devices had is charged once, too.
func TestSharesOfAVanishedDevice(t *testing.T) {
	inv := sharing()
	l := ledger.New(inv)
	for i := range 3 {
		h := shareOf(fmt.Sprint("x/", i), "", "gone", fmt.Sprint(i), 1, 1)
		h.Charge = []inventory.Charge{{CounterSet: "cs", Counter: "h", Milli: int64(1 + i)}}
		l.Take(h)
	}
	if got := l.Left(id, "cs", "h"); got != 1 || len(l.Overdrawn()) != 0 {
		t.Errorf("%d left, overdrawn %v", got, l.Overdrawn())
	}
}

func TestTrialOfShares(t *testing.T) {
	inv := sharing()
	a, b, whole := inv.Device(id, "a"), inv.Device(id, "b"), inv.Device(id, "whole")
	l := ledger.New(inv)
	trial := l.Try()
	free := func(d *inventory.Device, mem int64) bool { return trial.ObstacleTo(d, amounts(mem, 0)) == nil }
	trial.TakeShare(a, amounts(6, 0))
	trial.TakeShare(a, amounts(4, 0))
	if free(a, 1) || !free(a, 0) || !free(b, 10) || trial.Obstacle(whole) == nil || trial.Obstacle(a) == nil {
		t.Error("two shares")
	}
	trial.DropShare(a, amounts(6, 0))
	if !free(a, 6) || free(a, 7) || trial.Obstacle(whole) == nil {
		t.Error("one share")
	}
	trial.DropShare(a, amounts(4, 0))
	if !free(a, 10) || trial.Obstacle(whole) != nil {
		t.Error("no share")
	}
	trial.Take(whole)
	if free(a, 0) || !free(b, 0) {
		t.Error("beside the exclusive one")
	}
	trial.Drop(whole)

	// The ledger's shares opened the device: the trial takes no counter for it.
	l.Take(shareOf("x/s", "", "a", "s", 1, 1))
	trial = l.Try()
	trial.TakeShare(a, amounts(1, 0))
	if !free(b, 10) {
		t.Error("the counter was taken twice")
	}
	l.Quarantine(id, "n")
	if o := trial.ObstacleTo(b, amounts(0, 0)); o == nil || o.Code != "Quarantined" {
		t.Errorf("%+v", o)
	}
}

// TestSharesAsIfFromNothing takes and gives at random: what is left follows from what is held, and a ledger that never knew
// of the rest is the same.
func TestSharesAsIfFromNothing(t *testing.T) {
	inv := sharing()
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		l := ledger.New(inv)
		var held []ledger.Holding
		for range 30 {
			if len(held) > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(len(held))
				if !l.Give(held[i]) {
					t.Fatalf("seed %d: %+v was not there", seed, held[i])
				}
				held = slices.Delete(held, i, i+1)
				continue
			}
			h := shareOf(fmt.Sprint("x/", rng.IntN(3)), []string{"", "r0", "r1"}[rng.IntN(3)], []string{"a", "b", "gone"}[rng.IntN(3)], fmt.Sprint("s", rng.IntN(3)), int64(rng.IntN(4)), int64(rng.IntN(2)))
			if rng.IntN(10) == 0 {
				h.Device, h.Share, h.Capacity = []string{"a", "whole"}[rng.IntN(2)], "", nil
			}
			if h.Device == "gone" {
				h.Charge = []inventory.Charge{{CounterSet: "cs", Counter: "h", Milli: int64(1 + rng.IntN(2))}}
			}
			l.Take(h)
			held = append(held, h)
		}
		anew := ledger.New(inv)
		rng.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
		for _, h := range held {
			anew.Take(h)
		}
		if diff := ledger.Differ(anew, l); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		used := int64(0)
		for device, takes := range map[string]int64{"a": 3, "b": 1, "whole": 2, "gone": 0} {
			alone, any, most := map[string]bool{}, map[string]bool{}, takes
			for _, h := range held {
				who := h.Reservation
				if who == "" {
					who = h.Owner
				}
				if h.Device == device {
					any[who] = true
					alone[who] = alone[who] || h.Share == ""
					for _, c := range h.Charge {
						most = max(most, c.Milli)
					}
				}
			}
			shared := false
			for who := range any {
				if alone[who] {
					used += most
				} else {
					shared = true
				}
			}
			if shared {
				used += most
			}
		}
		if got := 4 - l.Left(id, "cs", "h"); got != used {
			t.Fatalf("seed %d: %d of the counter are used, want %d: %+v", seed, got, used, held)
		}
	}
}
