package reservation

import "github.com/berth-dev/berth/pkg/reason"

// Phase of a reservation, as recorded on the object.
type Phase string

// Phases in their order. Releasing is final: a reservation that once began to release never serves again.
const (
	Planned    Phase = "Planned"
	Reserved   Phase = "Reserved"
	HandedOver Phase = "HandedOver"
	Releasing  Phase = "Releasing"
)

// CheckState is the state of our admission check; empty when the check is not on the Workload.
type CheckState string

// Check states as Kueue spells them.
const (
	CheckPending  CheckState = "Pending"
	CheckReady    CheckState = "Ready"
	CheckRetry    CheckState = "Retry"
	CheckRejected CheckState = "Rejected"
)

// View is everything that Next decides on.
type View struct {
	Phase Phase
	// Target: the reservation is what a waiting gang waits for. It holds nothing, and the line alone makes and ends it.
	Target bool
	// Recorded: the reservation object exists. It does not for a claim that outlived its reservation.
	Recorded bool
	// Deleting: somebody deleted the reservation object.
	Deleting bool
	// Finalizer: ours is on the reservation object.
	Finalizer bool
	Demand    Demand
	// Started: the gang's Job runs, and its template sends every pod that it creates to this reservation. It is looked at only
	// when nobody asks for the reservation (see Demand.Unasked).
	Started bool
	// Lost is why the slice can no longer be used although it is held: taint, lost host, room taken, no pods in time.
	Lost *reason.Refusal
	// Failed is why a write of this reservation was refused for good by the API server.
	Failed *reason.Refusal
	// Claims in the order of the spec, one per ResourceClaim that the reservation promises.
	Claims []Claim
	// Pods that carry the reservation's label or stand in one of its claims.
	Pods []Pod
	// Ranks are the shares: one per promised pod.
	Ranks []Rank
	// Quarantine holds the recorded shares; Unresolved says whether the host is still in doubt.
	Quarantine []Share
}

// Demand is what Kueue wants of the reservation.
type Demand struct {
	// Gone: no Workload with the recorded UID exists.
	Gone     bool
	Deleting bool
	// Orphaned: the object that created the gang's pods is gone, and the Workload was kept. No pod can come any more.
	Orphaned bool
	Finished bool
	Evicted  bool
	Quota    bool
	Admitted bool
	Active   bool
	// Current: the Workload's epoch is the reservation's.
	Current bool
	// Check is empty when the check does not apply (any more).
	Check CheckState
	// Named: the check's podSetUpdates send the pods to this reservation.
	Named bool
}

// Wanted reports whether the reservation is to be served.
func (d Demand) Wanted() bool {
	return !d.Gone && !d.Deleting && !d.Finished && !d.Evicted && d.Quota && d.Active && d.Current &&
		(d.Check == CheckPending || (d.Check == CheckReady && d.Named))
}

// Unasked reports whether all of the demand stands but the question: the check was taken off a Workload that is admitted.
// There is nobody then who could be asked to evict the gang.
func (d Demand) Unasked() bool {
	return !d.Gone && !d.Deleting && !d.Finished && !d.Evicted && d.Quota && d.Admitted && d.Active && d.Current && d.Check == ""
}

// Claim is one promised ResourceClaim as it stands.
type Claim struct {
	Name  string
	State ClaimState
	// Deleting: it has a deletionTimestamp.
	Deleting bool
	// Finalizer: ours is on it.
	Finalizer bool
}

// ClaimState is what a claim's status says.
type ClaimState int

// Claim states.
const (
	// Missing: no such object.
	Missing ClaimState = iota
	// Foreign: an object of that name that this reservation did not make.
	Foreign
	// Free: ours, not allocated.
	Free
	// Unheld: ours and allocated, but without the Workload's entry in reservedFor.
	Unheld
	// Held: ours, allocated and with the Workload's entry.
	Held
)

// Allocated reports whether the claim keeps a device from others.
func (s ClaimState) Allocated() bool { return s == Unheld || s == Held }

// Pod is one pod that has to do with the reservation.
type Pod struct {
	Name string
	// Stranger: it is not controlled by the gang's owner, or the pod policy did not pin it.
	Stranger bool
	// Gated: the seating gate is still on it.
	Gated bool
	// Seated: it stands in reservedFor of one of the claims.
	Seated bool
	// Terminal: phase Succeeded or Failed.
	Terminal bool
	// Deleting: it has a deletionTimestamp.
	Deleting bool
}

// MayRun reports whether the pod runs, or could come to run without another act of ours. A gated pod without an entry
// cannot: only seating takes the gate off, it adds the entry first, and a claim in deletion takes no new entries.
func (p Pod) MayRun() bool { return !p.Terminal && !(p.Gated && !p.Seated) }

// Rank is one share: one host of one device, meant for one pod.
type Rank struct {
	Host string
	// Ended: a pod of this rank succeeded, so none came after it. That a pod failed says nothing about its successors,
	// which may have been let go and be gone again; neither do pods behind their gate.
	Ended bool
	// Doubtful: the host exists, is not Ready and is not declared out of service, so a pod whose object is gone may
	// still run there.
	Doubtful bool
}

// Share is a quarantined host.
type Share struct {
	Host string
	// Doubtful as for Rank.
	Doubtful bool
}
