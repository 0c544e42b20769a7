package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// brute looks for any placement of a whole gang by trying all: pod sets with several claims, requests for several devices, and
// domains. It goes by the definitions and keeps its own accounts; of the ledger it asks only what each device, counter and
// host has left.
type brute struct {
	w     placement.World
	g     gang.Gang
	used  map[string]int64
	taken map[*inventory.Device]int
	// mem is what shares take of their device's only capacity.
	mem  map[*inventory.Device]int64
	pods map[string]int
	// together says which pod sets must stand in one domain.
	together []bool
	steps    int
	limit    int
}

// spanOf is how many hosts the devices have that serve a request, or 0 when none can.
func (b *brute) spanOf(set gang.PodSet, r gang.Request) int {
	slicesOf, has := max(1, set.Slices), map[int]bool{}
	for _, d := range b.w.Inventory.Class(r.Class).Devices {
		has[len(d.Hosts)] = true
	}
	if per := set.Count / slicesOf; set.Count%slicesOf == 0 && per > 1 && has[per] && r.Count == 1 {
		return per
	}
	if has[1] {
		return 1
	}
	return 0
}

// served reports whether the shapes alone allow a placement, and how many hosts a block has.
func (b *brute) served(set gang.PodSet) (size int, ok bool) {
	size = 1
	for _, c := range set.Claims {
		of := 0
		for _, r := range c.Requests {
			span := b.spanOf(set, r)
			if span == 0 || of != 0 && of != span {
				return 0, false
			}
			of, size = span, max(size, span)
		}
	}
	return size, true
}

func (b *brute) exists() bool {
	for _, set := range b.g.PodSets {
		if _, ok := b.served(set); !ok {
			return false
		}
	}
	return b.place(0, 0, nil)
}

// place gives the block with that number of a pod set its devices, and everything after it. ties are the domains that the
// requests of the pod set stand in so far.
func (b *brute) place(i, block int, ties map[any]inventory.Domain) bool {
	if i == len(b.g.PodSets) {
		return true
	}
	set := b.g.PodSets[i]
	size, _ := b.served(set)
	if block == set.Count/size {
		return b.place(i+1, 0, nil)
	}
	next := func(ties map[any]inventory.Domain) bool { return b.place(i, block+1, ties) }
	if size == 1 {
		for _, h := range b.w.Inventory.Hosts() {
			if b.seat([]string{h}, set, func() bool { return b.fill(i, []string{h}, 0, 0, 0, 0, nil, ties, next) }) {
				return true
			}
		}
		return false
	}
	seen := map[string]bool{}
	for _, p := range b.w.Inventory.Pools() {
		for _, d := range p.Devices {
			hosts := slices.Sorted(slices.Values(d.Hosts))
			if len(hosts) != size || seen[fmt.Sprint(hosts)] {
				continue
			}
			seen[fmt.Sprint(hosts)] = true
			if b.seat(hosts, set, func() bool { return b.fill(i, hosts, 0, 0, 0, 0, nil, ties, next) }) {
				return true
			}
		}
	}
	return false
}

// seat tries something with a pod more on each host.
func (b *brute) seat(hosts []string, set gang.PodSet, then func() bool) bool {
	ok := true
	for _, h := range hosts {
		b.pods[h]++
		_, out := set.Ineligible[h]
		ok = ok && !out && b.w.Ledger.Room(h, set.Requests) >= b.pods[h]
	}
	ok = ok && then()
	for _, h := range hosts {
		b.pods[h]--
	}
	return ok
}

