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
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// realm is what a domain is worth, by the definition: free hosts under the devices of the smallest span, times demand, halved
// for every holder in it.
func (t *twin) realm(domain inventory.Domain) int64 {
	var members []*inventory.Device
	smallest, demand := 0, 0.0
	holders, hosts := map[string]bool{}, map[string]bool{}
	for _, p := range t.w.Inventory.Pools() {
		for _, d := range p.Devices {
			if d.Domain != domain {
				continue
			}
			members = append(members, d)
			if smallest == 0 || len(d.Hosts) < smallest {
				smallest = len(d.Hosts)
			}
			for who := range t.holders[d] {
				holders[who] = true
			}
		}
	}
	greatest := 0.0
	for _, x := range t.w.Demand {
		greatest = max(greatest, x)
	}
	for _, c := range t.w.Inventory.Classes() {
		if slices.ContainsFunc(c.Devices, func(d *inventory.Device) bool { return d.Domain == domain }) {
			share := 1.0
			if t.w.Demand != nil {
				share = max(t.w.Demand[c.Name]/greatest, placement.DemandFloor)
			}
			demand = max(demand, share)
		}
	}
	for _, d := range members {
		if len(d.Hosts) == smallest && t.w.Ledger.Free(d) && !t.off(d) {
			for _, h := range d.Hosts {
				hosts[h] = true
			}
		}
	}
	return int64(len(hosts)) * int64(demand*oneHost) >> len(holders)
}

func (t *twin) off(d *inventory.Device) bool {
	off := len(d.Taints) > 0
	for _, name := range d.Hosts {
		h, _ := t.w.Inventory.Host(name)
		off = off || h.Blocked != nil
	}
	return off
}

// entering is what it costs, in hosts, that one more holder stands in the domains of the chosen devices.
func (t *twin) entering(chosen []*inventory.Device) float64 {
	sum, in := int64(0), map[inventory.Domain]bool{}
	for _, d := range chosen {
		if d.Domain.Known() && !in[d.Domain] {
			in[d.Domain] = true
			sum += t.realm(d.Domain)
		}
	}
	return float64(sum) / (2 * oneHost)
}

func inOneDomain(chosen []*inventory.Device) bool {
	for _, d := range chosen {
		if !d.Domain.Known() || d.Domain != chosen[0].Domain {
			return false
		}
	}
	return true
}

// bestIn tries every set of k devices: the cheapest in one domain, and the cheapest anywhere. Nil when there is none.
func (t *twin) bestIn(g gang.Gang, span int) (together, anywhere []*inventory.Device, least float64) {
	set := g.PodSets[0]
	var all []*inventory.Device
	for _, d := range t.w.Inventory.Class(set.Claims[0].Requests[0].Class).Devices {
		if len(d.Hosts) == span {
			all = append(all, d)
		}
	}
	least = math.Inf(1)
	var try func(from int, chosen []*inventory.Device)
	try = func(from int, chosen []*inventory.Device) {
		if len(chosen)*span == set.Count {
			if placement.Recheck(g, asDecision(set, chosen), t.w) != nil {
				return
			}
			if anywhere == nil {
				anywhere = slices.Clone(chosen)
			}
			if inOneDomain(chosen) {
				if loss := t.loss(chosen) + t.entering(chosen); loss < least {
					together, least = slices.Clone(chosen), loss
				}
			}
			return
		}
		for i := from; i < len(all); i++ {
			try(i+1, append(chosen, all[i]))
		}
	}
	try(0, nil)
	return together, anywhere, least
}

// tied is a small world in which some pools name an interconnect, some devices belong to no domain, and domains may lie
// across pools.
func tied(rng *rand.Rand) *worlds.Site {
	site := worlds.Times(1+rng.IntN(3), func(pool string) *worlds.Site {
		switch rng.IntN(3) {
		case 0:
			return worlds.Random(rng, pool, 2+rng.IntN(4), 3+rng.IntN(6))
		case 1:
			return worlds.Groups(pool, 4, [][]int{{0}, {1}, {2}, {3}, {0, 1}, {2, 3}, {0, 1, 2, 3}}[rng.IntN(4):])
		default:
			return worlds.Groups(pool, 3, [][]int{{0}, {1}, {2}})
		}
	})
	untied := fmt.Sprint("pool-", rng.IntN(4))
	domains := 1 + rng.IntN(3)
	site.Tie("rack", func(*inventory.Device) string {
		if n := rng.IntN(domains + 1); n < domains || rng.IntN(2) == 0 {
			return fmt.Sprint("r", n%domains)
		}
		return ""
	})
	for i := range site.Slices {
		for j := range site.Slices[i].Devices {
			if d := &site.Slices[i].Devices[j]; site.Slices[i].Pool.Name == untied {
				d.Domain = inventory.Domain{}
			}
		}
	}
	return site
}

