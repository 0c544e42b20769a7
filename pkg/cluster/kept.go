package cluster

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/nodes"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// kept is a ledger with the objects that it was booked from, and what each of them has booked. Invariant: between updates
// the ledger is what scratch makes of the objects.
type kept struct {
	known  known
	view   *dra.View
	ledger *ledger.Ledger

	claims       list[*resourcev1.ResourceClaim]
	reservations list[*berth.GangReservation]
	workloads    list[*kueue.Workload]
	pods         list[*corev1.Pod]

	claim       map[*resourcev1.ResourceClaim]claimed
	reservation map[*berth.GangReservation]*reserved
	workload    map[workloadKey]*kueue.Workload
	// hostnames are node names by the hostname label.
	hostnames map[string]string
	// requests are shared by pods that ask for the same.
	requests shared

	// claimsOf lists claims and ofUID reservations by the reservation's UID; of an empty UID there are none.
	claimsOf index[string, *resourcev1.ResourceClaim]
	ofUID    index[string, *berth.GangReservation]
	// named lists reservations, and podsOf the pods that name them, by the reservation's namespace/name.
	named  index[string, *berth.GangReservation]
	podsOf index[string, *corev1.Pod]
	// serving lists reservations by the Workload that they serve.
	serving index[workloadKey, *berth.GangReservation]
}

// claimed is what a claim has booked. located: where it stands follows from the nodes.
type claimed struct {
	holdings []ledger.Holding
	located  bool
}

// reserved is what a reservation has booked, beside its quarantine.
type reserved struct {
	holdings []ledger.Holding
	seats    []seat
}

func newKept(hardware *dra.Cache) *kept {
	return &kept{
		known:       known{cache: hardware},
		claim:       map[*resourcev1.ResourceClaim]claimed{},
		reservation: map[*berth.GangReservation]*reserved{},
		workload:    map[workloadKey]*kueue.Workload{},
		claimsOf:    index[string, *resourcev1.ResourceClaim]{},
		ofUID:       index[string, *berth.GangReservation]{},
		named:       index[string, *berth.GangReservation]{},
		podsOf:      index[string, *corev1.Pod]{},
		serving:     index[workloadKey, *berth.GangReservation]{},
	}
}

// dirty is what an update has to look at again.
type dirty struct {
	changes changes
	// holdings and seats of these reservations may have changed.
	holdings, seats map[*berth.GangReservation]struct{}
}

// update makes the ledger that of the snapshot.
func (k *kept) update(s *snapshot.Snapshot) error {
	d := &dirty{changes: newChanges(), holdings: map[*berth.GangReservation]struct{}{}, seats: map[*berth.GangReservation]struct{}{}}
	moved := k.readHardware(s)
	k.followClaims(s.ResourceClaims, moved, d)
	k.followReservations(s.Reservations, d)
	k.followPods(s.Pods, d)
	k.followWorkloads(s.Workloads, d)
	if moved.nodes {
		if now := hostnames(s.Nodes); !maps.Equal(now, k.hostnames) {
			k.hostnames = now
			for r := range k.reservation {
				d.seats[r] = struct{}{}
			}
		}
	}
	for r := range d.holdings {
		k.bookHoldings(r, d)
	}
	for r := range d.seats {
		k.bookSeats(r, d)
	}
	return d.changes.apply(k.ledger)
}

func (k *kept) readHardware(s *snapshot.Snapshot) moves {
	view, moved := k.known.read(s)
	switch {
	case k.ledger == nil:
		k.ledger = ledger.New(view.Inventory)
	case view.Inventory != k.view.Inventory:
		k.ledger = k.ledger.Onto(view.Inventory)
	}
	k.view = view
	return moved
}

func (k *kept) followClaims(now []*resourcev1.ResourceClaim, moved moves, d *dirty) {
	gone, come := k.claims.follow(now)
	served := func(c *resourcev1.ResourceClaim, update func(index[string, *resourcev1.ResourceClaim], string)) {
		uid := dra.ReservationUID(c)
		if uid == "" {
			return
		}
		update(k.claimsOf, uid)
		for r := range k.ofUID[uid] {
			d.holdings[r] = struct{}{}
		}
	}
	for _, c := range gone {
		served(c, func(x index[string, *resourcev1.ResourceClaim], uid string) { x.remove(uid, c) })
		d.changes.give(k.claim[c].holdings)
		delete(k.claim, c)
	}
	if moved.managed || moved.nodes {
		for c, was := range k.claim {
			if moved.managed || was.located {
				d.changes.give(was.holdings)
				k.bookClaim(c, d)
			}
		}
	}
	for _, c := range come {
		served(c, func(x index[string, *resourcev1.ResourceClaim], uid string) { x.add(uid, c) })
		k.bookClaim(c, d)
	}
}

