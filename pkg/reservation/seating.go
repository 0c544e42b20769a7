package reservation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/reason"
)

// MaxEntries is how many entries a ResourceClaim's status.reservedFor holds.
const MaxEntries = 256

// SeatingView is everything that Seat decides on. It is read only while the reservation serves and every claim is held.
type SeatingView struct {
	// Begun: the whole gang was there once; from then on ranks are seated one by one.
	Begun bool
	// Expected is the number of pods that Kueue admitted.
	Expected int
	// Late: the deadline for the first seating has passed.
	Late bool
	// Blocker says why pods are missing, for example "FailedCreate: exceeded quota"; may be empty.
	Blocker string
	Claims  []SeatingClaim
	Pods    []SeatingPod
	// Former are pods of the gang that were sent to another reservation and may still run: what is left of a former
	// admission. It is looked at only before the first seating.
	Former []string
}

// SeatingClaim is one ResourceClaim that pods of the gang share.
type SeatingClaim struct {
	Name string
	// Entries are the UIDs of the pods in status.reservedFor.
	Entries []string
	// Others counts the entries that are not pods.
	Others int
}

// SeatingPod is one pod with a seat in the gang.
type SeatingPod struct {
	Name, UID, PodSet string
	Rank              int
	Claims            []string
	Gated             bool
	Terminal          bool
	Deleting          bool
}

// SeatingPlan is the answer of Seat; the parts are done in this order.
type SeatingPlan struct {
	// Begin: write down that the gang's pods may run from now on.
	Begin bool
	// Enter are the pods to add to each claim, in one write per claim.
	Enter map[string][]SeatingPod
	// Ungate are the pods that stand in all of their claims.
	Ungate []SeatingPod
	// GiveUp: the gang cannot become complete.
	GiveUp *reason.Refusal
	// Waits says in one sentence what seating waits for.
	Waits string
}

// String is "begin; claim + pod, pod; ungate pod, pod; give up (Code: message); waits: sentence".
func (p SeatingPlan) String() string {
	names := func(pods []SeatingPod) string {
		var all []string
		for _, pod := range pods {
			all = append(all, pod.Name)
		}
		return strings.Join(all, ", ")
	}
	var parts []string
	if p.Begin {
		parts = append(parts, "begin")
	}
	for _, claim := range slices.Sorted(maps.Keys(p.Enter)) {
		parts = append(parts, claim+" + "+names(p.Enter[claim]))
	}
	if len(p.Ungate) > 0 {
		parts = append(parts, "ungate "+names(p.Ungate))
	}
	if p.GiveUp != nil {
		parts = append(parts, "give up ("+p.GiveUp.Error()+")")
	}
	if p.Waits != "" {
		parts = append(parts, "waits: "+p.Waits)
	}
	if len(parts) == 0 {
		return "idle"
	}
	return strings.Join(parts, "; ")
}

