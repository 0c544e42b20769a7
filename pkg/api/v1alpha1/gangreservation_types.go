package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GangReservation is the durable record of one epoch: one admission of one Workload and the devices that serve it.
// Berth writes it before it touches any ResourceClaim; users read it and never write it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="!has(self.spec.target) || !self.spec.target || !has(self.status) || !has(self.status.phase) || self.status.phase == 'Planned'",message="a target stays in phase Planned"
// +kubebuilder:resource:shortName=gres,categories=berth
// +kubebuilder:printcolumn:name="Workload",type=string,JSONPath=`.spec.workloadRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="First Device",type=string,JSONPath=`.spec.podSets[*].claims[*].devices[*].device`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GangReservation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the decision. It never changes: another decision is another reservation.
	// +required
	Spec GangReservationSpec `json:"spec"`

	// status is how far the decision has been carried out.
	// +optional
	Status GangReservationStatus `json:"status,omitzero"`
}

// Holds reports whether the reservation takes, or is about to take, what it records. A target does not.
func (r *GangReservation) Holds() bool { return !r.Spec.Target }

// GangReservationSpec is who gets what.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.target) && self.target && has(self.lent) && self.lent)",message="a target holds nothing, so nothing can be lent to it"
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a GangReservation's spec is immutable: it records one decision for one admission"
type GangReservationSpec struct {
	// workloadRef is the Kueue Workload in the same namespace.
	// +required
	WorkloadRef WorkloadReference `json:"workloadRef"`

	// owner is the object that creates the gang's pods; a pod with our label that it does not control is a stranger.
	// +required
	Owner OwnerReference `json:"owner"`

	// check is the name of the AdmissionCheck that this reservation answers.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Check string `json:"check"`

	// flavor is the ResourceFlavor that Kueue assigned to the managed claims.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Flavor string `json:"flavor,omitempty"`

	// epoch identifies the admission: eight hexadecimal digits over Workload UID, time of the quota reservation, count of
	// evictions and the admission itself, and two that count how often the check began anew.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{10}$`
	Epoch string `json:"epoch"`

	// queuedAt is since when the gang stands in line. It survives evictions.
	// +required
	QueuedAt metav1.Time `json:"queuedAt"`

	// target is true when the devices are only kept for the gang until they are free. A target stays in phase Planned: it
	// has no claims and holds nothing. When the gang gets devices, these or others, that is another reservation, and the
	// target is deleted.
	// +optional
	Target bool `json:"target,omitempty"`

	// lent is true when the devices were kept for another gang of higher priority when this one got them. It is evicted as
	// a whole when they, and they alone, are missing to a gang of higher priority whose check allows that: see
	// GangReservationConfig, spec.backfill.evict.
	// +optional
	Lent bool `json:"lent,omitempty"`

	// podSets hold the devices of every pod set that asks for managed ones.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	PodSets []ReservedPodSet `json:"podSets"`
}

// WorkloadReference names a Workload in the reservation's namespace.
type WorkloadReference struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +required
	UID types.UID `json:"uid"`
}

// OwnerReference names the Job-like object, in the reservation's namespace, that creates the gang's pods.
type OwnerReference struct {
	// +required
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`
	// +required
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +required
	UID types.UID `json:"uid"`
}

// ReservedPodSet is what the pods of one pod set get.
type ReservedPodSet struct {
	// name of the pod set in the Workload.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// count is the number of pods that Kueue admitted. It is smaller than the number of hosts when some ranks had
	// already succeeded before.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`

	// hosts are the values of the hosts' kubernetes.io/hostname label in rank order, one per rank.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MaxLength=63
	Hosts []string `json:"hosts"`

	// domains are the domains of the pools' interconnects that the devices stand in, as people call them: "rack a". A target
	// has none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Domains []string `json:"domains,omitempty"`

	// across is true when devices that should stand in one domain stand in several, or outside any; false for a target.
	// +optional
	Across bool `json:"across,omitempty"`

	// claims are the managed claims of one pod.
	// +required
	// +listType=map
	// +listMapKey=podClaim
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Claims []ReservedClaim `json:"claims"`
}

// ReservedClaim is one entry of the pods' spec.resourceClaims and the ResourceClaims that serve it.
type ReservedClaim struct {
	// podClaim is the name in the pod's spec.resourceClaims.
	// +required
	// +kubebuilder:validation:MaxLength=63
	PodClaim string `json:"podClaim"`

	// template is the ResourceClaimTemplate that was decided on. The claims are made from it and from no other of its name: a
	// template's spec never changes, so another shape is another template.
	// +optional
	Template *TemplateReference `json:"template,omitempty"`

	// prefix names the ResourceClaims: instance i is <prefix>-<i>.
	// +required
	// +kubebuilder:validation:MaxLength=240
	Prefix string `json:"prefix"`

	// podsPerClaim is how many pods in rank order share one ResourceClaim: rank r uses instance r / podsPerClaim. At
	// most 255, because a ResourceClaim serves at most 256 consumers and the hold is one of them.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=255
	PodsPerClaim int32 `json:"podsPerClaim"`

	// devices of all instances.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10000
	Devices []ReservedDevice `json:"devices"`
}

