package snapshot

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// Snapshot holds API objects in no particular order. They are shared with a cache: whoever reads a Snapshot must not
// change them.
type Snapshot struct {
	AcceleratorPools []*berth.AcceleratorPool
	Configs          []*berth.GangReservationConfig
	Reservations     []*berth.GangReservation
	CapacityFolds    []*berth.CapacityFold

	ResourceSlices         []*resourcev1.ResourceSlice
	DeviceClasses          []*resourcev1.DeviceClass
	DeviceTaintRules       []*resourcev1.DeviceTaintRule
	ResourceClaims         []*resourcev1.ResourceClaim
	ResourceClaimTemplates []*resourcev1.ResourceClaimTemplate

	Nodes []*corev1.Node
	Pods  []*corev1.Pod
	Jobs  []*batchv1.Job

	ResourceFlavors []*kueue.ResourceFlavor
	ClusterQueues   []*kueue.ClusterQueue
	Cohorts         []*kueue.Cohort
	LocalQueues     []*kueue.LocalQueue
	AdmissionChecks []*kueue.AdmissionCheck
	Workloads       []*kueue.Workload
}