func TestDomainsAgreeWithTheirTwin(t *testing.T) {
	warm := placement.NewScored(0)
	inOne, across, refused, proved := 0, 0, 0, 0
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := occupy(rng, tied(rng))
		tw := newTwin(w)
		for _, class := range w.Inventory.Classes() {
			for _, span := range class.Spans() {
				for k := 1; k <= 3; k++ {
					g := asking(class.Name, span.Hosts, k)
					if rng.IntN(2) == 0 {
						g.PodSets[0].Interconnect = gang.Required
					}
					together, anywhere, least := tw.bestIn(g, span.Hosts)
					free := k == 1 || !span.Tied
					must := g.PodSets[0].Interconnect == gang.Required && !free
					fits := anywhere != nil && (!must || together != nil) && (k == 1 || span.Tied || g.PodSets[0].Interconnect != gang.Required)
					for name, placer := range map[string]placement.Placer{"FirstFit": placement.FirstFit{}, "Scored": warm} {
						got := placer.Place(g, w)
						where := fmt.Sprintf("seed %d, %s, %d×%s of %d, %q", seed, name, k, class.Name, span.Hosts, g.PodSets[0].Interconnect)
						if name == "Scored" {
							if diff := cmp.Diff(placement.NewScored(0).Place(g, w), got); diff != "" {
								t.Fatalf("%s: what was kept changed the answer (-fresh +kept):\n%s", where, diff)
							}
						}
						if got.Fits() != fits {
							t.Fatalf("%s: fits %v (%v), the twin says %v, together %v", where, got.Fits(), got.Refusal, anywhere, together)
						}
						if !fits {
							if !got.Proved {
								t.Fatalf("%s: not proved: %v", where, got.Refusal)
							}
							refused++
							continue
						}
						if r := placement.Recheck(g, got, w); r != nil {
							t.Fatalf("%s: %v", where, r)
						}
						chosen := chosenDevices(got, w)
						if !free && (inOneDomain(chosen) != (together != nil) || got.PodSets[0].Across != (together == nil)) {
							t.Fatalf("%s: %v, together %v", where, names(got), together)
						}
						if name != "Scored" {
							continue
						}
						cost := tw.loss(chosen) + tw.entering(chosen)
						if got.Score != cost {
							t.Fatalf("%s: %v costs %v, the twin says %v", where, names(got), got.Score, cost)
						}
						for _, up := range got.RunnersUp {
							d := []*inventory.Device{w.Inventory.Device(up.Pool, up.Name)}
							if cost := tw.loss(d) + tw.entering(d); up.Score != cost || cost < got.Score {
								t.Fatalf("%s: runner-up %s costs %v, the twin says %v", where, up.Name, up.Score, cost)
							}
						}
						switch {
						case free:
						case together == nil:
							across++
							if got.Proved {
								t.Fatalf("%s: nobody can prove that", where)
							}
						default:
							inOne++
							if cost < least || got.Proved && cost > least {
								t.Fatalf("%s: %v costs %v (proved %v), the twin found %v for %v", where, names(got), cost, got.Proved, together[0].Short(), least)
							}
							if got.Proved {
								proved++
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d in one domain (%d proved), %d across, %d refused", inOne, proved, across, refused)
	if inOne < 300 || proved < 200 || across < 50 || refused < 500 {
		t.Errorf("only %d in one domain (%d proved), %d across, %d refused", inOne, proved, across, refused)
	}
}

func chosenDevices(d placement.Decision, w placement.World) []*inventory.Device {
	var out []*inventory.Device
	for _, in := range d.PodSets[0].Claims[0].Instances {
		for _, dev := range in.Devices {
			out = append(out, w.Inventory.Device(dev.Pool, dev.Name))
		}
	}
	return out
}
