package kueue

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/util/admissioncheck"
	"sigs.k8s.io/kueue/pkg/workload"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
	"github.com/berth-dev/berth/pkg/reason"
)

// fieldManager owns our check state and our condition on a Workload, and nothing else.
const fieldManager = "berth-gang"

// maxMessage bounds a message, in bytes. A condition holds 32 KiB; people read one line.
const maxMessage = 1024

// ReasonReserved is the reason of GangReserved True, ReasonReleased that of a gang that had its slice and gave it back.
const (
	ReasonReserved = "Reserved"
	ReasonReleased = "Released"
	ReasonIgnored  = "NothingManaged"
)

// Answer is all that Berth says on a Workload. The two parts are one write: a Workload never shows a check that its
// condition contradicts.
type Answer struct {
	// Check names the AdmissionCheck.
	Check kueue.AdmissionCheckReference
	// State of the check. Empty leaves the check as it stands and writes the condition only.
	State         kueue.CheckState
	PodSetUpdates []kueue.PodSetUpdate
	// Message of the check and of the condition.
	Message string
	// Beside are Berth's other checks on the Workload. They stay as they are, or say the same where ForAll is set. They
	// belong to the answer because a server-side apply without them would take away what a former one said on them.
	Beside []kueue.AdmissionCheckReference
	ForAll bool
	// Reserved is the status of GangReserved, Reason its reason. An empty Reason leaves the condition out.
	Reserved bool
	Reason   string
}

// Refused is the answer to a gang that waits.
func Refused(check kueue.AdmissionCheckReference, state kueue.CheckState, why *reason.Refusal) Answer {
	return Answer{Check: check, State: state, Message: why.Message, Reason: string(why.Code)}
}

// Given reports whether the Workload says so already.
func (a Answer) Given(wl *kueue.Workload) bool {
	for _, check := range a.changes() {
		have := admissioncheck.FindAdmissionCheck(wl.Status.AdmissionChecks, check)
		if have == nil || have.State != a.State || have.Message != a.message() ||
			!equality.Semantic.DeepEqual(have.PodSetUpdates, a.updates(have)) {
			return false
		}
	}
	if a.Reason == "" {
		return true
	}
	c := apimeta.FindStatusCondition(wl.Status.Conditions, berth.ConditionGangReserved)
	return c != nil && c.Status == a.status() && c.Reason == a.Reason && c.Message == a.message()
}

// Write puts the answer on the Workload, conditioned on the version that wl was read at. On success wl is the new version.
// The error is a Conflict when somebody wrote in between.
func Write(ctx context.Context, c client.Client, wl *kueue.Workload, a Answer, now time.Time) error {
	before := wl.DeepCopy()
	return workload.PatchStatus(ctx, c, wl, fieldManager, func(patch *kueue.Workload) (bool, error) {
		// Server-side apply drops what a manager no longer sends, so both parts are always sent.
		patch.Status.AdmissionChecks = a.checkStates(before, now)
		if a.Reason != "" {
			patch.Status.Conditions = []metav1.Condition{a.condition(before, now)}
		} else if kept := apimeta.FindStatusCondition(before.Status.Conditions, berth.ConditionGangReserved); kept != nil {
			patch.Status.Conditions = []metav1.Condition{*kept}
		}
		return true, nil
	})
}

// changes are the checks that the answer says something new on.
func (a Answer) changes() []kueue.AdmissionCheckReference {
	switch {
	case a.State == "":
		return nil
	case a.ForAll:
		return append([]kueue.AdmissionCheckReference{a.Check}, a.Beside...)
	default:
		return []kueue.AdmissionCheckReference{a.Check}
	}
}

// checkStates are all checks of Berth on the Workload.
func (a Answer) checkStates(wl *kueue.Workload, now time.Time) []kueue.AdmissionCheckState {
	var states []kueue.AdmissionCheckState
	changes := a.changes()
	for _, check := range append([]kueue.AdmissionCheckReference{a.Check}, a.Beside...) {
		if slices.Contains(changes, check) {
			states = append(states, a.checkState(wl, check, now))
		} else if have := admissioncheck.FindAdmissionCheck(wl.Status.AdmissionChecks, check); have != nil {
			states = append(states, *have)
		}
	}
	return states
}

func (a Answer) checkState(wl *kueue.Workload, check kueue.AdmissionCheckReference, now time.Time) kueue.AdmissionCheckState {
	have := admissioncheck.FindAdmissionCheck(wl.Status.AdmissionChecks, check)
	state := kueue.AdmissionCheckState{
		Name: check, State: a.State, Message: a.message(), PodSetUpdates: a.updates(have),
		LastTransitionTime: metav1.NewTime(now),
	}
	if have != nil {
		state.RetryCount = have.RetryCount
		// A Ready that is taken back ends an epoch. Kueue counts those that it ends itself, by an eviction.
		if have.State == kueue.CheckStateReady && a.State == kueue.CheckStatePending {
			state.RetryCount = ptr.To(ptr.Deref(have.RetryCount, 0) + 1)
		}
		if have.State == a.State {
			state.LastTransitionTime = have.LastTransitionTime
		}
	}
	return state
}

// updates are the podSetUpdates that have gets. An answer without a slice must not send pods to a former one, and leaving its
// updates out does not take them away: Kueue may have applied the check as it found it, and owns them too. An answer that
// changed nothing would be given again in every pass.
func (a Answer) updates(have *kueue.AdmissionCheckState) []kueue.PodSetUpdate {
	if len(a.PodSetUpdates) > 0 || have == nil {
		return a.PodSetUpdates
	}
	var none []kueue.PodSetUpdate
	for _, u := range have.PodSetUpdates {
		none = append(none, kueue.PodSetUpdate{Name: u.Name})
	}
	return none
}

func (a Answer) condition(wl *kueue.Workload, now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: berth.ConditionGangReserved, Status: a.status(), Reason: a.Reason, Message: a.message(),
		ObservedGeneration: wl.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	if have := apimeta.FindStatusCondition(wl.Status.Conditions, c.Type); have != nil && have.Status == c.Status {
		c.LastTransitionTime = have.LastTransitionTime
	}
	return c
}

func (a Answer) status() metav1.ConditionStatus {
	if a.Reserved {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func (a Answer) message() string {
	if len(a.Message) <= maxMessage {
		return a.Message
	}
	// Half a character would come back from the API server as another one, and the answer would never count as given.
	return strings.ToValidUTF8(a.Message[:maxMessage-3], "") + "..."
}