// Seat says which pods may take their place now.
//
// A pod may enter a claim when no other pod of its rank may still run and none has an entry left: the Job controller
// creates the successor of a rank while its predecessor still terminates.
//
// A pod that was let go enters again when it has lost its entry. Where binding a pod fails, kube-scheduler takes it out of
// its claims (Unreserve of its plugin dynamicresources), and nobody else may put it back. Without its entries it is never
// bound; and where it was bound, and only the answer to that was lost, its kubelet never starts it.
func Seat(v SeatingView) SeatingPlan {
	present := map[string]bool{}
	for _, p := range v.Pods {
		if !p.Terminal && !p.Deleting {
			present[p.seat()] = true
		}
	}
	if !v.Begun && len(present) < v.Expected {
		missing := fmt.Sprintf("%d of %d pods exist", len(present), v.Expected)
		if v.Blocker != "" {
			missing += ", " + v.Blocker
		}
		if v.Late {
			return SeatingPlan{GiveUp: &reason.Refusal{Code: reason.NotSeated, Message: missing}}
		}
		return SeatingPlan{Waits: missing}
	}
	// The line looked for them when it gave the slice, perhaps in a cache that was behind. Who sees the pods of this
	// admission has seen all that became of those before: they come out of one watch, in order.
	if !v.Begun && len(v.Former) > 0 {
		return SeatingPlan{Waits: fmt.Sprintf("pods %s of the gang's former slice may still run", some(v.Former, ", "))}
	}
	plan := SeatingPlan{Begin: !v.Begun, Enter: map[string][]SeatingPod{}}
	at := v.index()
	var waiting []string
	for _, p := range v.Pods {
		if p.Terminal || p.Deleting {
			continue
		}
		var missing []string
		for _, c := range p.Claims {
			if !at.entered[c][p.UID] {
				missing = append(missing, c)
			}
		}
		switch {
		case len(missing) == 0 && !p.Gated: // It has its place.
		case len(missing) == 0:
			plan.Ungate = append(plan.Ungate, p)
		case at.contested(p):
			waiting = append(waiting, fmt.Sprintf("rank %d waits for its predecessor to end", p.Rank))
		case slices.ContainsFunc(missing, func(c string) bool { return at.free[c] <= 0 }):
			waiting = append(waiting, fmt.Sprintf("rank %d waits for a place in its claim", p.Rank))
		default:
			for _, c := range missing {
				plan.Enter[c] = append(plan.Enter[c], p)
				at.free[c]--
			}
			if p.Gated {
				plan.Ungate = append(plan.Ungate, p)
			}
		}
	}
	slices.Sort(waiting)
	plan.Waits = some(slices.Compact(waiting), "; ")
	return plan
}

func (p SeatingPod) seat() string { return fmt.Sprintf("%s/%d", p.PodSet, p.Rank) }

// seats is a SeatingView by seat and by claim.
type seats struct {
	// taken holds the pods of each seat that have not ended.
	taken map[string][]SeatingPod
	// seatOf is the seat of each pod, by UID.
	seatOf map[string]string
	// entered says which pods stand in a claim, standing which pods stand in some claim.
	entered  map[string]map[string]bool
	standing map[string]bool
	// held counts by claim and seat the entries of that seat; unknown those of pods that are not known.
	held    map[string]map[string]int
	unknown map[string]bool
	// free counts the places left in each claim.
	free map[string]int
}

func (v SeatingView) index() seats {
	at := seats{
		taken: map[string][]SeatingPod{}, seatOf: map[string]string{},
		entered: map[string]map[string]bool{}, standing: map[string]bool{},
		held: map[string]map[string]int{}, unknown: map[string]bool{}, free: map[string]int{},
	}
	for _, p := range v.Pods {
		at.seatOf[p.UID] = p.seat()
		if !p.Terminal {
			at.taken[p.seat()] = append(at.taken[p.seat()], p)
		}
	}
	for _, c := range v.Claims {
		at.free[c.Name] = MaxEntries - len(c.Entries) - c.Others
		at.entered[c.Name], at.held[c.Name] = map[string]bool{}, map[string]int{}
		for _, uid := range c.Entries {
			at.entered[c.Name][uid], at.standing[uid] = true, true
			if seat, known := at.seatOf[uid]; known {
				at.held[c.Name][seat]++
			} else {
				at.unknown[c.Name] = true
			}
		}
	}
	return at
}

// contested reports whether somebody of the same rank may still run or has not left one of the pod's claims. An entry of a
// pod that is not known any more may be of any rank, so it keeps all newcomers of that claim waiting until it is removed.
func (at seats) contested(p SeatingPod) bool {
	seat := p.seat()
	for _, o := range at.taken[seat] {
		if o.UID != p.UID && !(o.Gated && (!p.Gated || at.before(p, o))) {
			return true
		}
	}
	for _, c := range p.Claims {
		others := at.held[c][seat]
		if at.entered[c][p.UID] {
			others--
		}
		if others > 0 || at.unknown[c] {
			return true
		}
	}
	return false
}

// before decides between two gated pods of one rank: exactly one of them may go first. It is the one that stands in a
// claim already, because nothing takes it out again while it lives.
func (at seats) before(p, o SeatingPod) bool {
	if at.standing[p.UID] != at.standing[o.UID] {
		return at.standing[p.UID]
	}
	return p.UID < o.UID
}
