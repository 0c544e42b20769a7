// Package v1alpha1 holds Berth's API: the hardware it owns (AcceleratorPool), the quota that follows it (CapacityFold), how
// an AdmissionCheck behaves (GangReservationConfig) and the durable record of one admission of one Workload
// (GangReservation).
//
// contract.go holds the keys that cross the API server on other people's objects: labels, annotations, finalizers and the
// scheduling gate. They are versioned by ContractVersion and enforced by the admission policies of pkg/policy.
//
// +kubebuilder:object:generate=true
// +groupName=berth.dev
package v1alpha1
