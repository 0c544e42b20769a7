package placement_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
	"github.com/berth-dev/berth/pkg/reason"
)

const oneHost = 1 << 24

// twin is the dumb counterpart of Scored: it goes by names and definitions alone and tries every set of devices.
type twin struct {
	w placement.World
	// holders that stand in each device.
	holders map[*inventory.Device]map[string]bool
	worth   map[*inventory.Device]int64
}

func charges(d *inventory.Device) map[string]int64 {
	out := map[string]int64{}
	for _, c := range d.Charge {
		out[c.CounterSet+"/"+c.Counter] += c.Milli
	}
	return out
}

func totals(p *inventory.Pool) map[string]int64 {
	out := map[string]int64{}
	for _, c := range p.Counters {
		out[c.Set+"/"+c.Name] = c.Milli
	}
	return out
}

// excludes reports whether the amounts cannot be held together.
func excludes(a, b, total map[string]int64) bool {
	for c, x := range a {
		if y := b[c]; x > 0 && y > 0 && x+y > total[c] {
			return true
		}
	}
	return false
}

func newTwin(w placement.World) *twin {
	t := &twin{w: w, holders: map[*inventory.Device]map[string]bool{}, worth: map[*inventory.Device]int64{}}
	for _, p := range w.Inventory.Pools() {
		total := totals(p)
		for _, d := range p.Devices {
			t.holders[d] = map[string]bool{}
			for _, h := range w.Ledger.Holdings() {
				if h.Pool != p.ID {
					continue
				}
				who := h.Owner + "|" + h.Reservation
				if h.Reservation != "" {
					who = h.Reservation
				}
				taken := map[string]int64{}
				held := p.Device(h.Device)
				if held != nil {
					taken = charges(held)
				}
				known := held != nil
				for _, c := range h.Charge {
					if _, ok := p.CounterIndex(c.CounterSet, c.Counter); ok {
						known = true
						key := c.CounterSet + "/" + c.Counter
						taken[key] = max(taken[key], c.Milli)
					}
				}
				near := held == d || excludes(charges(d), taken, total)
				if !known {
					near = len(h.Hosts) == 0 || slices.ContainsFunc(d.Hosts, func(x string) bool { return slices.Contains(h.Hosts, x) })
				}
				if near {
					t.holders[d][who] = true
				}
			}
		}
		for _, c := range w.Inventory.Classes() {
			t.weigh(p, c)
		}
		for _, d := range p.Devices {
			off := len(d.Taints) > 0
			for _, name := range d.Hosts {
				h, _ := w.Inventory.Host(name)
				off = off || h.Blocked != nil
			}
			if off {
				t.worth[d] = 0
			}
			t.worth[d] >>= len(t.holders[d])
		}
	}
	return t
}

func (t *twin) weigh(p *inventory.Pool, c *inventory.Class) {
	total := totals(p)
	for span := 1; span <= 16; span++ {
		asked := map[string]int64{}
		var members []*inventory.Device
		for _, d := range c.Devices {
			if d.Pool == p.ID && len(d.Hosts) == span {
				members = append(members, d)
				for k, x := range charges(d) {
					asked[k] += x
				}
			}
		}
		greatest := 0.0
		for _, x := range t.w.Demand {
			greatest = max(greatest, x)
		}
		for _, d := range members {
			demand := 1.0
			if t.w.Demand != nil {
				demand = max(t.w.Demand[c.Name]/greatest, placement.DemandFloor)
			}
			worth := float64(span) * demand
			if len(d.Charge) > 0 {
				sum := 0.0
				for _, x := range d.Charge {
					key := x.CounterSet + "/" + x.Counter
					sum += min(1, float64(total[key])/float64(asked[key]))
				}
				worth *= sum / float64(len(d.Charge))
			}
			t.worth[d] += int64(worth * oneHost)
		}
	}
}

// loss of one holder's taking all of chosen, in hosts.
func (t *twin) loss(chosen []*inventory.Device) float64 {
	var sum int64
	for _, p := range t.w.Inventory.Pools() {
		total := totals(p)
		for _, d := range p.Devices {
			if slices.ContainsFunc(chosen, func(c *inventory.Device) bool {
				return c == d || c.Pool == d.Pool && excludes(charges(c), charges(d), total)
			}) {
				sum += t.worth[d]
			}
		}
	}
	return float64(sum) / (2 * oneHost)
}

