package cluster

import (
	"fmt"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/gang"
	"github.com/berth-dev/berth/pkg/inventory"
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
				w.Ledger.Take(booking(owner, &c.Devices[i]))
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
			for _, instance := range c.Instances {
				for _, dev := range instance.Devices {
					w.Ledger.Take(ledger.Holding{
						Owner: owner, Reservation: owner, Pool: dev.Pool, Device: dev.Name, Charge: dev.Charge, Hosts: dev.Hosts,
					})
				}
			}
		}
		for rank, host := range ps.Hosts {
			w.Ledger.Use(host, fmt.Sprintf("%s[%s/%d]", owner, ps.Name, rank), requests[ps.Name])
		}
	}
}

// booking holds a device under the reservation's name: it has no UID before it is written.
func booking(owner string, d *berth.ReservedDevice) ledger.Holding {
	h := ledger.Holding{
		Owner: owner, Reservation: owner,
		Pool: inventory.PoolID{Driver: d.Driver, Name: d.Pool}, Device: d.Device, Hosts: d.Hosts,
	}
	for _, c := range d.Charge {
		h.Charge = append(h.Charge, inventory.Charge{CounterSet: c.CounterSet, Counter: c.Counter, Milli: c.Milli})
	}
	return h
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
