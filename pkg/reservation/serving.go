package reservation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/reason"
)

// serving is the table of a reservation that has not begun to release. It leads from the written intent to a Ready check
// and keeps the promise while the gang runs. Every way out of it is Release (nobody waits for the answer) or Retry
// (Kueue counts on the answer, so the gang has to be evicted as a whole first).
var serving = []rule{
	{"no-longer-wanted", func(v View) (Plan, bool) {
		if v.Deleting || !v.Demand.Wanted() {
			return release(&reason.Refusal{Code: reason.Contended, Message: v.Demand.why(v.Deleting)}), true
		}
		return Plan{}, false
	}},
	// A slice that cannot be used is given back as a whole, whatever part of it still works.
	{"lost", func(v View) (Plan, bool) {
		if v.Lost == nil {
			return Plan{}, false
		}
		return giveUp(v, v.Lost), true
	}},
	// A Job that was deleted without its pods leaves a Workload that nobody will ever finish. Its pods run to their end.
	{"orphaned", func(v View) (Plan, bool) {
		if !v.Demand.Orphaned || len(v.podsIn(func(p Pod) bool { return p.Seated && !p.Terminal })) > 0 {
			return Plan{}, false
		}
		return giveUp(v, &reason.Refusal{
			Code: reason.Unsupported, Message: "the Workload has lost its owner and the gang's pods have ended",
		}), true
	}},
	{"write-refused", func(v View) (Plan, bool) {
		if v.Failed == nil {
			return Plan{}, false
		}
		return giveUp(v, v.Failed), true
	}},
	// Never adopt: a claim that this reservation did not make may promise anything to anybody.
	{"foreign-claim", func(v View) (Plan, bool) {
		foreign := v.claimsIn(func(c Claim) bool { return c.State == Foreign })
		if len(foreign) == 0 {
			return Plan{}, false
		}
		return giveUp(v, &reason.Refusal{Code: reason.ReservationFailed, Message: fmt.Sprintf(
			"ResourceClaim %s exists already and is not Berth's: delete it", strings.Join(foreign, ", "))}), true
	}},
	// A claim in deletion takes no new pods, so the gang could never be whole (again). The same holds for one that
	// vanished after the check became Ready, or besides others that are allocated.
	{"claim-deleted", func(v View) (Plan, bool) {
		allocated := v.claimsIn(func(c Claim) bool { return c.State.Allocated() })
		gone := v.claimsIn(func(c Claim) bool {
			promised := v.Phase != Planned || v.Demand.Check == CheckReady || len(allocated) > 0
			return c.Deleting || (c.State == Missing && promised)
		})
		if len(gone) == 0 {
			return Plan{}, false
		}
		return giveUp(v, &reason.Refusal{Code: reason.SliceLost, Message: fmt.Sprintf(
			"ResourceClaim %s was deleted", strings.Join(gone, ", "))}), true
	}},
	// All claims exist before the first one is allocated: what the API server refuses (quota, terminating namespace,
	// another policy) it refuses while nothing is held.
	{"create", func(v View) (Plan, bool) {
		missing := v.claimsIn(func(c Claim) bool { return c.State == Missing })
		return act(CreateClaims, missing...), len(missing) > 0
	}},
	keep,
	{"allocate", func(v View) (Plan, bool) {
		free := v.claimsIn(func(c Claim) bool { return c.State == Free })
		return act(Allocate, free...), len(free) > 0
	}},
	hold,
	// From here on every claim is held, and its finalizer keeps it so.
	{"ready", func(v View) (Plan, bool) {
		return act(Ready), v.Demand.Check != CheckReady
	}},
	{"record", func(v View) (Plan, bool) {
		return act(Record), v.Phase == Planned || v.Phase == ""
	}},
	strangers,
}

// unasked is the table of a reservation whose gang goes on although the check was taken off its Workload: nothing is taken
// from it, and nothing can be asked of Kueue. A gang that is hurt meanwhile is moved when the check is back.
var unasked = []rule{
	keep,
	hold,
	{"record", func(v View) (Plan, bool) {
		// Ready was written, or neither pods nor the Job's template would name the reservation; so the claims were held, unless
		// others had their hands on them.
		whole := !slices.ContainsFunc(v.Claims, func(c Claim) bool { return c.State != Held || c.Deleting })
		return act(Record), whole && (v.Phase == Planned || v.Phase == "")
	}},
	strangers,
}

// unasked reports whether the gang goes on without being asked for. The Job's template carries the reservation's name from
// the Job's start to its suspension, so every pod that it creates comes here, the first of them too.
func (v View) unasked() bool {
	if v.Deleting || !v.Demand.Unasked() {
		return false
	}
	pods := v.podsIn(func(p Pod) bool { return !p.Terminal && (!p.Stranger || p.Seated) })
	return len(pods) > 0 || (v.Started || v.Phase == HandedOver) && !v.Demand.Orphaned
}

// keep puts our finalizer back.
var keep = rule{"keep", func(v View) (Plan, bool) {
	loose := v.claimsIn(func(c Claim) bool { return c.State != Missing && c.State != Foreign && !c.Deleting && !c.Finalizer })
	return act(KeepClaims, loose...), len(loose) > 0
}}

// hold puts the Workload's entry back.
var hold = rule{"hold", func(v View) (Plan, bool) {
	unheld := v.claimsIn(func(c Claim) bool { return c.State == Unheld })
	return act(Hold, unheld...), len(unheld) > 0
}}

// strangers: whoever stands in a claim was seated by Berth. It became a stranger when its Job was deleted without it, and
// it loses its entry when it has ended.
var strangers = rule{"strangers", func(v View) (Plan, bool) {
	strangers := v.podsIn(func(p Pod) bool { return p.Stranger && !p.Seated && !p.Terminal && !p.Deleting })
	return deletePods(strangers), len(strangers) > 0
}}

// giveUp ends a reservation that Kueue still wants. Before admission the gang keeps its quota and is placed again; after
// it, only an eviction ends the whole gang.
func giveUp(v View, because *reason.Refusal) Plan {
	if v.Demand.Admitted {
		return Plan{Steps: []Step{{Do: Retry, Because: because}}}
	}
	return release(because)
}

func release(because *reason.Refusal) Plan {
	return Plan{Steps: []Step{{Do: Release, Because: because}}}
}

func deletePods(pods []Pod) Plan {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return act(DeletePods, names...)
}

// why says what ended the demand.
func (d Demand) why(deleted bool) string {
	switch {
	case deleted:
		return "the reservation was deleted"
	case d.Gone || d.Deleting:
		return "the Workload is gone"
	case d.Finished:
		return "the Workload has finished"
	case d.Evicted:
		return "the Workload was evicted"
	case !d.Active:
		return "the Workload was deactivated"
	case !d.Quota:
		return "the Workload's quota reservation was taken back"
	case !d.Current:
		return "the Workload was admitted anew"
	case d.Check == "":
		return "the admission check no longer applies"
	case d.Check == CheckReady:
		return "the admission check sends the pods elsewhere"
	default:
		return "the admission check says " + string(d.Check)
	}
}