// best tries every set of k devices and returns the least loss, the first set by name that has it, or nil.
func (t *twin) best(g gang.Gang, span int) ([]*inventory.Device, float64) {
	set := g.PodSets[0]
	var all []*inventory.Device
	for _, d := range t.w.Inventory.Class(set.Claims[0].Requests[0].Class).Devices {
		if len(d.Hosts) == span {
			all = append(all, d)
		}
	}
	var found []*inventory.Device
	least := math.Inf(1)
	var try func(from int, chosen []*inventory.Device)
	try = func(from int, chosen []*inventory.Device) {
		if len(chosen)*span == set.Count {
			if loss := t.loss(chosen); loss < least && placement.Recheck(g, asDecision(set, chosen), t.w) == nil {
				found, least = slices.Clone(chosen), loss
			}
			return
		}
		for i := from; i < len(all); i++ {
			try(i+1, append(chosen, all[i]))
		}
	}
	try(0, nil)
	return found, least
}

func asDecision(set gang.PodSet, chosen []*inventory.Device) placement.Decision {
	ps := placement.PodSet{Name: set.Name, Claims: []placement.Claim{{PodClaim: set.Claims[0].PodClaim}}}
	for _, d := range chosen {
		ps.Hosts = append(ps.Hosts, d.Hosts...)
		ps.Claims[0].Instances = append(ps.Claims[0].Instances, placement.Instance{Devices: []placement.Device{{Request: "r", Pool: d.Pool, Name: d.Name}}})
	}
	return placement.Decision{PodSets: []placement.PodSet{ps}}
}

func names(d placement.Decision) []string {
	var out []string
	for _, in := range d.PodSets[0].Claims[0].Instances {
		for _, dev := range in.Devices {
			out = append(out, dev.Pool.Name+"/"+dev.Name)
		}
	}
	return out
}

func asking(class string, span, k int) gang.Gang {
	g := gang.Gang{PodSets: []gang.PodSet{set(span*k, claim("tpu", one(class)))}}
	g.PodSets[0].Slices = k
	return g
}

// occupy takes random devices, some for one reservation, some that vanished, and blocks or quarantines a host.
func occupy(rng *rand.Rand, s *worlds.Site) placement.World {
	for i := range s.Hosts {
		if rng.IntN(12) == 0 {
			s.Hosts[i].Blocked = &reason.Evidence{Kind: "host", Name: s.Hosts[i].Name, Code: reason.HostUnusable, Detail: "is not Ready"}
		}
	}
	inv := s.Inventory()
	w := placement.World{Inventory: inv, Ledger: ledger.New(inv)}
	for i := range rng.IntN(6) {
		p := inv.Pools()[rng.IntN(len(inv.Pools()))]
		d := p.Devices[rng.IntN(len(p.Devices))]
		h := ledger.Holding{Owner: fmt.Sprint("x/", i), Pool: p.ID, Device: d.Name, Hosts: d.Hosts, Charge: d.Charge}
		if rng.IntN(3) == 0 {
			h.Reservation = fmt.Sprint("r", rng.IntN(2))
		}
		if d.Shared {
			h.Share, h.Capacity = fmt.Sprint(i), []inventory.Amount{{Name: "mem", Milli: int64(rng.IntN(3)) * 1000}}
			if w.Ledger.FreeFor(d, h.Capacity) {
				w.Ledger.Take(h)
			}
			continue
		}
		switch rng.IntN(12) {
		case 0:
			h.Device = "gone"
		case 1:
			h.Device, h.Charge = "gone", nil
		case 2:
			h.Device, h.Charge, h.Hosts = "gone", nil, nil
		}
		if h.Device == "gone" || w.Ledger.Free(d) {
			w.Ledger.Take(h)
		}
	}
	if rng.IntN(4) == 0 {
		w.Ledger.Quarantine(inv.Pools()[0].ID, s.Hosts[rng.IntN(len(s.Hosts))].Name)
	}
	if rng.IntN(3) == 0 {
		w.Ledger.Use(s.Hosts[rng.IntN(len(s.Hosts))].Name, "x/pod", map[string]int64{"cpu": 5000})
	}
	if rng.IntN(2) == 0 {
		w.Demand = placement.Demand{"n1": rng.Float64(), "n2": 4 * rng.Float64(), "n4": 1}
	}
	return w
}

