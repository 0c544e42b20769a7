package line

import (
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/placement"
)

// charge books a decision: its devices under the name of the gang, and the room of its pods.
func charge(l *ledger.Ledger, e Entry, d placement.Decision) {
	chargeAs(l, e.holder(), e.Gang.Key.String(), e, d)
}

// chargeAs books a decision under other names.
func chargeAs(l *ledger.Ledger, owner, pods string, e Entry, d placement.Decision) {
	requests := requestsOf(e)
	for _, ps := range d.PodSets {
		for _, c := range ps.Claims {
			for i, in := range c.Instances {
				for _, dev := range in.Devices {
					h := ledger.Holding{
						Owner: owner, Reservation: owner, Pool: dev.Pool, Device: dev.Name, Charge: dev.Charge, Hosts: dev.Hosts, Capacity: dev.Capacity,
					}
					if dev.Share {
						h.Share = fmt.Sprintf("%s %s-%d %s", ps.Name, c.PodClaim, i, dev.Request)
					}
					l.Take(h)
				}
			}
		}
		for rank, host := range ps.Hosts {
			l.Use(host, seatName(pods, ps.Name, rank), requests[ps.Name])
		}
	}
}

// requestsOf are the requests of one pod by pod set.
func requestsOf(e Entry) map[string]map[string]int64 {
	out := make(map[string]map[string]int64, len(e.Gang.PodSets))
	for _, ps := range e.Gang.PodSets {
		out[ps.Name] = ps.Requests
	}
	return out
}

// seatName is the name that the room of a pod to come has in the ledger.
func seatName(pods, podSet string, rank int) string {
	return fmt.Sprintf("%s[%s/%d]", pods, podSet, rank)
}

// booking is the gang as one that runs from now on.
func (e Entry) booking(d placement.Decision, now time.Time) *Running {
	r := &Running{Owner: e.holder(), Priority: e.Priority, Since: now}
	if e.Runs > 0 {
		r.Ends = now.Add(e.Runs)
	}
	for _, ps := range d.PodSets {
		for rank := range ps.Hosts {
			r.Pods = append(r.Pods, seatName(e.Gang.Key.String(), ps.Name, rank))
		}
	}
	return r
}

// want is what a decision takes, as a question to the ledger. It is false when one of its devices is not published as it
// was decided on.
func want(e Entry, d placement.Decision, inv *inventory.Inventory) (ledger.Want, bool) {
	w := ledger.Want{Seats: map[string]map[string]int64{}}
	requests := requestsOf(e)
	for _, ps := range d.PodSets {
		for _, c := range ps.Claims {
			for _, in := range c.Instances {
				for _, chosen := range in.Devices {
					dev := inv.Device(chosen.Pool, chosen.Name)
					if dev == nil || dev.Shared != chosen.Share || chosen.Share && len(chosen.Capacity) != len(dev.Capacity) {
						return w, false
					}
					if chosen.Share {
						w.Shares = append(w.Shares, ledger.Share{Device: dev, Takes: chosen.Capacity})
						continue
					}
					w.Devices = append(w.Devices, dev)
				}
			}
		}
		for _, host := range ps.Hosts {
			sum := w.Seats[host]
			if sum == nil {
				sum = map[string]int64{}
				w.Seats[host] = sum
			}
			for name, milli := range requests[ps.Name] {
				sum[name] = inventory.Add(sum[name], milli)
			}
			if _, given := requests[ps.Name][ledger.Pods]; !given {
				sum[ledger.Pods] += 1000
			}
		}
	}
	return w, true
}
