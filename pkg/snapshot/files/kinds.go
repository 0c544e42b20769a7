package files

import (
	"reflect"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	berth "github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// kind is how objects of one kind are read.
type kind struct {
	group, name string
	// versions that are read; all have the schema of the Go type.
	versions   []string
	namespaced bool
	typ        reflect.Type
	// add keeps an object that was decoded.
	add func(*Objects, any)
}

func (k kind) is(gvk schema.GroupVersionKind) bool { return k.group == gvk.Group && k.name == gvk.Kind }

type scope bool

const (
	cluster    scope = false
	namespaced scope = true
)

func of[T any](group, version, name string, s scope, field func(*Objects) *[]*T) kind {
	return kind{
		group: group, name: name, versions: []string{version}, namespaced: bool(s), typ: reflect.TypeFor[T](),
		add: func(o *Objects, decoded any) {
			if object, ok := decoded.(*T); ok {
				list := field(o)
				*list = append(*list, object)
			}
		},
	}
}

// submitted marks a kind whose objects are gangs: their order in the files counts.
func submitted(k kind) kind {
	add := k.add
	k.add = func(o *Objects, decoded any) {
		add(o, decoded)
		if object, ok := decoded.(metav1.Object); ok {
			o.Submitted = append(o.Submitted, object)
		}
	}
	return k
}

// also reads a further version with the same fields.
func also(k kind, version string) kind {
	k.versions = append(k.versions, version)
	return k
}

// groupJobSet is the API group of JobSet.
const groupJobSet = "jobset.x-k8s.io"

// kinds are all that is read. Whatever else stands in the files is skipped with a warning.
var kinds = []kind{
	of("berth.dev", "v1alpha1", "AcceleratorPool", cluster, func(o *Objects) *[]*berth.AcceleratorPool { return &o.AcceleratorPools }),
	of("berth.dev", "v1alpha1", "CapacityFold", cluster, func(o *Objects) *[]*berth.CapacityFold { return &o.CapacityFolds }),
	of("berth.dev", "v1alpha1", "GangReservation", namespaced, func(o *Objects) *[]*berth.GangReservation { return &o.Reservations }),
	of("berth.dev", "v1alpha1", "GangReservationConfig", cluster, func(o *Objects) *[]*berth.GangReservationConfig { return &o.Configs }),

	of("resource.k8s.io", "v1", "ResourceSlice", cluster, func(o *Objects) *[]*resourcev1.ResourceSlice { return &o.ResourceSlices }),
	of("resource.k8s.io", "v1", "DeviceClass", cluster, func(o *Objects) *[]*resourcev1.DeviceClass { return &o.DeviceClasses }),
	of("resource.k8s.io", "v1", "ResourceClaim", namespaced, func(o *Objects) *[]*resourcev1.ResourceClaim { return &o.ResourceClaims }),
	of("resource.k8s.io", "v1", "ResourceClaimTemplate", namespaced, func(o *Objects) *[]*resourcev1.ResourceClaimTemplate { return &o.ResourceClaimTemplates }),
	// Kubernetes 1.36 serves DeviceTaintRule as v1beta2, with the same fields.
	also(of("resource.k8s.io", "v1", "DeviceTaintRule", cluster, func(o *Objects) *[]*resourcev1.DeviceTaintRule { return &o.DeviceTaintRules }), "v1beta2"),

	of("", "v1", "Node", cluster, func(o *Objects) *[]*corev1.Node { return &o.Nodes }),
	of("", "v1", "Pod", namespaced, func(o *Objects) *[]*corev1.Pod { return &o.Pods }),
	of("scheduling.k8s.io", "v1", "PriorityClass", cluster, func(o *Objects) *[]*schedulingv1.PriorityClass { return &o.PriorityClasses }),
	submitted(of("batch", "v1", "Job", namespaced, func(o *Objects) *[]*batchv1.Job { return &o.Jobs })),
	submitted(of(groupJobSet, "v1alpha2", "JobSet", namespaced, func(o *Objects) *[]*JobSet { return &o.JobSets })),

	of("kueue.x-k8s.io", "v1beta2", "ResourceFlavor", cluster, func(o *Objects) *[]*kueue.ResourceFlavor { return &o.ResourceFlavors }),
	of("kueue.x-k8s.io", "v1beta2", "ClusterQueue", cluster, func(o *Objects) *[]*kueue.ClusterQueue { return &o.ClusterQueues }),
	of("kueue.x-k8s.io", "v1beta2", "Cohort", cluster, func(o *Objects) *[]*kueue.Cohort { return &o.Cohorts }),
	of("kueue.x-k8s.io", "v1beta2", "LocalQueue", namespaced, func(o *Objects) *[]*kueue.LocalQueue { return &o.LocalQueues }),
	of("kueue.x-k8s.io", "v1beta2", "AdmissionCheck", cluster, func(o *Objects) *[]*kueue.AdmissionCheck { return &o.AdmissionChecks }),
	of("kueue.x-k8s.io", "v1beta2", "WorkloadPriorityClass", cluster, func(o *Objects) *[]*kueue.WorkloadPriorityClass { return &o.WorkloadPriorityClasses }),
	submitted(of("kueue.x-k8s.io", "v1beta2", "Workload", namespaced, func(o *Objects) *[]*kueue.Workload { return &o.Workloads })),
}

// kindOf finds how a kind is read; nil when it is not.
func kindOf(gvk schema.GroupVersionKind) *kind {
	for i := range kinds {
		if kinds[i].is(gvk) {
			return &kinds[i]
		}
	}
	return nil
}

// spelled is the kind of the same group that differs in case only; empty when there is none.
func spelled(gvk schema.GroupVersionKind) string {
	for i := range kinds {
		if kinds[i].group == gvk.Group && strings.EqualFold(kinds[i].name, gvk.Kind) {
			return kinds[i].name
		}
	}
	return ""
}
