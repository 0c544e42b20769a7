package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GangReservationConfig is what an AdmissionCheck with controllerName berth.dev/gang may name in its parameters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=grconfig,categories=berth
// +kubebuilder:printcolumn:name="NoFitTimeout",type=integer,JSONPath=`.spec.noFit.timeoutSeconds`
// +kubebuilder:printcolumn:name="SeatingTimeout",type=integer,JSONPath=`.spec.seating.timeoutSeconds`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GangReservationConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the settings; every field has a default.
	// +optional
	Spec GangReservationConfigSpec `json:"spec,omitzero"`
}

// GangReservationConfigSpec holds the settings of one admission check.
type GangReservationConfigSpec struct {
	// noFit is what happens to a gang that fits nowhere now.
	// +optional
	NoFit NoFitPolicy `json:"noFit,omitzero"`

	// seating is what happens to a gang whose pods do not all appear.
	// +optional
	Seating SeatingPolicy `json:"seating,omitzero"`

	// backfill is what is kept for a gang that waits, and who may use it meanwhile.
	// +optional
	Backfill BackfillPolicy `json:"backfill,omitzero"`
}

// TargetPolicy says whether hardware is kept for gangs that wait.
// +kubebuilder:validation:Enum=FirstOfQueue;None
type TargetPolicy string

// Target policies.
const (
	// TargetFirstOfQueue keeps the devices that drain soonest for the first gang of each ClusterQueue that fits nowhere.
	TargetFirstOfQueue TargetPolicy = "FirstOfQueue"
	// TargetNone keeps nothing: whoever fits goes first, and a large gang may wait for ever behind small ones.
	TargetNone TargetPolicy = "None"
)

// BackfillEviction says which gangs may be evicted from what is kept for another.
// +kubebuilder:validation:Enum=Never;LowerPriority
type BackfillEviction string

// Backfill evictions.
const (
	// EvictNever lets only those in who end in time.
	EvictNever BackfillEviction = "Never"
	// EvictLowerPriority also lets gangs of lower priority in, and evicts them when the rest is free.
	EvictLowerPriority BackfillEviction = "LowerPriority"
)

// BackfillPolicy says what is kept for the gangs of the check, and who may use it until it is free as a whole. Gangs that
// end before it can be free, by their spec.maximumExecutionTimeSeconds, always may.
type BackfillPolicy struct {
	// targets: FirstOfQueue keeps the devices that drain soonest for the first gang of each ClusterQueue that fits nowhere;
	// None keeps nothing.
	// +optional
	// +kubebuilder:default=FirstOfQueue
	Targets TargetPolicy `json:"targets,omitempty"`

	// evict: LowerPriority lets gangs of lower priority, with whatever end, use what is kept for a gang of this check, and
	// evicts them as a whole when nothing else is in its way. Never does not let them in. Gangs that got their devices
	// otherwise are not evicted.
	// +optional
	// +kubebuilder:default=Never
	Evict BackfillEviction `json:"evict,omitempty"`

	// assumedSeconds is for how long gangs of this check are assumed to run where their Workload has no
	// maximumExecutionTimeSeconds. It decides which devices drain soonest and when; it ends no gang and lets none in.
	// Absent: nobody knows, and devices that somebody with a known end holds are waited for instead where there are any.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	AssumedSeconds *int32 `json:"assumedSeconds,omitempty"`
}

// NoFitPolicy says how long a gang waits with its quota.
type NoFitPolicy struct {
	// timeoutSeconds is how long a gang that fits nowhere keeps its quota before it is sent back to its queue. Absent:
	// for ever, because being sent back costs a gang its place in Kueue's order.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// SeatingPolicy says how long a slice is kept for pods that do not come.
type SeatingPolicy struct {
	// timeoutSeconds is how long after hand-over every pod of the gang must exist before the gang is sent back as a
	// whole, and for how long the scheduler may find no place for one of them. Absent: seating.timeout of the controller's
	// BerthConfiguration, 5 minutes by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// Timeout is timeoutSeconds, or fallback where that is absent.
func (s SeatingPolicy) Timeout(fallback time.Duration) time.Duration {
	if s.TimeoutSeconds == nil {
		return fallback
	}
	return time.Duration(*s.TimeoutSeconds) * time.Second
}

// GangReservationConfigList is a list of GangReservationConfigs.
//
// +kubebuilder:object:root=true
type GangReservationConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GangReservationConfig `json:"items"`
}
