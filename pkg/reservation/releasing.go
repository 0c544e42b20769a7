package reservation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/reason"
)

// releasing is the table of a reservation on its way out. Its order is the order in which a slice becomes free without a
// moment at which somebody could use it twice:
//
//	take Ready back → claims in deletion (nobody can join) → pods gone → doubts recorded → allocation cleared → object gone
var releasing = []rule{
	// Kueue can unset quota without resetting checks, and would admit again at once on a Ready that it still finds.
	{"take-back", func(v View) (Plan, bool) {
		stale := !v.Demand.Gone && !v.Demand.Deleting && !v.Demand.Finished && v.Demand.Check == CheckReady && v.Demand.Named
		if !stale {
			return Plan{}, false
		}
		// An admitted gang whose quota, epoch and check all still stand lost its reservation by other hands. One that was
		// deactivated is about to be evicted for that.
		if v.Demand.Admitted && v.Demand.Quota && v.Demand.Active && !v.Demand.Evicted {
			return Plan{Steps: []Step{{Do: Retry, Because: v.takenBack()}}}, true
		}
		return act(Pending), true
	}},
	// Without our finalizer the DELETE that comes next would free the devices under running pods.
	{"keep", func(v View) (Plan, bool) {
		loose := v.claimsIn(func(c Claim) bool { return c.State.Allocated() && !c.Finalizer && !c.Deleting })
		return act(KeepClaims, loose...), len(loose) > 0
	}},
	{"delete-claims", func(v View) (Plan, bool) {
		open := v.claimsIn(func(c Claim) bool { return c.ours() && !c.Deleting })
		return act(DeleteClaims, open...), len(open) > 0
	}},
	// Nobody else ends these, and an entry has to be waited for: a stranger's, and that of a pod behind its gate. A claim
	// in deletion takes no new ones, so there is an end to it.
	{"delete-pods", func(v View) (Plan, bool) {
		pods := v.podsIn(func(p Pod) bool { return p.Seated && (p.Stranger || p.Gated) && !p.Terminal && !p.Deleting })
		return deletePods(pods), len(pods) > 0
	}},
	{"await-pods", func(v View) (Plan, bool) {
		if !slices.ContainsFunc(v.Claims, func(c Claim) bool { return c.ours() && c.State.Allocated() }) {
			return Plan{}, false
		}
		running := v.podsIn(func(p Pod) bool { return p.MayRun() && (!p.Stranger || p.Seated) })
		if len(running) == 0 {
			return Plan{}, false
		}
		return Plan{Waits: fmt.Sprintf("%d of the gang's pods may still run: %s", len(running), list(running))}, true
	}},
	// Every pod that is there has ended or waits behind its gate. A host that does not answer may run one that is not there.
	{"quarantine", func(v View) (Plan, bool) {
		if !slices.ContainsFunc(v.Claims, func(c Claim) bool { return c.ours() && c.State.Allocated() }) {
			return Plan{}, false
		}
		recorded := map[string]bool{}
		for _, s := range v.Quarantine {
			recorded[s.Host] = true
		}
		var hosts []string
		for _, r := range v.Ranks {
			if r.Doubtful && !r.Ended && !recorded[r.Host] {
				recorded[r.Host] = true
				hosts = append(hosts, r.Host)
			}
		}
		if len(hosts) > 0 && !v.Recorded {
			// There is no object to write the doubt down on, so the claim itself has to keep it.
			return Plan{Waits: awaitHosts(hosts)}, true
		}
		return act(Quarantine, hosts...), len(hosts) > 0
	}},
	{"clear", func(v View) (Plan, bool) {
		ours := v.claimsIn(Claim.ours)
		return act(ClearClaims, ours...), len(ours) > 0
	}},
	// Each share is free as soon as its own host is out of doubt. The claims are gone, so it cannot come into doubt again.
	{"hosts-back", func(v View) (Plan, bool) {
		doubtful, back := v.quarantined()
		return act(EndQuarantine, back...), len(back) > 0 && len(doubtful) > 0
	}},
	{"await-hosts", func(v View) (Plan, bool) {
		doubtful, _ := v.quarantined()
		return Plan{Waits: awaitHosts(doubtful)}, len(doubtful) > 0
	}},
	// Once it is in deletion without our finalizer, others may keep it for as long as they like.
	{"drop", func(v View) (Plan, bool) { return act(Drop), v.Recorded && (v.Finalizer || !v.Deleting) }},
}

// quarantined are the recorded hosts that are still in doubt, and those that are not.
func (v View) quarantined() (doubtful, back []string) {
	for _, s := range v.Quarantine {
		if s.Doubtful {
			doubtful = append(doubtful, s.Host)
		} else {
			back = append(back, s.Host)
		}
	}
	return doubtful, back
}

func awaitHosts(hosts []string) string {
	slices.Sort(hosts)
	return "a pod may still run on a host that is not Ready: " + strings.Join(slices.Compact(hosts), ", ")
}

// takenBack says why an admitted gang has to go.
func (v View) takenBack() *reason.Refusal {
	switch {
	case v.Deleting:
		return &reason.Refusal{Code: reason.SliceLost, Message: "the reservation was deleted"}
	case v.Lost != nil:
		return v.Lost
	default:
		return &reason.Refusal{Code: reason.SliceLost, Message: "the slice was given back"}
	}
}

// ours reports whether the object exists, is this reservation's and needs something done still. Once it is in deletion
// without allocation and without our finalizer, others may keep it for as long as they like.
func (c Claim) ours() bool {
	return c.State != Missing && c.State != Foreign && (c.Finalizer || c.State.Allocated() || !c.Deleting)
}

// list names up to five pods.
func list(pods []Pod) string {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return some(names, ", ")
}

// some joins up to five of the things that a sentence lists.
func some(things []string, separator string) string {
	const most = 5
	if len(things) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(things[:most], separator), len(things)-most)
	}
	return strings.Join(things, separator)
}