func TestScoredAgreesWithItsTwin(t *testing.T) {
	warm := placement.NewScored(0)
	placed, refused, several := 0, 0, 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 1))
		site := worlds.Times(1+rng.IntN(2), func(pool string) *worlds.Site {
			if rng.IntN(2) == 0 {
				return worlds.Random(rng, pool, 2+rng.IntN(5), 3+rng.IntN(7))
			}
			return worlds.Groups(pool, 8, [][]int{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}}[rng.IntN(8):])
		})
		w := occupy(rng, site)
		tw := newTwin(w)
		checkOccupied(t, seed, w, tw)
		for _, class := range w.Inventory.Classes() {
			for _, span := range class.Spans() {
				for k := 1; k <= 3; k++ {
					g := asking(class.Name, span.Hosts, k)
					got := warm.Place(g, w)
					if diff := cmp.Diff(placement.NewScored(0).Place(g, w), got); diff != "" {
						t.Fatalf("seed %d: what was kept changed the answer (-fresh +kept):\n%s", seed, diff)
					}
					want, least := tw.best(g, span.Hosts)
					if (want != nil) != got.Fits() {
						t.Fatalf("seed %d, %d×%s: fits %v (%v), the twin says %v", seed, k, class.Name, got.Fits(), got.Refusal, want)
					}
					if want == nil {
						refused++
						continue
					}
					placed++
					if r := placement.Recheck(g, got, w); r != nil {
						t.Fatalf("seed %d: %v", seed, r)
					}
					if k > 1 && got.Proved {
						several++
					}
					if k == 1 && !got.Proved {
						t.Fatalf("seed %d, %s: one device is not proved", seed, class.Name)
					}
					if got.Score < least || got.Proved && got.Score != least {
						t.Fatalf("seed %d, %d×%s: %v costs %v (proved %v), the twin found %v for %v", seed, k, class.Name, names(got), got.Score, got.Proved, want[0].Short(), least)
					}
					if first := want[0].Short(); k == 1 && names(got)[0] != first {
						t.Fatalf("seed %d, %s: %s, not the first of equals %s", seed, class.Name, names(got)[0], first)
					}
					checkExplained(t, seed, got, g, w, tw)
				}
			}
		}
	}
	if placed < 500 || refused < 500 || several < 100 {
		t.Errorf("only %d placed, %d refused, %d of several devices proved", placed, refused, several)
	}
}

func checkOccupied(t *testing.T, seed uint64, w placement.World, tw *twin) {
	t.Helper()
	for at, p := range w.Inventory.Pools() {
		occ := w.Ledger.Occupied(at)
		if copied := w.Ledger.Clone().Occupied(at); copied.Fingerprint != occ.Fingerprint {
			t.Fatalf("seed %d: a copy has another fingerprint", seed)
		}
		for i, d := range p.Devices {
			standing, free := int32(0), true
			if occ.Standing != nil {
				standing, free = occ.Standing[i], occ.Short[i] == 0 && occ.Shut[i] == 0
			}
			if int(standing) != len(tw.holders[d]) {
				t.Fatalf("seed %d: %d stand in %s, want %v", seed, standing, d.Short(), tw.holders[d])
			}
			if free != w.Ledger.Free(d) {
				t.Fatalf("seed %d: %s free %v", seed, d.Short(), free)
			}
		}
	}
}

// checkExplained holds Destroys against two ledgers, and the runners-up against the same question without the winner.
func checkExplained(t *testing.T, seed uint64, got placement.Decision, g gang.Gang, w placement.World, tw *twin) {
	t.Helper()
	after := w.Ledger.Clone()
	chosen := map[string]bool{}
	for _, name := range names(got) {
		chosen[name] = true
	}
	for _, p := range w.Inventory.Pools() {
		for _, d := range p.Devices {
			if chosen[d.Short()] {
				after.Take(ledger.Holding{Owner: "me", Reservation: "me", Pool: d.Pool, Device: d.Name})
			}
		}
	}
	want := map[string]int{}
	for _, c := range w.Inventory.Classes() {
		for _, d := range c.Devices {
			pool, _ := w.Inventory.Position(d.Pool)
			at, _ := w.Inventory.Pools()[pool].Plan().Position(d)
			if !chosen[d.Short()] && !w.Inventory.State(pool).Off[at] && w.Ledger.Free(d) && !after.Free(d) {
				want[c.Name]++
			}
		}
	}
	if diff := cmp.Diff(want, got.Destroys); diff != "" {
		t.Fatalf("seed %d, %v destroys (-want +got):\n%s", seed, names(got), diff)
	}
	last := got.Score
	for _, up := range got.RunnersUp {
		d := w.Inventory.Device(up.Pool, up.Name)
		if loss := tw.loss([]*inventory.Device{d}); loss != up.Score || up.Score < last {
			t.Fatalf("seed %d: runner-up %s costs %v after %v, want %v", seed, d.Short(), up.Score, last, loss)
		}
		last = up.Score
		if r := placement.Recheck(g, asDecision(g.PodSets[0], []*inventory.Device{d}), w); r != nil {
			t.Fatalf("seed %d: runner-up %s: %v", seed, d.Short(), r)
		}
	}
	if len(got.RunnersUp) > 5 {
		t.Fatalf("%d runners-up", len(got.RunnersUp))
	}
}
