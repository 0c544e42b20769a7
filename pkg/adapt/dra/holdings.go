package dra

import (
	"encoding/json"
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// Holdings are the devices of managed pools that allocated ResourceClaims and living reservations hold. Results with
// adminAccess take nothing, nor do targets. Reservations whose namespace/name is in without are left out together with their claims.
func (v *View) Holdings(s *snapshot.Snapshot, without map[string]bool) []ledger.Holding {
	var out []ledger.Holding
	skipped := map[string]bool{}
	claimed := map[string]bool{}
	for _, c := range s.ResourceClaims {
		if uid := ReservationUID(c); uid != "" {
			claimed[uid] = true
		}
	}
	for _, r := range s.Reservations {
		uid := string(r.UID)
		switch {
		case without[r.Namespace+"/"+r.Name]:
			skipped[uid] = true
		case Released(r, claimed[uid]):
		default:
			out = append(out, OfReservation(r)...)
		}
	}
	for _, c := range s.ResourceClaims {
		if uid := ReservationUID(c); uid == "" || !skipped[uid] {
			holdings, _ := v.OfClaim(c)
			out = append(out, holdings...)
		}
	}
	return out
}

// Released reports whether a reservation holds nothing: it is a target, or is being released and none of its claims exists.
func Released(r *berth.GangReservation, hasClaims bool) bool {
	return !r.Holds() || r.Status.Phase == berth.PhaseReleasing && !hasClaims
}

// ReservationUID returns the UID of the reservation that the claim serves, or "" when it is not one of Berth's. The
// claims policy keeps others from the name prefix, so that nobody can hide a claim behind a reservation.
func ReservationUID(c *resourcev1.ResourceClaim) string {
	if !strings.HasPrefix(c.Name, berth.ClaimNamePrefix) {
		return ""
	}
	return c.Annotations[berth.AnnotationReservationUID]
}

// OfReservation are the devices that a reservation holds until it is released.
func OfReservation(r *berth.GangReservation) []ledger.Holding {
	var out []ledger.Holding
	for _, ps := range r.Spec.PodSets {
		for _, c := range ps.Claims {
			for i := range c.Devices {
				out = append(out, Recorded(r.Namespace+"/"+r.Name, string(r.UID), c.Prefix, &c.Devices[i]))
			}
		}
	}
	return out
}

// Recorded is a device that a reservation holds, under the owner's name, for claims that are named after the prefix.
func Recorded(owner, uid, prefix string, d *berth.ReservedDevice) ledger.Holding {
	h := recorded(owner, uid, d)
	if d.Share {
		h.Share = share(fmt.Sprintf("%s-%d", prefix, d.Instance), d.Request)
	}
	return h
}

// share names what one request of one claim has of a shared device. It has no more than one share of it.
func share(claim, request string) string { return claim + " " + request }

// Amounts reads what a share takes.
func Amounts(capacity []berth.CapacityShare) []inventory.Amount {
	var out []inventory.Amount
	for _, c := range capacity {
		out = append(out, inventory.Amount{Name: c.Name, Milli: c.Milli})
	}
	return out
}

func recorded(owner, uid string, d *berth.ReservedDevice) ledger.Holding {
	h := ledger.Holding{
		Owner: owner, Reservation: uid, Pool: inventory.PoolID{Driver: d.Driver, Name: d.Pool}, Device: d.Device, Hosts: d.Hosts,
		Capacity: Amounts(d.Capacity),
	}
	for _, c := range d.Charge {
		h.Charge = append(h.Charge, inventory.Charge{CounterSet: c.CounterSet, Counter: c.Counter, Milli: c.Milli})
	}
	return h
}

// OfClaim are the devices of managed pools that a claim holds. located says that the nodes were asked where some of them
// stand; the others follow from the claim and from which pools are managed.
func (v *View) OfClaim(c *resourcev1.ResourceClaim) (holdings []ledger.Holding, located bool) {
	if c.Status.Allocation == nil {
		return nil, false
	}
	uid := ReservationUID(c)
	record := RecordedDevices(c)
	owner := c.Namespace + "/" + c.Name
	if name := c.Labels[berth.LabelReservation]; uid != "" && name != "" {
		// The reservation stands for its claims, so that what is said of it does not change when they appear.
		owner = c.Namespace + "/" + name
	}
	for _, r := range c.Status.Allocation.Devices.Results {
		pool := inventory.PoolID{Driver: r.Driver, Name: r.Pool}
		if ptr.Deref(r.AdminAccess, false) || v.Managed.Owner(pool) == nil {
			continue
		}
		h := ledger.Holding{Owner: owner, Reservation: uid, Pool: pool, Device: r.Device}
		for i := range record {
			if d := &record[i]; uid != "" && d.Driver == r.Driver && d.Pool == r.Pool && d.Device == r.Device && d.Request == r.Request {
				h = recorded(owner, uid, d)
			}
		}
		if r.ShareID != nil {
			h.Share, h.Capacity = share(c.Name, r.Request), taken(r.ConsumedCapacity)
		}
		if len(h.Hosts) == 0 {
			h.Hosts, located = v.hostsOf(c.Status.Allocation), true
		}
		holdings = append(holdings, h)
	}
	return holdings, located
}

// hostsOf are the hosts that an allocation is for; none when it is for every node or matches none.
func (v *View) hostsOf(a *resourcev1.AllocationResult) []string {
	return v.topology.resolve(nil, a.NodeSelector, nil, "").hosts
}

// RecordedDevices reads what a pinned claim says it holds; nil when it says nothing that can be read.
func RecordedDevices(c *resourcev1.ResourceClaim) []berth.ReservedDevice {
	var devices []berth.ReservedDevice
	if json.Unmarshal([]byte(c.Annotations[berth.AnnotationDevices]), &devices) != nil {
		return nil
	}
	return devices
}
