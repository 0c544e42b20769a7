package fold

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/fold"
	"github.com/berth-dev/berth/pkg/reason"
)

// Reasons of conditions that are none of package reason.
const (
	reasonFolded    = "Folded"
	reasonTiles     = "Tiles"
	reasonFollowing = "Following"
)

// conditions says Ready, Tiling and Following. No message has a number in it that changes by itself: it would be a write of
// its own.
func (d *decision) conditions(f *folded) {
	set := func(kind string, ok bool, why, message string) {
		c := metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: why, Message: message,
			ObservedGeneration: f.object.Generation, LastTransitionTime: metav1.NewTime(f.now),
		}
		if ok {
			c.Status = metav1.ConditionTrue
		}
		apimeta.SetStatusCondition(&d.status.Conditions, c)
	}
	if p := f.compiled.Problem; p != nil {
		set(berth.FoldReady, false, string(p.Code), p.Message)
		apimeta.RemoveStatusCondition(&d.status.Conditions, berth.FoldTiling)
		set(berth.FoldFollowing, false, string(berth.TargetNotReady), "the quota stays as it is: "+p.Message)
		return
	}
	set(berth.FoldReady, true, reasonFolded, "a share is the same amount of hardware in every class, and no other CapacityFold counts it")
	if p := f.compiled.NotTiling; p != nil {
		set(berth.FoldTiling, false, string(reason.NotTiling), p.Message)
	} else {
		set(berth.FoldTiling, true, reasonTiles, "each class alone can fill what all of them fill together")
	}
	var first berth.FoldTargetState
	var troubles []string
	for _, t := range d.status.Targets {
		if t.State == berth.TargetFollowing {
			continue
		}
		if first == "" {
			first = t.State
		}
		troubles = append(troubles, fmt.Sprintf("%s %s: %s", t.Kind, t.Name, t.Message))
	}
	if first != "" {
		set(berth.FoldFollowing, false, string(first), some(troubles, listed, "; "))
		return
	}
	set(berth.FoldFollowing, true, reasonFollowing, "every target holds its number")
}

// stateOf says how a target stands, and why when it does not follow.
func stateOf(f *folded, t target, verdict fold.Verdict, seen fold.Seen, want int) (berth.FoldTargetState, string) {
	switch verdict {
	case fold.Missing:
		return berth.TargetMissing, fmt.Sprintf("there is no %s %s", t.Kind, t.Name)
	case fold.NoEntry:
		return berth.TargetNoEntry, fmt.Sprintf("it has no quota for %s of flavor %s, and Berth adds none to what it did not create: add the flavor with this resource to spec.resourceGroups, with any nominalQuota",
			f.compiled.Resource, f.compiled.Flavor)
	case fold.Paused:
		on := "the CapacityFold"
		if !pauses(f.object.Annotations[berth.AnnotationFoldPaused]) {
			on = "it"
		}
		return berth.TargetPaused, fmt.Sprintf("annotation %s on %s says so", berth.AnnotationFoldPaused, on)
	case fold.Contested:
		return berth.TargetContested, fmt.Sprintf("somebody set the nominalQuota again after it was taken back once: it is left alone until the CapacityFold or an annotation %s changes",
			berth.AnnotationFoldPaused)
	case fold.AboveLendingLimit:
		return berth.TargetLendingLimit, fmt.Sprintf("Kueue refuses a nominalQuota of %d because the lendingLimit is %s: lower that, and the quota follows", want, milli(seen.LendingLimit))
	default:
		return berth.TargetFollowing, ""
	}
}

// milli writes thousandths as people write them.
func milli(n int64) string {
	if n%1000 == 0 {
		return fmt.Sprint(n / 1000)
	}
	return fmt.Sprintf("%dm", n)
}

// some joins up to most texts and counts the rest.
func some(texts []string, most int, by string) string {
	if more := len(texts) - most; more > 0 {
		return fmt.Sprintf("%s%sand %d more", strings.Join(texts[:most], by), by, more)
	}
	return strings.Join(texts, by)
}
