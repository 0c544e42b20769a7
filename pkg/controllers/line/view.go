package line

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	adaptkueue "github.com/berth-dev/berth/pkg/adapt/kueue"
	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/line"
	"github.com/berth-dev/berth/pkg/placement"
	"github.com/berth-dev/berth/pkg/reason"
	"github.com/berth-dev/berth/pkg/snapshot"
)

// view is everything that a pass decides on.
type view struct {
	now      time.Time
	world    placement.World
	snapshot *snapshot.Snapshot
	// pinned are the pods that carry the name of a reservation.
	pinned []*corev1.Pod
	checks adaptkueue.Checks
	lookup adaptkueue.Lookup
	// readings of Workloads, by lookup.
	readings *adaptkueue.Readings
	// reservations that hold something, or did, and targets, which do not.
	reservations map[types.NamespacedName]*berth.GangReservation
	targets      []*berth.GangReservation
	// former and present reservations of each Workload.
	ofWorkload map[types.UID][]*berth.GangReservation
	configs    map[string]*berth.GangReservationConfig
	// seating is how long the pods of a gang may take where its check does not say.
	seating time.Duration
	// ending are the owners whose pods of a former admission have not ended yet.
	ending map[types.UID]bool
	// notFenced is why nothing may be reserved; nil when the policies are in force.
	notFenced *reason.Refusal
	// unfenced says the same of one DRA pool.
	unfenced func(inventory.PoolID) *reason.Refusal
	// backoff says how long a Workload has to wait after a refused write, and for what.
	backoff func(types.UID) (time.Duration, *reason.Refusal)
	// memory keeps refusals between passes; nil to keep none.
	memory *line.Memory
	// demand counts what gangs ask for; nil to let all classes count alike.
	demand *line.Demand
}

// index makes the lookups of a pass out of its snapshot. folds are its CapacityFolds on the world's hardware.
func index(s *snapshot.Snapshot, w placement.World, folds []fold.Compiled) *view {
	v := &view{
		world: w, snapshot: s, checks: adaptkueue.OurChecks(s.AdmissionChecks),
		reservations: map[types.NamespacedName]*berth.GangReservation{},
		ofWorkload:   map[types.UID][]*berth.GangReservation{},
		configs:      map[string]*berth.GangReservationConfig{},
		pinned:       pinned(s),
		lookup:       adaptkueue.NewLookup(s, w.Inventory, folds),
		readings:     &adaptkueue.Readings{},
	}
	for _, r := range s.Reservations {
		if !r.Holds() {
			v.targets = append(v.targets, r)
			continue
		}
		v.reservations[types.NamespacedName{Namespace: r.Namespace, Name: r.Name}] = r
		v.ofWorkload[r.Spec.WorkloadRef.UID] = append(v.ofWorkload[r.Spec.WorkloadRef.UID], r)
	}
	for _, c := range s.Configs {
		v.configs[c.Name] = c
	}
	v.ending = ending(s, v.pinned)
	return v
}

// pinned are the pods of gangs. They are few among all pods, so that a pass looks for them once.
func pinned(s *snapshot.Snapshot) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range s.Pods {
		if p.Labels[berth.LabelReservation] != "" {
			out = append(out, p)
		}
	}
	return out
}

// served reports whether a reservation for the Workload's present admission is under way or stands. Its name is no proof:
// a check that was taken off and put on again counts anew.
func (v *view) served(wl *kueue.Workload) bool {
	for _, r := range v.ofWorkload[wl.UID] {
		if r.Status.Phase != berth.PhaseReleasing && adaptkueue.DemandFor(r, wl).Current {
			return true
		}
	}
	return false
}

// hostsHeld counts the hosts that the gangs of each ClusterQueue hold.
func (v *view) hostsHeld() map[string]int {
	return adaptkueue.HostsHeld(v.snapshot, queueOf)
}

// phases counts the reservations by phase.
func (v *view) phases() map[string]int {
	count := map[string]int{}
	for _, r := range v.snapshot.Reservations {
		phase := r.Status.Phase
		if phase == "" {
			phase = berth.PhasePlanned
		}
		count[string(phase)]++
	}
	return count
}

// noFitTimeout is how long a gang of the check keeps its quota without a slice; zero means for ever.
func (v *view) noFitTimeout(check *kueue.AdmissionCheck) time.Duration {
	config := v.configOf(check)
	if config == nil || config.Spec.NoFit.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*config.Spec.NoFit.TimeoutSeconds) * time.Second
}

// seatingTimeout is how long the pods of a gang may take to appear, and each of them to find its place. The first of it is
// counted in pkg/controllers/seating.
func (v *view) seatingTimeout(check string) time.Duration {
	config := v.configOf(v.checks[kueue.AdmissionCheckReference(check)])
	if config == nil {
		return v.seating
	}
	return config.Spec.Seating.Timeout(v.seating)
}

// configOf is what the check names as its parameters, or nil.
func (v *view) configOf(check *kueue.AdmissionCheck) *berth.GangReservationConfig {
	if check == nil || check.Spec.Parameters == nil {
		return nil
	}
	return v.configs[check.Spec.Parameters.Name]
}