// fill gives request r of claim c its n-th device on host h of a block, and everything after it. after is the last device
// taken for the same request and host: the next ones come behind it.
func (b *brute) fill(i int, hosts []string, c, r, h, n int, after *inventory.Device, ties map[any]inventory.Domain, then func(map[any]inventory.Domain) bool) bool {
	if b.steps++; b.steps > b.limit {
		return false
	}
	set := b.g.PodSets[i]
	switch {
	case c == len(set.Claims):
		return then(ties)
	case r == len(set.Claims[c].Requests):
		return b.fill(i, hosts, c+1, 0, 0, 0, nil, ties, then)
	}
	req := set.Claims[c].Requests[r]
	span := b.spanOf(set, req)
	if h == len(hosts)/span {
		return b.fill(i, hosts, c, r+1, 0, 0, nil, ties, then)
	}
	if n == req.Count {
		return b.fill(i, hosts, c, r, h+1, 0, nil, ties, then)
	}
	on := hosts[h : h+1]
	if span > 1 {
		on = hosts
	}
	behind := after == nil
	for _, d := range b.w.Inventory.Class(req.Class).Devices {
		if !behind {
			behind = d == after
			continue
		}
		if !slices.Equal(slices.Sorted(slices.Values(d.Hosts)), on) || !b.free(d, req) {
			continue
		}
		now := ties
		if b.together[i] && b.bound(set, req, span) {
			keys := []any{[2]int{c, r}, d.Domain.By}
			if !d.Domain.Known() || slices.ContainsFunc(keys, func(key any) bool { at, has := ties[key]; return has && at != d.Domain }) {
				continue
			}
			now = map[any]inventory.Domain{}
			for k, v := range ties {
				now[k] = v
			}
			for _, key := range keys {
				now[key] = d.Domain
			}
		}
		b.take(d, req, 1)
		if b.fill(i, hosts, c, r, h, n+1, d, now, then) {
			return true
		}
		b.take(d, req, -1)
	}
	return false
}

// bound reports whether a request is for devices of pools of which one names an interconnect, and the pod set takes several
// such devices.
func (b *brute) bound(set gang.PodSet, r gang.Request, span int) bool {
	total := 0
	for _, c := range set.Claims {
		for _, other := range c.Requests {
			if of := b.spanOf(set, other); of > 0 && b.tied(other, of) {
				total += set.Count / of * other.Count
			}
		}
	}
	return b.tied(r, span) && total > 1
}

func (b *brute) tied(r gang.Request, span int) bool {
	return slices.ContainsFunc(b.w.Inventory.Class(r.Class).Devices, func(d *inventory.Device) bool {
		return len(d.Hosts) == span && d.Domain.Named()
	})
}

func (b *brute) free(d *inventory.Device, r gang.Request) bool {
	if len(d.Taints) > 0 {
		return false
	}
	for _, h := range d.Hosts {
		if host, _ := b.w.Inventory.Host(h); host.Blocked != nil {
			return false
		}
	}
	open := false
	if !d.Shared {
		if b.taken[d] > 0 || !b.w.Ledger.Free(d) || len(r.Capacity) > 0 {
			return false
		}
	} else {
		takes, left := b.share(r), int64(4000)
		for _, h := range b.w.Ledger.Holdings() {
			if h.Pool == d.Pool && h.Device == d.Name {
				open = true
				for _, a := range h.Capacity {
					left -= a.Milli
				}
			}
		}
		if open = open || b.taken[d] > 0; left-b.mem[d] < takes || !b.w.Ledger.FreeFor(d, []inventory.Amount{{Name: "mem", Milli: takes}}) {
			return false
		}
	}
	for k, milli := range charges(d) {
		set, counter := cutCounter(k)
		if !open && b.used[d.Pool.Name+" "+k]+milli > b.w.Ledger.Left(d.Pool, set, counter) {
			return false
		}
	}
	return true
}

// share is what a request takes of a shared device here: all of its memory unless it says how much.
func (b *brute) share(r gang.Request) int64 {
	if len(r.Capacity) == 0 {
		return 4000
	}
	return r.Capacity[0].Milli
}

func (b *brute) take(d *inventory.Device, r gang.Request, sign int64) {
	held := d.Shared && slices.ContainsFunc(b.w.Ledger.Holdings(), func(h ledger.Holding) bool { return h.Pool == d.Pool && h.Device == d.Name })
	if d.Shared {
		b.mem[d] += sign * b.share(r)
	}
	if sign < 0 {
		b.taken[d]--
	}
	if b.taken[d] == 0 && !held {
		for k, milli := range charges(d) {
			b.used[d.Pool.Name+" "+k] += sign * milli
		}
	}
	if sign > 0 {
		b.taken[d]++
	}
}

