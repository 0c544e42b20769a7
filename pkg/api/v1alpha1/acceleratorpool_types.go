package v1alpha1

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AcceleratorPool declares hardware that Berth owns: while its fence stands, nobody else allocates from it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=apool,categories=berth
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.spec.driver`
// +kubebuilder:printcolumn:name="Fence",type=string,JSONPath=`.spec.fence`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Fenced",type=string,JSONPath=`.status.conditions[?(@.type=="Fenced")].status`
// +kubebuilder:printcolumn:name="Hosts",type=integer,JSONPath=`.status.hosts.total`
// +kubebuilder:printcolumn:name="Usable",type=integer,JSONPath=`.status.hosts.usable`
// +kubebuilder:printcolumn:name="Reserved",type=integer,JSONPath=`.status.hosts.reserved`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AcceleratorPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which devices Berth owns.
	// +required
	Spec AcceleratorPoolSpec `json:"spec"`

	// status is what Berth sees of them.
	// +optional
	Status AcceleratorPoolStatus `json:"status,omitzero"`
}

// AcceleratorPoolSpec selects the DRA pools of one driver.
//
// +kubebuilder:validation:XValidation:rule="self.driver == oldSelf.driver",message="driver cannot be changed: create another AcceleratorPool and delete this one"
// +kubebuilder:validation:XValidation:rule="!has(self.hostHold) || self.hostHold == 'None'",message="hostHold NodeTaint is reserved for a later release: leave hostHold out"
type AcceleratorPoolSpec struct {
	// driver is the DRA driver's name as in ResourceSlice.spec.driver, for example tpu.example.com. It is compared
	// exactly.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="driver must be the DNS name that the driver writes into ResourceSlice.spec.driver, in lower case"
	Driver string `json:"driver"`

	// poolSelector picks some of the driver's pools. Absent: all of them.
	// +optional
	PoolSelector *PoolSelector `json:"poolSelector,omitempty"`

	// fence says what keeps others from allocating these devices. Enforce: admission policies refuse every such write,
	// and where DeviceTaintRule is served kube-scheduler is told not to try. Observe: no policy; devices that others
	// took are counted and an overdraw is reported, never caused.
	// +optional
	// +kubebuilder:default=Enforce
	Fence FenceMode `json:"fence,omitempty"`

	// hostHold says whether reserved hosts are also tainted so that pods outside the gang stay away. This release
	// serves None only.
	// +optional
	// +kubebuilder:default=None
	HostHold HostHoldMode `json:"hostHold,omitempty"`

	// rankLabel is the node label that gives a host's position in its slice: hosts are ranked by its value, numbers in
	// numeric order. Empty: by host name in natural order (node-2 before node-10).
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="rankLabel must be the key of a node label, for example example.com/position or position"
	RankLabel string `json:"rankLabel,omitempty"`

	// interconnect names what ties hosts or devices into domains, such as racks. A pod set that takes several devices gets
	// them in one domain: where it can be had, or, with the annotation berth.dev/interconnect: required, nowhere else.
	// +optional
	Interconnect *Interconnect `json:"interconnect,omitempty"`
}

// PoolSelector matches a DRA pool by its exact name or by a prefix of it.
//
// +kubebuilder:validation:XValidation:rule="(has(self.names) && size(self.names) > 0) || (has(self.prefixes) && size(self.prefixes) > 0)",message="poolSelector needs names or prefixes; leave it out to select every pool of the driver"
type PoolSelector struct {
	// names are exact pool names. A pool's name is one or more DNS subdomains, separated by slashes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a pool name is one or more DNS subdomains in lower case, separated by slashes, as in ResourceSlice.spec.pool.name"
	Names []string `json:"names,omitempty"`

	// prefixes are beginnings of pool names.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?[./])*([a-z0-9][-a-z0-9]*)?$')",message="no pool name begins like this: a pool name is one or more DNS subdomains in lower case, separated by slashes"
	Prefixes []string `json:"prefixes,omitempty"`
}

// Selects reports whether the selector picks a pool of that name. No selector picks every pool.
func (s *PoolSelector) Selects(pool string) bool {
	if s == nil {
		return true
	}
	return slices.Contains(s.Names, pool) ||
		slices.ContainsFunc(s.Prefixes, func(prefix string) bool { return strings.HasPrefix(pool, prefix) })
}

// FenceMode is how an AcceleratorPool's devices are kept from others.
// +kubebuilder:validation:Enum=Enforce;Observe
type FenceMode string

// Fence modes.
const (
	FenceEnforce FenceMode = "Enforce"
	FenceObserve FenceMode = "Observe"
)

// HostHoldMode is how reserved hosts are kept from pods outside the gang.
// +kubebuilder:validation:Enum=None;NodeTaint
type HostHoldMode string

// Host hold modes.
const (
	HostHoldNone      HostHoldMode = "None"
	HostHoldNodeTaint HostHoldMode = "NodeTaint"
)

// Interconnect names the domain of a host or device. What has no value belongs to no domain.
//
// +kubebuilder:validation:XValidation:rule="has(self.nodeLabel) != has(self.deviceAttribute)",message="interconnect needs exactly one of nodeLabel and deviceAttribute"
// +kubebuilder:validation:XValidation:rule="!has(self.deviceAttribute) || self.deviceAttribute.matches('^[^/]+/[^/]+$')",message="deviceAttribute must be qualified: <domain>/<name>, for example tpu.example.com/cube"
type Interconnect struct {
	// nodeLabel is a node label; hosts with the same value are connected. A device whose hosts differ in it belongs to no
	// domain.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="nodeLabel must be the key of a node label, for example example.com/cube or cube"
	NodeLabel string `json:"nodeLabel,omitempty"`

	// deviceAttribute is a qualified device attribute, for example tpu.example.com/cube; devices with the same value are
	// connected. A list is no value.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	DeviceAttribute string `json:"deviceAttribute,omitempty"`
}

// Condition types of an AcceleratorPool.
const (
	// PoolReady is True when every selected DRA pool is complete and valid.
	PoolReady = "Ready"
	// PoolFenced is True when a dry-run write by a stranger was refused by the fence.
	PoolFenced = "Fenced"
)

// AcceleratorPoolStatus is what Berth sees of the selected hardware.
type AcceleratorPoolStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// pools counts the selected DRA pools.
	// +optional
	Pools PoolCounts `json:"pools,omitzero"`

	// hosts counts the nodes that the pools' devices stand on.
	// +optional
	Hosts HostCounts `json:"hosts,omitzero"`

	// shapes counts devices by shape, largest first.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Shapes []ShapeCounts `json:"shapes,omitempty"`

	// worstPools are up to 16 DRA pools that cannot be used, each with the reason.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	WorstPools []PoolProblem `json:"worstPools,omitempty"`

	// holders are up to 16 allocated ResourceClaims in these pools that are not Berth's.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Holders []ForeignHolder `json:"holders,omitempty"`

	// conditions are Ready and Fenced.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PoolCounts counts DRA pools.
type PoolCounts struct {
	// total is how many DRA pools are selected.
	Total int32 `json:"total"`
	// usable is how many of them are complete at their newest generation and valid.
	Usable int32 `json:"usable"`
}

// HostCounts counts hosts.
type HostCounts struct {
	// total is how many hosts the devices name.
	Total int32 `json:"total"`
	// usable is how many of them exist, are Ready and schedulable.
	Usable int32 `json:"usable"`
	// reserved is how many stand under an allocated or promised device.
	Reserved int32 `json:"reserved"`
	// quarantined is how many may still run a pod that nobody can see.
	Quarantined int32 `json:"quarantined"`
	// stranded is how many are usable, neither reserved nor quarantined, and in no free multi-host device; in pools without
	// such devices, in no free device.
	Stranded int32 `json:"stranded"`
}

// ShapeCounts counts the devices of one shape.
type ShapeCounts struct {
	// name is the DeviceClass that selects the shape.
	Name string `json:"name"`
	// hosts is how many hosts one device spans.
	Hosts int32 `json:"hosts"`
	// devices is how many are published.
	Devices int32 `json:"devices"`
	// free is how many could be reserved now, each by itself.
	Free int32 `json:"free"`
}

// PoolProblem is a DRA pool that cannot be used.
type PoolProblem struct {
	// name is the DRA pool's name.
	Name string `json:"name"`
	// reason is PoolIncomplete, PoolInvalid or GateOff.
	Reason string `json:"reason"`
	// message says what is wrong and where.
	Message string `json:"message"`
}

// ForeignHolder is an allocated ResourceClaim in a selected pool that is not Berth's.
type ForeignHolder struct {
	// namespace and name of the ResourceClaim.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// device is <pool>/<device>.
	Device string `json:"device"`
}

// AcceleratorPoolList is a list of AcceleratorPools.
//
// +kubebuilder:object:root=true
type AcceleratorPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AcceleratorPool `json:"items"`
}