func (k *kept) bookClaim(c *resourcev1.ResourceClaim, d *dirty) {
	var now claimed
	now.holdings, now.located = k.view.OfClaim(c)
	d.changes.take(now.holdings)
	k.claim[c] = now
}

func (k *kept) followReservations(now []*berth.GangReservation, d *dirty) {
	gone, come := k.reservations.follow(now)
	for _, r := range gone {
		was := k.reservation[r]
		d.changes.give(was.holdings)
		d.changes.leave(was.seats...)
		for _, q := range r.Status.Quarantine {
			d.changes.quarantine(q, -1)
		}
		delete(k.reservation, r)
		delete(d.holdings, r)
		k.named.remove(nameOf(r), r)
		k.serving.remove(workloadOf(r), r)
		if r.UID != "" {
			k.ofUID.remove(string(r.UID), r)
		}
	}
	for _, r := range come {
		k.reservation[r] = &reserved{}
		for _, q := range r.Status.Quarantine {
			d.changes.quarantine(q, 1)
		}
		d.holdings[r], d.seats[r] = struct{}{}, struct{}{}
		k.named.add(nameOf(r), r)
		k.serving.add(workloadOf(r), r)
		if r.UID != "" {
			k.ofUID.add(string(r.UID), r)
		}
	}
}

func (k *kept) followPods(now []*corev1.Pod, d *dirty) {
	gone, come := k.pods.follow(now)
	each := func(list []*corev1.Pod, book func(...seat), update func(string, *corev1.Pod)) {
		for _, p := range list {
			if nodes.Occupies(p) {
				book(seat{node: p.Spec.NodeName, name: p.Namespace + "/" + p.Name, requests: k.requests.of(p)})
			}
			r := reservationOf(p)
			if r == "" {
				continue
			}
			update(r, p)
			for res := range k.named[r] {
				d.seats[res] = struct{}{}
			}
		}
	}
	each(gone, d.changes.leave, k.podsOf.remove)
	each(come, d.changes.use, k.podsOf.add)
}

func (k *kept) followWorkloads(now []*kueue.Workload, d *dirty) {
	gone, come := k.workloads.follow(now)
	touch := func(key workloadKey) {
		for r := range k.serving[key] {
			d.seats[r] = struct{}{}
		}
	}
	for _, w := range gone {
		delete(k.workload, keyOf(w))
		touch(keyOf(w))
	}
	for _, w := range come {
		k.workload[keyOf(w)] = w
		touch(keyOf(w))
	}
}

func (k *kept) bookHoldings(r *berth.GangReservation, d *dirty) {
	is, known := k.reservation[r]
	if !known {
		return
	}
	d.changes.give(is.holdings)
	is.holdings = nil
	if !dra.Released(r, r.UID != "" && len(k.claimsOf[string(r.UID)]) > 0) {
		is.holdings = dra.OfReservation(r)
		d.changes.take(is.holdings)
	}
}

func (k *kept) bookSeats(r *berth.GangReservation, d *dirty) {
	is, known := k.reservation[r]
	if !known {
		return
	}
	d.changes.leave(is.seats...)
	is.seats = nil
	if w := k.workload[workloadOf(r)]; w != nil && mayGetPods(r) {
		pods := slices.Collect(maps.Keys(k.podsOf[nameOf(r)]))
		is.seats = seatsOf(r, requestsOf(w), pods, k.hostnames)
		d.changes.use(is.seats...)
	}
}

// without is a ledger of the caller's own in which the named reservations have nothing but their quarantine.
func (k *kept) without(names map[string]bool) (*ledger.Ledger, error) {
	l := k.ledger.Clone()
	gone := newChanges()
	for name := range names {
		for r := range k.named[name] {
			gone.give(k.reservation[r].holdings)
			gone.leave(k.reservation[r].seats...)
			if r.UID == "" {
				continue
			}
			for c := range k.claimsOf[string(r.UID)] {
				gone.give(k.claim[c].holdings)
			}
		}
		for p := range k.podsOf[name] {
			if !nodes.Occupies(p) {
				continue
			}
			gone.leave(seat{node: p.Spec.NodeName, name: p.Namespace + "/" + p.Name, requests: nodes.Used(p)})
		}
	}
	if err := gone.apply(l); err != nil {
		return nil, fmt.Errorf("leaving reservations out: %w", err)
	}
	return l, nil
}

func nameOf(r *berth.GangReservation) string { return r.Namespace + "/" + r.Name }

// share is one host of a pool.
type share struct {
	pool inventory.PoolID
	host string
}