func cutCounter(key string) (set, counter string) {
	for i := range key {
		if key[i] == '/' {
			return key[:i], key[i+1:]
		}
	}
	return key, ""
}

// judge says what is wrong with a decision, by the definitions.
func judge(g gang.Gang, d placement.Decision, w placement.World) error {
	b := &brute{w: w, g: g, used: map[string]int64{}, taken: map[*inventory.Device]int{}, mem: map[*inventory.Device]int64{}, pods: map[string]int{}}
	if len(d.PodSets) != len(g.PodSets) {
		return fmt.Errorf("%d pod sets", len(d.PodSets))
	}
	for i, set := range g.PodSets {
		ps := d.PodSets[i]
		if ps.Name != set.Name || len(ps.Hosts) != set.Count || len(ps.Claims) != len(set.Claims) {
			return fmt.Errorf("pod set %s has %d hosts and %d claims", ps.Name, len(ps.Hosts), len(ps.Claims))
		}
		for _, h := range ps.Hosts {
			if b.pods[h]++; w.Ledger.Room(h, set.Requests) < b.pods[h] {
				return fmt.Errorf("no room for %d pods on %s", b.pods[h], h)
			}
		}
		for c, claim := range ps.Claims {
			if len(claim.Instances)*claim.PodsPerClaim != set.Count {
				return fmt.Errorf("%d instances for %d pods each", len(claim.Instances), claim.PodsPerClaim)
			}
			count := map[string]int{}
			for n, in := range claim.Instances {
				clear(count)
				inClaim := map[[2]string]bool{}
				for _, dev := range in.Devices {
					count[dev.Request]++
					device := w.Inventory.Device(dev.Pool, dev.Name)
					hosts := ps.Hosts[n*claim.PodsPerClaim : (n+1)*claim.PodsPerClaim]
					if !slices.Equal(slices.Sorted(slices.Values(device.Hosts)), slices.Sorted(slices.Values(hosts))) {
						return fmt.Errorf("%s stands on %v, its pods on %v", dev.Name, device.Hosts, hosts)
					}
					req := set.Claims[c].Requests[slices.IndexFunc(set.Claims[c].Requests, func(r gang.Request) bool { return r.Name == dev.Request })]
					if !b.free(device, req) {
						return fmt.Errorf("%s is not free", dev.Name)
					}
					of := [2]string{dev.Request, device.ID()}
					if device.Shared != dev.Share || inClaim[of] {
						return fmt.Errorf("%s: share %v, twice in one request %v", dev.Name, dev.Share, inClaim[of])
					}
					inClaim[of] = true
					b.take(device, req, 1)
				}
				for _, r := range set.Claims[c].Requests {
					if count[r.Name] != r.Count {
						return fmt.Errorf("%d devices for request %s, want %d", count[r.Name], r.Name, r.Count)
					}
				}
			}
		}
		if set.Interconnect == gang.Required && b.apart(set, ps) {
			return fmt.Errorf("in %v", ps.Domains)
		}
	}
	return nil
}

// apart reports whether devices of a pod set that belong together stand in several domains, or in none.
func (b *brute) apart(set gang.PodSet, ps placement.PodSet) bool {
	byBy := map[string][]*inventory.Device{}
	for c, claim := range ps.Claims {
		for _, r := range set.Claims[c].Requests {
			if !b.bound(set, r, b.spanOf(set, r)) {
				continue
			}
			var devices []*inventory.Device
			for _, in := range claim.Instances {
				for _, d := range in.Devices {
					if device := b.w.Inventory.Device(d.Pool, d.Name); d.Request == r.Name {
						devices = append(devices, device)
						byBy[device.Domain.By] = append(byBy[device.Domain.By], device)
					}
				}
			}
			if !inOneDomain(devices) {
				return true
			}
		}
	}
	for _, devices := range byBy {
		if !inOneDomain(devices) {
			return true
		}
	}
	return false
}

