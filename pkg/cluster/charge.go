package cluster

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
)

// Charge books a decision that is about to be written down, its devices and the room of its pods, so that the next gang of
// the same pass finds them taken. The next World has them from the reservation itself.
func Charge(w placement.World, res *berth.GangReservation, g gang.Gang) {
	owner := res.Namespace + "/" + res.Name
	requests := map[string]map[string]int64{}
	for _, ps := range g.PodSets {
		requests[ps.Name] = ps.Requests
	}
	for _, ps := range res.Spec.PodSets {
		for _, c := range ps.Claims {
			for i := range c.Devices {
				// It has no UID before it is written, so its name stands for it.
				w.Ledger.Take(dra.Recorded(owner, owner, c.Prefix, &c.Devices[i]))
			}
		}
	}
	for _, s := range promisedSeats(res) {
		w.Ledger.Use(s.node, fmt.Sprintf("%s[%s/%d]", g.Key, s.set, s.rank), requests[s.set])
	}
}

// ChargeDecision is Charge for a decision that nobody will write down: what a gang would take, held under a name.
func ChargeDecision(w placement.World, owner string, g gang.Gang, d placement.Decision) {
	requests := map[string]map[string]int64{}
	for _, ps := range g.PodSets {
		requests[ps.Name] = ps.Requests
	}
	for _, ps := range d.PodSets {
		for _, c := range ps.Claims {
			for i, instance := range c.Instances {
				for _, dev := range instance.Devices {
					h := ledger.Holding{
						Owner: owner, Reservation: owner, Pool: dev.Pool, Device: dev.Name, Charge: dev.Charge, Hosts: dev.Hosts, Capacity: dev.Capacity,
					}
					if dev.Share {
						h.Share = fmt.Sprintf("%s %s-%d %s", ps.Name, c.PodClaim, i, dev.Request)
					}
					w.Ledger.Take(h)
				}
			}
		}
		for rank, host := range ps.Hosts {
			w.Ledger.Use(host, fmt.Sprintf("%s[%s/%d]", owner, ps.Name, rank), requests[ps.Name])
		}
	}
}

type promisedSeat struct {
	node, set string
	rank      int
}

// promisedSeats are the ranks of the reservation with the nodes that its devices name; the devices of a pod's first claim
// say where it stands.
func promisedSeats(res *berth.GangReservation) []promisedSeat {
	var seats []promisedSeat
	for _, ps := range res.Spec.PodSets {
		if len(ps.Claims) == 0 {
			continue
		}
		c := ps.Claims[0]
		for rank := range ps.Hosts {
			for i := range c.Devices {
				d := &c.Devices[i]
				per := int(c.PodsPerClaim)
				if per > 0 && int(d.Instance) == rank/per && rank%per < len(d.Hosts) {
					seats = append(seats, promisedSeat{node: d.Hosts[rank%per], set: ps.Name, rank: rank})
					break
				}
			}
		}
	}
	return seats
}
