package reservation

import (
	"strings"

	"github.com/berth-dev/berth/pkg/reason"
)

// Plan is the answer of Next.
type Plan struct {
	// Rule names the rule that decided, for logs and tests.
	Rule string
	// Steps in order; a failing step ends the plan.
	Steps []Step
	// Waits says in one stable sentence what the reservation waits for; empty when it waits for nothing.
	Waits string
}

// String is "rule: step; step; waits: sentence".
func (p Plan) String() string {
	parts := make([]string, 0, len(p.Steps)+1)
	for _, s := range p.Steps {
		parts = append(parts, s.String())
	}
	if p.Waits != "" {
		parts = append(parts, "waits: "+p.Waits)
	}
	if len(parts) == 0 {
		return p.Rule
	}
	return p.Rule + ": " + strings.Join(parts, "; ")
}

// Step is one act of the shell. Every act is conditioned on the version that the View was read from.
type Step struct {
	Do Act
	// Names of claims, pods or hosts that the act is about.
	Names []string
	// Because is set for Release and Retry.
	Because *reason.Refusal
}

// String is "Act name, name (Code: message)".
func (s Step) String() string {
	text := string(s.Do)
	if len(s.Names) > 0 {
		text += " " + strings.Join(s.Names, ", ")
	}
	if s.Because != nil {
		text += " (" + s.Because.Error() + ")"
	}
	return text
}

// Act is the kind of a step.
type Act string

// Acts.
const (
	// CreateClaims creates the named claims, with finalizer and story and without allocation.
	CreateClaims Act = "CreateClaims"
	// Allocate re-reads all intents and then allocates the named claims, each with the hold in the same write.
	Allocate Act = "Allocate"
	// KeepClaims puts our finalizer back on the named claims.
	KeepClaims Act = "KeepClaims"
	// Hold puts the Workload's entry back.
	Hold Act = "Hold"
	// Ready writes check Ready with podSetUpdates and GangReserved True.
	Ready Act = "Ready"
	// Record writes the phase Reserved.
	Record Act = "Record"
	// Retry writes check Retry: Kueue evicts the Workload as a whole.
	Retry Act = "Retry"
	// Release writes phase Releasing.
	Release Act = "Release"
	// Pending takes a Ready back: no admission on a released reservation.
	Pending Act = "Pending"
	// DeleteClaims asks for deletion; our finalizer keeps the object and its allocation.
	DeleteClaims Act = "DeleteClaims"
	// DeletePods removes strangers, and pods that were seated but never ungated.
	DeletePods Act = "DeletePods"
	// Quarantine records the named hosts.
	Quarantine Act = "Quarantine"
	// EndQuarantine takes the named hosts off the record.
	EndQuarantine Act = "EndQuarantine"
	// ClearClaims takes allocation and reservedFor off in one write, then the finalizer.
	ClearClaims Act = "ClearClaims"
	// Drop removes the reservation itself.
	Drop Act = "Drop"
)
