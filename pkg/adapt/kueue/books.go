package kueue

import (
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/adapt/dra"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// Books say who holds what of the folds' hardware, and what Kueue charges for it.
type Books struct {
	cohorts Cohorts
	// charges by ClusterQueue.
	charges map[string]map[Quota]int64
	// held is, for each fold by its position, what gangs hold of it.
	held  [][]holding
	quota []Quota
}

// holding is what one gang holds of one fold.
type holding struct {
	queue   string
	shares  int
	running bool
	gang    types.UID
	charged int64
}

// NewBooks reads a snapshot. The folds are compiled on the hardware of the same one.
func NewBooks(s *snapshot.Snapshot, compiled []fold.Compiled) *Books {
	b := &Books{
		cohorts: NewCohorts(s.Cohorts, s.ClusterQueues), charges: map[string]map[Quota]int64{},
		held: make([][]holding, len(compiled)),
	}
	// A host is one fold's alone.
	owner := map[string]int{}
	for i, c := range compiled {
		b.quota = append(b.quota, quotaOf(c))
		if c.Problem == nil {
			for h := range c.Hosts {
				owner[h] = i
			}
		}
	}
	workloads := make(map[types.UID]*kueue.Workload, len(s.Workloads))
	usages := map[types.UID]map[Quota]int64{}
	for _, wl := range s.Workloads {
		workloads[wl.UID] = wl
		usage := Usage(wl)
		if usage == nil {
			continue
		}
		usages[wl.UID] = usage
		queue := string(wl.Status.Admission.ClusterQueue)
		if b.charges[queue] == nil {
			b.charges[queue] = map[Quota]int64{}
		}
		for of, n := range usage {
			b.charges[queue][of] += n
		}
	}
	claimed := map[string]bool{}
	for _, c := range s.ResourceClaims {
		claimed[dra.ReservationUID(c)] = true
	}
	queueOf := queues(s)
	for _, r := range s.Reservations {
		if dra.Released(r, claimed[string(r.UID)]) {
			continue
		}
		wl := workloads[r.Spec.WorkloadRef.UID]
		for i, shares := range sharesOf(r, owner) {
			h := holding{shares: shares, gang: r.Spec.WorkloadRef.UID}
			if wl != nil {
				h.queue = queueOf(wl)
				h.running = Running(wl) && r.Status.Phase != berth.PhaseReleasing
				h.charged = usages[wl.UID][b.quota[i]]
			}
			b.held[i] = append(b.held[i], h)
		}
	}
	return b
}

func quotaOf(c fold.Compiled) Quota { return Quota{Flavor: c.Flavor, Resource: c.Resource} }

// sharesOf counts the shares that a reservation holds of each fold, given which fold has which host.
func sharesOf(r *berth.GangReservation, owner map[string]int) map[int]int {
	shares := map[int]int{}
	for _, ps := range r.Spec.PodSets {
		for _, c := range ps.Claims {
			for i := range c.Devices {
				for _, h := range c.Devices[i].Hosts {
					if of, known := owner[h]; known {
						shares[of]++
					}
				}
			}
		}
	}
	return shares
}

// queues says in which ClusterQueue a Workload is, or was when it lost its quota.
func queues(s *snapshot.Snapshot) func(*kueue.Workload) string {
	local := make(map[types.NamespacedName]string, len(s.LocalQueues))
	for _, q := range s.LocalQueues {
		local[types.NamespacedName{Namespace: q.Namespace, Name: q.Name}] = string(q.Spec.ClusterQueue)
	}
	return func(wl *kueue.Workload) string {
		if wl.Status.Admission != nil {
			return string(wl.Status.Admission.ClusterQueue)
		}
		return local[types.NamespacedName{Namespace: wl.Namespace, Name: string(wl.Spec.QueueName)}]
	}
}

// Queues are the ClusterQueues whose Workloads a target's quota is for.
func (b *Books) Queues(t berth.FoldTarget) map[string]bool {
	if t.Kind == berth.FoldCohort {
		return b.cohorts.Under(t.Name)
	}
	return map[string]bool{t.Name: true}
}

// Charged is what Kueue charges of the fold's quota to a target: all that a ClusterQueue uses, and of a Cohort what those below
// it use beyond quotas of their own.
func (b *Books) Charged(c fold.Compiled, t berth.FoldTarget) int {
	of := quotaOf(c)
	charged := func(queue string) int64 { return b.charges[queue][of] }
	if t.Kind == berth.FoldCohort {
		return int(b.cohorts.Drawn(t.Name, of, charged))
	}
	return int(charged(t.Name))
}

// Gangs are those of the ClusterQueues that hold shares of a fold, which is named by its position. One whose Workload is gone counts as held: nobody can tell
// whose it was.
func (b *Books) Gangs(of int, queues map[string]bool) fold.Gangs {
	var g fold.Gangs
	charged := map[types.UID]bool{}
	for _, h := range b.held[of] {
		if !queues[h.queue] && h.queue != "" {
			continue
		}
		g.Held += h.shares
		if !h.running {
			continue
		}
		g.Running += h.shares
		if !charged[h.gang] {
			charged[h.gang] = true
			g.Charged += int(h.charged)
		}
	}
	return g
}