func anySite(rng *rand.Rand) *worlds.Site {
	if rng.IntN(4) == 0 {
		return tied(rng)
	}
	site := worlds.Times(1+rng.IntN(2), func(pool string) *worlds.Site { return worlds.Mixed(rng, pool, 2+rng.IntN(2)) })
	if rng.IntN(2) == 0 {
		racks := 1 + rng.IntN(2)
		site.Tie("rack", func(d *inventory.Device) string {
			if len(d.Hosts) > 1 || rng.IntN(8) == 0 {
				return ""
			}
			return fmt.Sprint("r", int(d.Hosts[0][len(d.Hosts[0])-1]-'0')%racks)
		})
		if rng.IntN(3) == 0 { // Each pool has an interconnect of its own.
			for i := range site.Slices {
				for j := range site.Slices[i].Devices {
					site.Slices[i].Devices[j].Domain.By += " of " + site.Slices[i].Pool.Name
				}
			}
		}
	}
	return site
}

// anyGang asks for random shapes of what there is.
func anyGang(rng *rand.Rand, inv *inventory.Inventory) gang.Gang {
	var g gang.Gang
	classes := inv.Classes()
	// All pods are alike, so that the twin counts them.
	requests := map[string]int64{"cpu": []int64{1000, 4000}[rng.IntN(2)], "pods": 1000}
	for i := range 1 + rng.IntN(2) {
		class := func() *inventory.Class { return classes[rng.IntN(len(classes))] }
		first := class()
		if rng.IntN(2) == 0 {
			first = inv.Class("n1")
			if first.State != inventory.ClassManaged {
				first = class()
			}
		}
		companion := func() string {
			if rng.IntN(3) > 0 {
				return first.Name
			}
			return class().Name
		}
		span := first.Spans()[0].Hosts
		set := gang.PodSet{Name: fmt.Sprint("set-", i), Requests: requests}
		set.Slices = 1 + rng.IntN(2)
		set.Count = span * set.Slices
		if span == 1 {
			set.Count = 1 + rng.IntN(3)
		}
		set.Claims = []gang.Claim{claim("a", gang.Request{Name: "r", Class: first.Name, Count: 1})}
		if span == 1 && rng.IntN(3) == 0 {
			set.Claims[0].Requests[0].Count = 2
		}
		if rng.IntN(3) == 0 {
			set.Claims[0].Requests = append(set.Claims[0].Requests, gang.Request{Name: "s", Class: companion(), Count: 1})
		}
		if rng.IntN(3) == 0 {
			set.Claims = append(set.Claims, claim("b", gang.Request{Name: "r", Class: companion(), Count: 1 + rng.IntN(2)}))
		}
		if rng.IntN(3) == 0 {
			set.Claims[0].Requests[0].Capacity = []inventory.Amount{{Name: "mem", Milli: 1000 * int64(1+rng.IntN(2))}}
		}
		if rng.IntN(3) == 0 {
			set.Interconnect = gang.Required
		}
		g.PodSets = append(g.PodSets, set)
	}
	return g
}