// TemplateReference names a ResourceClaimTemplate in the reservation's namespace.
type TemplateReference struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +required
	UID types.UID `json:"uid"`
}

// ReservedDevice is one device and what it takes from its pool.
type ReservedDevice struct {
	// instance is the index of the ResourceClaim that holds the device.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Instance int32 `json:"instance"`
	// request is the name of the request in the claim.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Request string `json:"request"`
	// driver, pool and device identify the device.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Driver string `json:"driver"`
	// +required
	// +kubebuilder:validation:MaxLength=253
	Pool string `json:"pool"`
	// generation is the pool generation that the decision was made on.
	// +required
	Generation int64 `json:"generation"`
	// +required
	// +kubebuilder:validation:MaxLength=63
	Device string `json:"device"`
	// charge is what the device consumes of its pool's counters. It stays charged while the device is held, even when
	// the driver no longer publishes the device.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Charge []CounterCharge `json:"charge,omitempty"`
	// share is true when the device may be allocated several times at once, and this is one of them.
	// +optional
	Share bool `json:"share,omitempty"`
	// capacity is what the share takes of the device's capacities.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Capacity []CapacityShare `json:"capacity,omitempty"`
	// hosts are the names of the nodes that the device spans, in rank order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Hosts []string `json:"hosts,omitempty"`
}

// CapacityShare is what a share takes of one capacity of its device.
type CapacityShare struct {
	// name of the capacity as the driver publishes it.
	// +required
	// +kubebuilder:validation:MaxLength=317
	Name string `json:"name"`
	// milli is the amount in thousandths of the capacity's unit.
	// +required
	// +kubebuilder:validation:Minimum=0
	Milli int64 `json:"milli"`
}

// CounterCharge is the consumption of one counter.
type CounterCharge struct {
	// +required
	// +kubebuilder:validation:MaxLength=63
	CounterSet string `json:"counterSet"`
	// +required
	// +kubebuilder:validation:MaxLength=63
	Counter string `json:"counter"`
	// milli is the amount in thousandths of the counter's unit.
	// +required
	// +kubebuilder:validation:Minimum=0
	Milli int64 `json:"milli"`
}

// ReservationPhase is how far a reservation has come.
// +kubebuilder:validation:Enum=Planned;Reserved;HandedOver;Releasing
type ReservationPhase string

// Phases, in order.
const (
	// PhasePlanned: the decision is written down; no claim of it is allocated. A target stays in it, and holds nothing; every
	// other reservation passes through it, and its devices are given to nobody else.
	PhasePlanned ReservationPhase = "Planned"
	// PhaseReserved: every device is allocated and held.
	PhaseReserved ReservationPhase = "Reserved"
	// PhaseHandedOver: the whole gang appeared and seating began; from here on its pods may run.
	PhaseHandedOver ReservationPhase = "HandedOver"
	// PhaseReleasing: the claims are being given back.
	PhaseReleasing ReservationPhase = "Releasing"
)

// Condition types of a GangReservation.
const (
	// ReservationProgressing says in its message what the reservation waits for.
	ReservationProgressing = "Progressing"
	// ReservationSeated is True from the moment at which the gang's pods may run. It outlives the phase: a reservation
	// that is released without it had no pods.
	ReservationSeated = "Seated"
)

// GangReservationStatus is how far the decision has been carried out.
type GangReservationStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is Planned, Reserved, HandedOver or Releasing.
	// +optional
	Phase ReservationPhase `json:"phase,omitempty"`

	// quarantine lists shares whose host vanished with a pod that may still run.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Quarantine []QuarantinedShare `json:"quarantine,omitempty"`

	// conditions hold Progressing, what the reservation waits for, and Seated, that its pods may run.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// QuarantinedShare is one host of one device on which a pod may still run although its object is gone.
type QuarantinedShare struct {
	// node is the name of the Node.
	Node string `json:"node"`
	// driver and pool whose devices on that node are not given out.
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	// since is when the pod's object was found missing.
	Since metav1.Time `json:"since"`
}

// GangReservationList is a list of GangReservations.
//
// +kubebuilder:object:root=true
type GangReservationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GangReservation `json:"items"`
}
