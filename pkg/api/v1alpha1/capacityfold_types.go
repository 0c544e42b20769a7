package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationFoldPaused on a CapacityFold keeps Berth from writing any of its targets, on a Cohort or ClusterQueue from
// writing that one. Every value but "" and "false" pauses. A changed value also ends a contest: the number is asserted anew.
const AnnotationFoldPaused = "berth.dev/fold-paused"

// LabelFold on a ResourceFlavor or Cohort names the CapacityFold that created it. Only such objects are kept by Berth
// beyond the one quota.
const LabelFold = "berth.dev/fold"

// CapacityFold makes quota out of hardware: the nominalQuota of one resource of one flavor follows how many hosts the
// devices of some classes can serve.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cfold,categories=berth
// +kubebuilder:printcolumn:name="Flavor",type=string,JSONPath=`.spec.flavor`
// +kubebuilder:printcolumn:name="Resource",type=string,JSONPath=`.spec.resource`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Shares",type=integer,JSONPath=`.status.shares`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Following",type=string,JSONPath=`.status.conditions[?(@.type=="Following")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CapacityFold struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which hardware becomes which quota.
	// +required
	Spec CapacityFoldSpec `json:"spec"`

	// status is what the hardware amounts to, and what was written.
	// +optional
	Status CapacityFoldStatus `json:"status,omitzero"`
}

// FoldMode is what a fold promises.
// +kubebuilder:validation:Enum=Physical;Live
type FoldMode string

// Fold modes.
const (
	// FoldPhysical promises what is usable, whoever holds it.
	FoldPhysical FoldMode = "Physical"
	// FoldLive promises what Kueue charges to gangs that hold devices, and what is free together.
	FoldLive FoldMode = "Live"
)

// CapacityFoldSpec says which hardware becomes which quota. The unit is the share: one host of one device, which is what
// one pod of a gang uses and Kueue charges for.
type CapacityFoldSpec struct {
	// poolSelector picks DRA pools of AcceleratorPools by their names. Absent: all that have devices of the classes.
	// +optional
	PoolSelector *PoolSelector `json:"poolSelector,omitempty"`

	// deviceClasses are the DeviceClasses whose devices count, each as often as hosts of them can be held at the same time.
	// A share of each must be the same amount of hardware.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	DeviceClasses []string `json:"deviceClasses"`

	// flavor is the ResourceFlavor that stands for this hardware. Gangs that Kueue assigns another flavor for the resource
	// do not get it. Created if there is none; one that exists is used as it is.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="flavor must be the name of a ResourceFlavor, a DNS subdomain in lower case"
	Flavor string `json:"flavor"`

	// resource is what Kueue charges one of for each pod: the name that its deviceClassMappings give the classes, or pods
	// where Kueue does not charge for claims. What pods ask for by amount, such as cpu, is none.
	// +optional
	// +kubebuilder:default="berth.dev/shares"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="resource must be the name of a resource, as deviceClassMappings give it, such as berth.dev/shares, or pods"
	// +kubebuilder:validation:XValidation:rule="!(self in ['cpu', 'memory', 'ephemeral-storage'])",message="resource must be one that each pod is charged one of: the name that deviceClassMappings give the classes, or pods"
	Resource string `json:"resource,omitempty"`

	// mode: Physical promises all usable hardware. Live promises what is charged to gangs that hold devices and what is
	// free together, so that a gang of the smallest class with quota also finds a slice.
	// +optional
	// +kubebuilder:default=Physical
	Mode FoldMode `json:"mode,omitempty"`

	// hysteresisSeconds is how long a lower number must stand before it is written; a higher one is written at once.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	HysteresisSeconds *int32 `json:"hysteresisSeconds,omitempty"`

	// targets divide the number among them by their weights.
	// +required
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Targets []FoldTarget `json:"targets"`
}

// FoldTargetKind is what holds the quota.
// +kubebuilder:validation:Enum=Cohort;ClusterQueue
type FoldTargetKind string

// Kinds of targets.
const (
	FoldCohort       FoldTargetKind = "Cohort"
	FoldClusterQueue FoldTargetKind = "ClusterQueue"
)

