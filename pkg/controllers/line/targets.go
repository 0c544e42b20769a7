package line

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	"github.com/berth-dev/berth/pkg/adapt/jobs"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
)

// planned is a target and what is said of it.
type planned struct {
	res     *berth.GangReservation
	message string
}

// standing are the targets that former passes wrote down, as far as they are for the admission that waits now. They are
// read and not computed again, so that a new leader goes on where the last one stood.
func (v *view) standing(queue map[types.UID]waiting) []line.Target {
	slices.SortFunc(v.targets, func(a, b *berth.GangReservation) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var all []line.Target
	for _, res := range v.targets {
		w, waits := queue[res.Spec.WorkloadRef.UID]
		if !waits || res.DeletionTimestamp != nil || res.Spec.Epoch != w.epoch || res.Spec.Check != string(w.check.Name) {
			continue
		}
		all = append(all, line.Target{For: string(res.Spec.WorkloadRef.UID), Decision: decided(res)})
	}
	return all
}

// decided is the decision that a reservation writes down.
func decided(res *berth.GangReservation) placement.Decision {
	var d placement.Decision
	for _, ps := range res.Spec.PodSets {
		set := placement.PodSet{Name: ps.Name, Hosts: jobs.NodesOf(ps)}
		for _, c := range ps.Claims {
			claim := placement.Claim{PodClaim: c.PodClaim, PodsPerClaim: int(c.PodsPerClaim)}
			for _, dev := range c.Devices {
				for int(dev.Instance) >= len(claim.Instances) {
					claim.Instances = append(claim.Instances, placement.Instance{})
				}
				in := &claim.Instances[dev.Instance]
				in.Devices = append(in.Devices, placement.Device{
					Request: dev.Request, Pool: inventory.PoolID{Driver: dev.Driver, Name: dev.Pool}, Generation: dev.Generation,
					Name: dev.Device, Hosts: dev.Hosts, Charge: charged(dev.Charge), Share: dev.Share, Capacity: dra.Amounts(dev.Capacity),
				})
			}
			set.Claims = append(set.Claims, claim)
		}
		d.PodSets = append(d.PodSets, set)
	}
	return d
}

func charged(in []berth.CounterCharge) []inventory.Charge {
	out := make([]inventory.Charge, 0, len(in))
	for _, c := range in {
		out = append(out, inventory.Charge{CounterSet: c.CounterSet, Counter: c.Counter, Milli: c.Milli})
	}
	return out
}

// target is the reservation that writes a target down: that of its decision under a name of its own.
func (w waiting) target(t *line.Target, inv *inventory.Inventory) *berth.GangReservation {
	res := record(w.workload, string(w.check.Name), w.epoch, w.request, t.Decision, inv)
	res.Name = fmt.Sprintf("%s-target-%08x", res.Name, digest(t.Decision))
	for i := range res.Spec.PodSets {
		// Domains are for people who look at what a gang holds, and are not read back. What a later pass reads has to be what it
		// would write.
		res.Spec.PodSets[i].Domains, res.Spec.PodSets[i].Across = nil, false
	}
	res.Finalizers = nil // There is nothing to give back.
	res.Spec.Target = true
	return res
}

// digest tells decisions apart by their devices.
func digest(d placement.Decision) uint32 {
	h := fnv.New32a()
	for _, ps := range d.PodSets {
		for _, c := range ps.Claims {
			for i, in := range c.Instances {
				for _, dev := range in.Devices {
					_, _ = fmt.Fprintf(h, "%q %q %d %q %q %q\n", ps.Name, c.PodClaim, i, dev.Request, dev.Pool, dev.Name)
				}
			}
		}
	}
	return h.Sum32()
}

// keep has the targets of a pass written down, and those that stand no more deleted.
func (v *view) keep(result *line.Result, queue map[types.UID]waiting, s *steps) {
	written := map[types.NamespacedName]*berth.GangReservation{}
	for _, res := range v.targets {
		written[types.NamespacedName{Namespace: res.Namespace, Name: res.Name}] = res
	}
	for i := range result.Targets {
		t := &result.Targets[i]
		w, ours := queue[types.UID(t.For)]
		if !ours {
			continue
		}
		res := w.target(t, v.world.Inventory)
		key := types.NamespacedName{Namespace: res.Namespace, Name: res.Name}
		if have := written[key]; have != nil && have.DeletionTimestamp == nil {
			if !equality.Semantic.DeepEqual(have.Spec, res.Spec) {
				continue // Its name is taken by what it was; the pass after that is gone writes it down.
			}
			delete(written, key)
			res = have
		}
		if p := (planned{res, t.String()}); !p.told() {
			s.targets = append(s.targets, p)
		}
		if !t.Due.IsZero() {
			// From then on a holder that is still there counts as one whose end nobody knows.
			if left := t.Due.Add(line.Overdue).Sub(v.now); left > 0 {
				s.due(left + time.Second)
			}
		}
	}
	for _, res := range written {
		if res.DeletionTimestamp == nil {
			s.drop = append(s.drop, res)
		}
	}
}

// told reports whether the target is written down with its phase and what it waits for.
func (p planned) told() bool {
	c := apimeta.FindStatusCondition(p.res.Status.Conditions, berth.ReservationProgressing)
	return p.res.Status.Phase == berth.PhasePlanned && c != nil && c.Message == p.message
}

// recalls are the reservations that have to go, and for whom.
func (v *view) recalls(result *line.Result) map[types.NamespacedName]*reason.Refusal {
	going := map[string]*reason.Refusal{}
	for _, r := range result.Recalls {
		going[r.Owner] = &reason.Refusal{Code: reason.Recalled, Message: fmt.Sprintf(
			"the slice was lent to the gang until %s needs it, and all else that it waits for is free", r.For.Gang.Key)}
	}
	out := make(map[types.NamespacedName]*reason.Refusal, len(v.reservations))
	for key, res := range v.reservations {
		if res.Status.Phase != berth.PhaseReleasing {
			out[key] = going[key.String()]
		}
	}
	return out
}
