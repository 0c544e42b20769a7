package v1alpha1

const (
	// ControllerName is the AdmissionCheck.spec.controllerName that Berth serves.
	ControllerName = "berth.dev/gang"

	// ContractVersion is the value of AnnotationContract that the pod policy of this release understands.
	ContractVersion = "v1"

	// LabelReservation on a pod, on its template and on a ResourceClaim names the GangReservation in the same
	// namespace. The pod policy acts on pods that carry it.
	LabelReservation = "berth.dev/reservation"

	// AnnotationContract on a pod template says which version of the hand-over contract the other keys follow.
	AnnotationContract = "berth.dev/contract"

	// AnnotationHosts on a pod template lists the values of the hosts' kubernetes.io/hostname label, comma separated,
	// in rank order. The pod policy picks the pod's own host from it and drops the annotation from the pod.
	AnnotationHosts = "berth.dev/hosts"

	// AnnotationPodsPerJob on the pod template of a JobSet says how many ranks one child Job holds:
	// rank = job index × pods per job + completion index. Absent on a plain Job.
	AnnotationPodsPerJob = "berth.dev/pods-per-job"

	// AnnotationClaimPrefix, followed by a pod claim's name, is the key of the annotation whose value
	// "<prefix>/<podsPerClaim>" sends rank r to the ResourceClaim "<prefix>-<r / podsPerClaim>".
	AnnotationClaimPrefix = "claim.berth.dev/"

	// ClaimNamePrefix begins the name of every ResourceClaim that Berth creates. The claims policy reserves it.
	ClaimNamePrefix = "berth."

	// AnnotationSlices on a pod template asks for that many equal slices for one pod set instead of one.
	AnnotationSlices = "berth.dev/slices"

	// AnnotationInterconnect on a pod template says whether the devices of one pod set must stand in one domain of their
	// AcceleratorPool's interconnect: InterconnectRequired, or InterconnectPreferred, which is the default.
	AnnotationInterconnect = "berth.dev/interconnect"
	// InterconnectRequired waits for a domain that has room for the whole pod set.
	InterconnectRequired = "required"
	// InterconnectPreferred takes one domain where that is possible now, else as few as possible.
	InterconnectPreferred = "preferred"

	// GateSeating is the scheduling gate of every pinned pod until Berth has seated it.
	GateSeating = "berth.dev/seating"

	// FinalizerHold keeps a pinned ResourceClaim, and so its allocation, until no pod of the gang may still run.
	FinalizerHold = "berth.dev/hold"

	// FinalizerReservation keeps a GangReservation until everything that it records is released.
	FinalizerReservation = "berth.dev/reservation"

	// FinalizerFold keeps a CapacityFold until Berth has said on its targets that their numbers stay.
	FinalizerFold = "berth.dev/fold"

	// AnnotationReservationUID, AnnotationWorkload, AnnotationWorkloadUID and AnnotationEpoch on a pinned claim say
	// whom it serves, so that a claim can be released when no other object is left.
	AnnotationReservationUID = "berth.dev/reservation-uid"
	AnnotationWorkload       = "berth.dev/workload"
	AnnotationWorkloadUID    = "berth.dev/workload-uid"
	AnnotationEpoch          = "berth.dev/epoch"

	// AnnotationDevices on a pinned claim is the JSON of the []ReservedDevice that it holds: hosts and counter charge
	// survive there even when the driver stops publishing the device.
	AnnotationDevices = "berth.dev/devices"

	// AnnotationLeader on a claim that is not yet allocated names the leadership term that last confirmed it. A new
	// leader rewrites it so that a late write of its predecessor meets a conflict.
	AnnotationLeader = "berth.dev/leader"

	// ConditionGangReserved on the Workload is True with the slice, or False with a reason of pkg/reason.
	ConditionGangReserved = "GangReserved"
)
