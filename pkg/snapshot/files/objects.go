package files

import (
	batchv1 "k8s.io/api/batch/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/berth-dev/berth/pkg/snapshot"
)

// Objects are everything that was read.
type Objects struct {
	snapshot.Snapshot

	JobSets                 []*JobSet
	PriorityClasses         []*schedulingv1.PriorityClass
	WorkloadPriorityClasses []*kueue.WorkloadPriorityClass

	// Submitted are the Jobs, JobSets and Workloads in the order of the files.
	Submitted []metav1.Object
	// Warnings are about input that is not wrong but may surprise.
	Warnings []string
}

// JobSet is as much of a jobset.x-k8s.io JobSet as says how many pods it has and what they ask for. The other fields of
// its spec are known by name, so that a misspelling is found, and not looked into.
type JobSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              JobSetSpec `json:"spec,omitempty"`
	Status            any        `json:"status,omitempty"`
}

// JobSetSpec is the spec of a JobSet.
type JobSetSpec struct {
	ReplicatedJobs []ReplicatedJob `json:"replicatedJobs,omitempty"`
	Suspend        *bool           `json:"suspend,omitempty"`

	Network                 any `json:"network,omitempty"`
	SuccessPolicy           any `json:"successPolicy,omitempty"`
	FailurePolicy           any `json:"failurePolicy,omitempty"`
	StartupPolicy           any `json:"startupPolicy,omitempty"`
	Coordinator             any `json:"coordinator,omitempty"`
	ManagedBy               any `json:"managedBy,omitempty"`
	TTLSecondsAfterFinished any `json:"ttlSecondsAfterFinished,omitempty"`
	VolumeClaimPolicies     any `json:"volumeClaimPolicies,omitempty"`
}

// ReplicatedJob is a template of equal Jobs.
type ReplicatedJob struct {
	Name      string                  `json:"name"`
	GroupName string                  `json:"groupName,omitempty"`
	Template  batchv1.JobTemplateSpec `json:"template"`
	// Replicas is how many Jobs there are; absent means 1.
	Replicas  *int32 `json:"replicas,omitempty"`
	DependsOn any    `json:"dependsOn,omitempty"`
}