// TestAnyGangAgreesWithItsTwin compares random gangs on random worlds, in which three devices may fit a counter two at a time,
// parts of hosts lie beside devices of several hosts, and some devices share no counter at all.
func TestAnyGangAgreesWithItsTwin(t *testing.T) {
	warm := placement.NewScored(0)
	fits, refused, several, shares, skipped := 0, 0, 0, 0, 0
	for seed := range uint64(5000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		w := occupy(rng, anySite(rng))
		g := anyGang(rng, w.Inventory)
		b := &brute{w: w, g: g, used: map[string]int64{}, taken: map[*inventory.Device]int{}, mem: map[*inventory.Device]int64{}, pods: map[string]int{}, limit: 300_000}
		impossible := false
		for _, set := range g.PodSets {
			size, _ := b.served(set)
			tied, several := false, false
			for _, c := range set.Claims {
				for _, r := range c.Requests {
					span := b.spanOf(set, r)
					tied = tied || span > 0 && b.tied(r, span)
					several = several || span > 0 && set.Count/span*r.Count > 1
				}
			}
			// Who requires a domain where no pool names one gets nothing.
			impossible = impossible || size > 0 && set.Interconnect == gang.Required && several && !tied
			b.together = append(b.together, set.Interconnect == gang.Required)
		}
		want := !impossible && b.exists()
		if b.steps > b.limit {
			skipped++
			continue
		}
		for name, placer := range map[string]placement.Placer{"FirstFit": placement.FirstFit{}, "Scored": warm} {
			got := placer.Place(g, w)
			if got.Fits() != want && (got.Fits() || got.Proved) {
				t.Fatalf("seed %d, %s: fits %v (%v, proved %v), the twin says %v\n%+v", seed, name, got.Fits(), got.Refusal, got.Proved, want, g)
			}
			if !got.Fits() {
				if !want {
					refused++
				}
				continue
			}
			fits++
			for _, in := range got.PodSets[0].Claims[0].Instances {
				if in.Devices[0].Share {
					shares++
					break
				}
			}
			if err := judge(g, got, w); err != nil {
				t.Fatalf("seed %d, %s: %v\n%+v\n%+v", seed, name, err, g, got)
			}
			if r := placement.Recheck(g, got, w); r != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, r)
			}
			if len(g.PodSets) > 1 || len(g.PodSets[0].Claims) > 1 || len(g.PodSets[0].Claims[0].Requests) > 1 || g.PodSets[0].Claims[0].Requests[0].Count > 1 {
				several++
			}
		}
	}
	t.Logf("%d fit, %d of them more than one request of one device, %d with shares, %d refused, %d too large for the twin", fits, several, shares, refused, skipped)
	if fits < 1000 || several < 300 || shares < 200 || refused < 1000 || skipped > 60 {
		t.Errorf("%d fit, %d of them more than one request of one device, %d with shares, %d refused, %d too large for the twin", fits, several, shares, refused, skipped)
	}
}

// In one domain if that is possible: when the twin finds a placement with every pod set in one, the decision has one, too.
func TestPreferredAgreesWithItsTwin(t *testing.T) {
	warm := placement.NewScored(0)
	together, across := 0, 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 10))
		w := occupy(rng, anySite(rng))
		g := anyGang(rng, w.Inventory)
		b := &brute{w: w, g: g, used: map[string]int64{}, taken: map[*inventory.Device]int{}, mem: map[*inventory.Device]int64{}, pods: map[string]int{}, limit: 300_000}
		for i := range g.PodSets {
			g.PodSets[i].Interconnect = gang.Preferred
			b.together = append(b.together, true)
		}
		want := b.exists()
		if b.steps > b.limit {
			continue
		}
		for name, placer := range map[string]placement.Placer{"FirstFit": placement.FirstFit{}, "Scored": warm} {
			got := placer.Place(g, w)
			if !got.Fits() {
				if want {
					t.Fatalf("seed %d, %s: refused: %v", seed, name, got.Refusal)
				}
				continue
			}
			apart := false
			for i, ps := range got.PodSets {
				apart = apart || b.apart(g.PodSets[i], ps)
				if ps.Across != b.apart(g.PodSets[i], ps) {
					t.Fatalf("seed %d, %s: across %v\n%+v\n%+v", seed, name, ps.Across, g, got)
				}
			}
			if apart == want {
				t.Fatalf("seed %d, %s: apart %v, the twin finds them together: %v\n%+v\n%+v", seed, name, apart, want, g, got)
			}
			if want {
				together++
			} else {
				across++
			}
		}
	}
	if together < 200 || across < 50 {
		t.Errorf("only %d together and %d across", together, across)
	}
}