// FoldTarget is one object whose quota follows.
//
// +kubebuilder:validation:XValidation:rule="!has(self.max) || !has(self.min) || self.min <= self.max",message="min must not be above max"
type FoldTarget struct {
	// kind is Cohort or ClusterQueue. A Cohort that does not exist is created.
	// +required
	Kind FoldTargetKind `json:"kind"`

	// name of the Cohort or ClusterQueue.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be that of a Cohort or ClusterQueue, a DNS subdomain in lower case"
	Name string `json:"name"`

	// weight is this target's part in proportion to the others. With 0 it gets its min only.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`

	// min is promised in any case, even when there is less hardware.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	Min int32 `json:"min,omitempty"`

	// max is never exceeded. Absent: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Max *int32 `json:"max,omitempty"`
}

// Condition types of a CapacityFold.
const (
	// FoldReady is True when the fold makes sense: its classes exist, their shares are equal and no other fold has the hosts.
	FoldReady = "Ready"
	// FoldTiling is False when a class alone cannot fill what the classes can fill together.
	FoldTiling = "Tiling"
	// FoldFollowing is True when every target holds its number.
	FoldFollowing = "Following"
)

// CapacityFoldStatus is what the hardware amounts to, and what was written.
type CapacityFoldStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// shares is the number that the targets divide among them. It falls only after the hysteresis.
	// +optional
	Shares int32 `json:"shares"`

	// observed is what was seen last.
	// +optional
	Observed FoldObservation `json:"observed,omitzero"`

	// losses are up to 16 reasons why it is less than all that is published.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Losses []string `json:"losses,omitempty"`

	// targets tell what each of them should hold and holds.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Targets []FoldTargetStatus `json:"targets,omitempty"`

	// conditions are Ready, Tiling and Following.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FoldObservation is the hardware of a fold at one moment, in shares.
type FoldObservation struct {
	// published is what there would be if everything were sound.
	Published int32 `json:"published"`
	// usable is a largest set of sound devices, held or not, that can be held at the same time.
	Usable int32 `json:"usable"`
	// held is what gangs of the targets hold.
	Held int32 `json:"held"`
	// free is a largest set of free devices that can be held at the same time.
	Free int32 `json:"free"`
	// charged is what Kueue charges to the gangs of the targets that hold devices.
	Charged int32 `json:"charged"`
	// proved is false when the search for a largest set ended early. A number then rises only to what was found, and falls
	// only to what cannot be exceeded.
	Proved bool `json:"proved"`
}

// FoldTargetState is how a target stands.
// +kubebuilder:validation:Enum=Following;Missing;NoEntry;Paused;FoldContested;LendingLimit;Refused;NotReady
type FoldTargetState string

// States of a target.
const (
	// TargetFollowing: it holds its number.
	TargetFollowing FoldTargetState = "Following"
	// TargetMissing: there is no such ClusterQueue.
	TargetMissing FoldTargetState = "Missing"
	// TargetNoEntry: it has no quota for the flavor and resource, and Berth may not add one.
	TargetNoEntry FoldTargetState = "NoEntry"
	// TargetPaused: the annotation says so.
	TargetPaused FoldTargetState = "Paused"
	// TargetContested: somebody changed the number again after it was asserted.
	TargetContested FoldTargetState = "FoldContested"
	// TargetLendingLimit: Kueue refuses a nominalQuota below the lendingLimit.
	TargetLendingLimit FoldTargetState = "LendingLimit"
	// TargetRefused: the API server refused the write.
	TargetRefused FoldTargetState = "Refused"
	// TargetNotReady: the fold itself is not Ready, so nothing is written.
	TargetNotReady FoldTargetState = "NotReady"
)

// FoldTargetStatus is what one target should hold and holds.
type FoldTargetStatus struct {
	Kind FoldTargetKind `json:"kind"`
	Name string         `json:"name"`
	// quota is what it should hold.
	Quota int32 `json:"quota"`
	// charged is what Kueue charges to it now: of a Cohort, what those below it use beyond quotas of their own. The quota does
	// not fall below that.
	Charged int32 `json:"charged"`
	// previous is what it held when that was decided, until quota was seen there.
	// +optional
	Previous *int32 `json:"previous,omitempty"`
	// asserted is true when a change by somebody else was taken back. The next one is left.
	// +optional
	Asserted bool `json:"asserted,omitempty"`
	// paused is the value of the annotations berth.dev/fold-paused when that was decided.
	// +optional
	Paused string `json:"paused,omitempty"`
	// state says how it stands.
	State FoldTargetState `json:"state"`
	// message says why, when it does not follow.
	// +optional
	Message string `json:"message,omitempty"`
}

// CapacityFoldList is a list of CapacityFolds.
//
// +kubebuilder:object:root=true
type CapacityFoldList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityFold `json:"items"`
}
