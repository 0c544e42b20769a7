package v1alpha1

import (
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
	// whole.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// GangReservationConfigList is a list of GangReservationConfigs.
//
// +kubebuilder:object:root=true
type GangReservationConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GangReservationConfig `json:"items"`
}
